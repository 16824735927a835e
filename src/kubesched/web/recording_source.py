"""A recording as a source of the page, at any of its entries.

    at ──> Moments (in a thread: entries applied to a state) ──> Moment, cached for a while
                                                                   └── World, in a child that asks

Most steps go forward, which is cheap: only the displayed parts are taken from the state. Several
requests for one entry share the work, and the last moments are cached, so that a page which reads
nodes, queue and an explanation pays once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.cluster.arrays import Float64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import RequestRules
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import UsageError
from kubesched.framework.registry import Registry
from kubesched.recording.reader import Recording
from kubesched.replay.moments import Moments, PendingPod
from kubesched.snapshot.world import World
from kubesched.web.columns import NodeColumns
from kubesched.web.conditions import (
    ACTIVE,
    GATED,
    UNSCHEDULABLE,
    gates_message,
    group_name,
    waiting_pod,
    workload_of,
)
from kubesched.web.entry_words import words_of
from kubesched.web.errors import BusyError
from kubesched.web.living_world import Rules
from kubesched.web.rates import HISTORY_S, RECENT_S
from kubesched.web.recorded_feed import RecordedFeed
from kubesched.web.recorded_grades import RecordedGrades
from kubesched.web.report import (
    AllNodes,
    DecisionsTold,
    PendingPodReport,
    PodTotals,
    Rate,
    RecordingTold,
)
from kubesched.web.source import Source
from kubesched.web.state import PageState, PendingEntry, ReportedPending, by_group
from kubesched.web.times import rfc3339

_KEPT: Final = 8
#: Limit of queued entries: a moving slider requests many.
_MOST_WAITING: Final = 16
_BUCKETS: Final = 200
#: Playing a recording takes no more steps.
_STEPS: Final = 120


class _Frozen:
    """All nodes at one entry."""

    def __init__(self, table: NodeTable) -> None:
        self._all = NodeColumns(table).all()
        self.resources = tuple(self._all.resources)

    def current_version(self) -> int:
        """Return the version, which never changes."""
        return self._all.version

    def all(self) -> AllNodes:
        """Return all nodes."""
        return self._all

    def since(self, version: int) -> None:
        """Return None: nothing changes."""


class Moment(PageState):
    """The state before one entry, with the minimal work to show it."""

    def __init__(
        self,
        moments: Moments,
        entry: int,
        rules: Rules,
        feed: RecordedFeed,
        grades: RecordedGrades,
    ) -> None:
        """Move the recording to the entry, if it is not there, and read the state."""
        cluster = moments.cluster_at(entry)
        self.at = entry
        #: seconds since the epoch
        self.time = moments.time_at(entry).timestamp()
        #: what led to this state
        self.entry = words_of(moments.entry_before(entry), feed.name_of)
        self.columns = _Frozen(cluster.table)
        self._placed = cluster.pod_count
        self._snapshot = moments.snapshot_at(entry)
        self._rules = rules
        self._feed = feed
        self._grades = grades
        self._members: dict[tuple[str, str], list[Pod]] | None = None
        self._by_name = {
            (pod.metadata.namespace, pod.metadata.name): pod for pod in self._snapshot.pods
        }
        told = {each.uid: each for each in moments.pending_at(entry)}

        profiles = tuple(each.scheduler_name for each in rules.config.profiles)

        def tell(pod: Pod) -> PendingPodReport:
            known = told.get(pod.metadata.uid)
            return waiting_pod(pod, profiles) if known is None else _told(pod, known)

        waiting = [pod for pod in self._snapshot.pods if not pod.spec.node_name]
        self._pending = ReportedPending(waiting, tell)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about missing or skipped data, one line each."""
        return tuple(self._snapshot.notes)

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self._snapshot.nodes)

    def with_node(self, name: str) -> Cluster | None:
        """Return a cluster of one node."""
        nodes = [each for each in self._snapshot.nodes if each.metadata.name == name]
        if not nodes:
            return None
        alone = Cluster(RequestRules.of(self._rules.gates))
        alone.put_node(nodes[0])
        for pod in self._snapshot.pods:
            if pod.spec.node_name == name:
                alone.put_pod(pod)
        return alone

    def counts(self) -> PodTotals:
        """Return the number of pods by state."""
        return self._pending.counts(self._placed)

    def reasons(self) -> Mapping[str, int]:
        """Return the number of pending pods by rejecting plugin."""
        return self._pending.reasons

    def waiting(self) -> Iterator[PendingEntry]:
        """Yield the pending pods, those already tried first."""
        return self._pending.waiting()

    def nodes(self) -> Iterable[Node]:
        """Return all nodes."""
        return self._snapshot.nodes

    def objects(self, kind: str) -> Iterable[Any]:
        """Return the objects of a kind."""
        return self._snapshot.objects.get(kind, ())

    def members(self) -> Mapping[tuple[str, str], Sequence[Pod]]:
        """Return the pods of each group."""
        if self._members is None:
            self._members = by_group(self._snapshot.pods)
        return self._members

    def decisions(self, limit: int) -> DecisionsTold:
        """Return the last decisions before this moment, newest first."""
        return self._feed.before(self.at, limit)

    async def graded(self, limit: int) -> DecisionsTold:
        """Return the same with grades, which evaluates those that are not known yet."""
        told = self.decisions(limit)
        placed = [each.number for each in told.decisions if each.node]
        grades = await asyncio.to_thread(self._grades.at, placed)
        graded = (replace(each, grade=grades.get(each.number)) for each in told.decisions)
        return replace(told, decisions=tuple(graded))

    def pods(self) -> Iterable[Pod]:
        """Return all pods that are not terminated."""
        return self._snapshot.pods

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod."""
        return self._by_name.get((namespace, name))

    def make_world(self) -> World:
        """Return a world for what-if questions; only in a child."""
        rules = self._rules
        return World.of_snapshot(self._snapshot, rules.config, rules.gates, registry=rules.registry)


class RecordingSource(Source):
    """A scheduler's recorded state and decisions."""

    kind = "recording"
    live = False

    def __init__(
        self,
        recording: Recording,
        *,
        registry: Registry,
        config: SchedulerConfiguration | None = None,
    ) -> None:
        """`config` replaces the recorded configuration."""
        self._recording = recording
        self._registry = registry
        self._config = config
        self._moments = Moments(recording)
        first = self._moments.configuration_at(0)
        self._scheduler_names = tuple(each.scheduler_name for each in (config or first).profiles)
        #: only one thread at a time uses `_moments`
        self._working = asyncio.Lock()
        self._coming: dict[int, asyncio.Task[Moment]] = {}
        #: the last requested ones, newest last
        self._kept: OrderedDict[int, Moment] = OrderedDict()
        self._decided = _decision_times(recording)
        self._feed = RecordedFeed(recording)
        self._grades = RecordedGrades(recording, registry)
        self._timeline = self._feed.timeline(_BUCKETS)
        self._steps = self._feed.steps(_STEPS)

    @property
    def title(self) -> str:
        """Its title for users."""
        return self._recording.parts[-1].path.name

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """The profiles of the scheduler."""
        return self._scheduler_names

    async def state(self, at: int | None) -> Moment:
        """Return the state before an entry, or at the end; raises UsageError if there is none."""
        entries = self._recording.entries
        entry = entries if at is None else at
        if not 0 <= entry <= entries:
            raise UsageError(f"there is no entry {entry}: the recording ends with {entries}")
        kept = self._kept.get(entry)
        if kept is not None:
            self._kept.move_to_end(entry)
            return kept
        coming = self._coming.get(entry)
        if coming is None:
            if len(self._coming) >= _MOST_WAITING:
                raise BusyError("too many moments are asked for at once: try again soon")
            coming = self._coming[entry] = asyncio.create_task(self._come_to(entry))
        # A cancelled request must not cancel the work that others wait for.
        return await asyncio.shield(coming)

    def time(self, state: PageState) -> str:
        """Return the time of the state."""
        return rfc3339(_moment(state).time)

    def rate(self, state: PageState) -> Rate:
        """Return the decisions in the minute before."""
        now = _moment(state).time
        edges = now - np.arange(HISTORY_S, -1, -1, dtype=np.float64)
        counts = np.diff(np.searchsorted(self._decided, edges, side="right"))
        per_second = float(counts[-RECENT_S:].sum()) / RECENT_S
        return Rate(round(per_second, 1), tuple(map(float, counts.tolist())))

    def recording(self, state: PageState) -> RecordingTold:
        """Return the recording's name and the current position."""
        at = _moment(state).at
        return RecordingTold(
            entries=self._recording.entries,
            first=self._feed.start,
            at=at,
            entry=_moment(state).entry,
            decision=self._feed.count(at),
            decisions=len(self._feed.positions),
            start=rfc3339(self._recording.start.timestamp()),
            end=rfc3339(self._recording.end.timestamp()),
            timeline=self._timeline,
            steps=self._steps,
            previous_decision=self._feed.previous(at),
            next_decision=self._feed.next(at),
        )

    def notes(self) -> tuple[str, ...]:
        """Return notes, one line each."""
        recording = self._recording
        if recording.damage:
            return (f"the recording is damaged after its last entry: {recording.damage}",)
        if recording.cut_off:
            return ("the scheduler was ended while it recorded, or still records",)
        return ()

    async def aclose(self) -> None:
        """Cancel the work in progress."""
        coming = list(self._coming.values())
        for task in coming:
            task.cancel()
        await asyncio.gather(*coming, return_exceptions=True)

    async def _come_to(self, entry: int) -> Moment:
        try:
            async with self._working:
                moment = await asyncio.to_thread(self._make, entry)
            self._kept[entry] = moment
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return moment
        finally:
            del self._coming[entry]

    def _make(self, entry: int) -> Moment:
        moments = self._moments
        config = self._config or moments.configuration_at(entry)
        rules = Rules(config, moments.gates, self._registry)
        return Moment(moments, entry, rules, self._feed, self._grades)


def _moment(state: PageState) -> Moment:
    if not isinstance(state, Moment):
        raise TypeError("a state of another source")
    return state


def _told(pod: Pod, waiting: PendingPod) -> PendingPodReport:
    gated = bool(pod.spec.scheduling_gates)
    # Between the decision that gave it a node and its assumption, a pod is not rejected.
    rejected = waiting.attempts > 0 and bool(waiting.message)
    return PendingPodReport(
        namespace=waiting.namespace,
        name=waiting.name,
        state=GATED if gated else UNSCHEDULABLE if rejected else ACTIVE,
        plugins=("SchedulingGates",) if gated else waiting.plugins,
        message=waiting.message or (gates_message(pod) if gated else ""),
        attempts=waiting.attempts,
        since=rfc3339(waiting.since.timestamp()),
        priority=waiting.priority,
        group=group_name(pod),
        workload=workload_of(pod),
    )


def _decision_times(recording: Recording) -> Float64Array:
    """Return when decisions were made, in seconds since the epoch, in order."""
    at_ms = [at for part in recording.parts for at in part.summary.decided_at]
    times: Float64Array = np.sort(np.array(at_ms, dtype=np.float64)) / 1000 + recording.header.start
    return times
