"""Replays a recording: applies every entry, repeats and compares every decision.

recorded configuration   each decision must be identical
another configuration    the state follows the recording, and each decision is compared on its own;
                         or the state follows the decisions made now
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from kubesched import garbage
from kubesched.cluster.pod_groups import GroupKey, GroupKind
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.config.extenders import with_extender_effects
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ConfigError
from kubesched.framework.registry import Registry
from kubesched.plugins.in_tree import IN_TREE
from kubesched.recording.entries import (
    Answered,
    AnyEntry,
    Asking,
    CheckpointEnd,
    Configured,
    Decided,
    GroupDecided,
    MemberDecided,
    Raised,
)
from kubesched.recording.reader import Recording
from kubesched.replay import judging
from kubesched.replay.deciding import AttemptOutcome, Decider, configuration_of, gates_of
from kubesched.replay.own_state import OwnState
from kubesched.replay.report import (
    Difference,
    PlacementChanges,
    Preemptions,
    Replayed,
    usage_of,
)
from kubesched.replay.state import ReplayState

Follow = Literal["recorded", "own"]
#: Number of differences in the report; all are counted.
MOST_DIFFERENCES: Final = 1000
_TELL_EVERY: Final = 500


class ReplayOptions(Struct, frozen=True, kw_only=True):
    """Options of a replay."""

    #: None: the recorded one
    config: SchedulerConfiguration | None = None
    follow: Follow = "recorded"
    registry: Registry = IN_TREE
    #: number of the first entry that is not replayed; None: all are
    until: int | None = None


class _Tally:
    """Counts outcomes."""

    def __init__(self) -> None:
        self.decisions = self.same = self.tied = 0
        self.elsewhere = self.only_now = self.only_then = self.otherwise = 0
        self.differences: list[Difference] = []
        #: decisions to preempt, and victims: recorded and now
        self.then = [0, 0]
        self.now = [0, 0]

    @property
    def different(self) -> int:
        return self.decisions - self.same - self.tied

    def preempted(self, recorded: AttemptOutcome, now: AttemptOutcome) -> None:
        for counts, outcome in ((self.then, recorded), (self.now, now)):
            if outcome.victims:
                counts[0] += 1
                counts[1] += len(outcome.victims)

    def differs(self, difference: Difference) -> None:
        then, now = difference.recorded.node, difference.now.node
        if then and now and then != now:
            self.elsewhere += 1
        elif now and not then:
            self.only_now += 1
        elif then and not now:
            self.only_then += 1
        else:
            self.otherwise += 1
        if len(self.differences) < MOST_DIFFERENCES:
            self.differences.append(difference)


class Replay:
    """One replay of one recording."""

    def __init__(
        self,
        recording: Recording,
        options: ReplayOptions,
        *,
        progress: Callable[[int], None] = lambda _entries: None,
    ) -> None:
        """`progress` is called from time to time with the number of entries done."""
        self._progress = progress
        header = recording.header
        self._recording = recording
        self._options = options
        self._gates = gates_of(header.gates)
        self._exact = options.config is None
        rules = RequestRules.of(self._gates)
        self._own = OwnState(rules) if options.follow == "own" else None
        self.state = ReplayState(rules) if self._own is None else self._own
        #: the recorded state, if the other one diverges from it
        self._recorded = ReplayState(rules) if self._own is not None else None
        config = options.config or self._configuration(header.config)
        config = with_extender_effects(config)
        self._refuse_extenders(config)
        self._decider = Decider(self.state.cluster, config, self._gates, options.registry)
        self._tally = _Tally()
        self._entry = 0

    def run(self) -> Replayed:
        """Replay; raises ObjectError if the recording cannot be read to the end."""
        started = time.perf_counter()
        with garbage.paused():
            for entry in self._entries():
                self._take(entry)
        return self._report(time.perf_counter() - started)

    def _entries(self) -> Iterator[AnyEntry]:
        _, entries = self._recording.state()
        in_state = True
        until = self._options.until
        for entry in entries:
            if not in_state and until is not None and self._entry >= until:
                return
            yield entry
            if in_state:
                in_state = not isinstance(entry, CheckpointEnd)
            else:
                self._entry += 1
                if self._entry % _TELL_EVERY == 0:
                    self._progress(self._entry)

    def _take(self, entry: AnyEntry) -> None:
        if isinstance(entry, Decided):
            self._decided(entry)
        elif isinstance(entry, GroupDecided):
            self._group_decided(entry)
        elif isinstance(entry, Raised):
            self._raised(entry)
        elif isinstance(entry, Asking):
            self._decider.ask(entry.profile, self.state.pod_of(entry))
        elif isinstance(entry, Answered):
            self._decider.answer(entry)
        elif isinstance(entry, Configured):
            if self._exact:
                self._decider.configure(self._configuration(entry.config))
                self._decider.restore(entry.randomness)
        elif isinstance(entry, CheckpointEnd):
            self._decider.restore(entry.randomness)
        else:
            self.state.apply(entry)
            if self._recorded is not None:
                self._recorded.apply(entry)

    # --- decisions --------------------------------------------------------------------------

    def _decided(self, entry: Decided) -> None:
        pod = self.state.pod_of(entry)
        recorded = AttemptOutcome.recorded(entry)
        if self._own is not None and self._own.has_placed(entry.uid):
            return  # a retry in the recording; it already has a node here
        if self._own is not None:
            self._own.retry(self._decider)
        decision, now = self._decider.decide(entry.profile, pod)
        self._judge(entry, pod, recorded, now)
        if self._own is not None and decision is not None:
            self._own.decided(entry, pod, decision, self._decider)

    def _group_decided(self, entry: GroupDecided) -> None:
        """Repeat the decision about a group, and compare it member by member."""
        pods = self.state.pods_of(entry)
        if self._own is not None:
            self._own.retry(self._decider)
            pods = [pod for pod in pods if not self._own.has_placed(pod.uid)]
        if not pods:
            return
        key = GroupKey(GroupKind(entry.group_kind), entry.namespace, entry.name)
        recorded = {each.uid: self._as_decided(entry, each) for each in entry.members}
        outcomes = self._decider.decide_group(entry.profile, key, pods)
        for number, (member, now) in enumerate(outcomes):
            then = recorded.get(member.pod.uid)
            if then is None:
                continue
            victims = () if number else entry.victims
            self._judge(
                then, member.pod, AttemptOutcome.recorded(replace(then, victims=victims)), now
            )
            if self._own is not None:
                decision = member.decision
                if not member.binds:
                    decision = replace(decision, node_name="", nominated_node=member.nominated_node)
                self._own.decided(then, member.pod, decision, self._decider)

    def _as_decided(self, entry: GroupDecided, member: MemberDecided) -> Decided:
        """Return what was recorded of one member as if it had been tried by itself."""
        return Decided(
            at=entry.at,
            uid=member.uid,
            namespace=member.namespace,
            name=member.name,
            profile=entry.profile,
            attempt=member.attempt,
            node=member.node,
            code=member.code,
            message=member.message,
            nominated=member.nominated,
        )

    def _raised(self, entry: Raised) -> None:
        pod = self.state.pod_of(entry)
        recorded = AttemptOutcome(code="Error", message=entry.error)
        try:
            _, now = self._decider.decide(entry.profile, pod)
        except Exception as bug:  # noqa: BLE001 (the same bug as then, or another)
            now = AttemptOutcome(code="Error", message=f"{type(bug).__name__}: {bug}")
        self._judge(entry, pod, recorded, now)

    def _judge(
        self, entry: Decided | Raised, pod: PodInfo, recorded: AttemptOutcome, now: AttemptOutcome
    ) -> None:
        tally = self._tally
        tally.decisions += 1
        tally.preempted(recorded, now)
        if self._exact:
            redacted = self._recording.header.redacted
            fields = judging.differing(recorded, now, redacted=redacted)
        else:
            fields = judging.differing_in_place(recorded, now)
        if not fields:
            tally.same += 1
            return
        if self._is_tie(entry, pod, recorded, now):
            tally.tied += 1
            return
        when = shown(self._recording.time_of(entry.at))
        tally.differs(Difference(self._entry, when, pod.full_name, fields, recorded, now))

    def _is_tie(
        self, entry: Decided | Raised, pod: PodInfo, recorded: AttemptOutcome, now: AttemptOutcome
    ) -> bool:
        if self._exact or not recorded.node or not now.node:
            return False
        return self._decider.is_as_good(entry.profile, pod, recorded.node)

    # --- around -----------------------------------------------------------------------------

    def _configuration(self, config: dict[str, object]) -> SchedulerConfiguration:
        return configuration_of(config, self._gates)

    def _refuse_extenders(self, config: SchedulerConfiguration) -> None:
        if config.extenders and not self._exact:
            raise ConfigError(
                "a replay cannot ask extenders: give a configuration without them to --config"
            )

    def _report(self, took_s: float) -> Replayed:
        recording, tally = self._recording, self._tally
        start, end = recording.start, recording.end
        table = self.state.cluster.table
        then = table if self._recorded is None else self._recorded.cluster.table
        return Replayed(
            recording=str(recording.parts[-1].path),
            other_configuration=not self._exact,
            follow=self._options.follow,
            entries=self._entry,
            decisions=tally.decisions,
            same=tally.same,
            tied=tally.tied,
            different=tally.different,
            placed_elsewhere=tally.elsewhere,
            placed_only_now=tally.only_now,
            placed_only_then=tally.only_then,
            otherwise=tally.otherwise,
            differences=tuple(tally.differences),
            start=shown(start),
            end=shown(end),
            covered_seconds=round((end - start).total_seconds(), 3),
            took_seconds=round(took_s, 3),
            decisions_per_second=round(tally.decisions / took_s, 1) if took_s else 0.0,
            cut_off=recording.cut_off,
            redacted=recording.header.redacted,
            recorded_preemptions=Preemptions(*tally.then),
            preemptions=Preemptions(*tally.now),
            usage=usage_of(then, table),
            placements=self._placements(),
            notes=tuple(recording.notes),
        )

    def _placements(self) -> PlacementChanges | None:
        if self._recorded is None:
            return None
        then, now = self._recorded.placements(), self.state.placements()
        moved = sum(then.get(uid) != now.get(uid) for uid in then.keys() | now.keys())
        return PlacementChanges(len(then), len(now), moved)


def shown(when: datetime) -> str:
    """Return a time as reports show it."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
