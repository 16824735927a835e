"""A recording at any entry: the cluster and the pending pods at that point.

Moving forward applies entries to the current state; moving back restarts at the last file that
begins before the entry. So stepping through a recording does not read all of it each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import UsageError
from kubesched.kinds import watched
from kubesched.recording.entries import (
    AnyEntry,
    CheckpointEnd,
    Configured,
    Decided,
    Entry,
    Gone,
    GroupDecided,
    OfPod,
    Put,
    Raised,
    Returned,
)
from kubesched.recording.entries import Pending as PendingEntry
from kubesched.recording.reader import Recording
from kubesched.replay.deciding import configuration_of, gates_of
from kubesched.replay.state import ReplayState
from kubesched.snapshot.contents import Snapshot


class PendingPod(Struct, frozen=True, rename="camel"):
    """A pending pod, and why it is pending."""

    namespace: str
    name: str
    uid: str
    #: why the last attempt found no node, "" if there was none
    message: str
    #: plugins that rejected it
    plugins: tuple[str, ...]
    attempts: int
    #: when it was first seen pending
    since: datetime
    priority: int


class _Tried(Struct, frozen=True):
    message: str = ""
    plugins: tuple[str, ...] = ()
    attempts: int = 0


class Moments:
    """The states of a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.gates: FeatureGates = gates_of(recording.header.gates)
        self._begin(0)

    def snapshot_at(self, entry: int) -> Snapshot:
        """Return all objects before an entry, as assumed.

        Assumed pods have their node. `entry` is a number up to `recording.entries`, the end.
        """
        self._go_to(entry)
        path = Path(self.recording.parts[-1].path)
        snapshot = Snapshot(source=f"{path.name} at entry {entry}")
        for kind in watched():
            snapshot.objects[kind.name] = list(self._state.objects(kind.name))
        snapshot.notes = list(self.recording.notes)
        return snapshot

    def pending_at(self, entry: int) -> list[PendingPod]:
        """Return the pending pods of our profiles before an entry."""
        self._go_to(entry)
        ours = {profile.scheduler_name for profile in self._config.profiles}
        placed = self._state.placements()
        return [
            self._pending(uid, pod)
            for uid, pod in self._state.pending.items()
            if uid not in placed and pod.spec.scheduler_name in ours
        ]

    def cluster_at(self, entry: int) -> Cluster:
        """Return the cluster before an entry; valid until the next call."""
        self._go_to(entry)
        return self._state.cluster

    def configuration_at(self, entry: int) -> SchedulerConfiguration:
        """Return the configuration in use before an entry."""
        self._go_to(entry)
        return self._config

    def time_at(self, entry: int) -> datetime:
        """Return the time of the state before an entry."""
        self._go_to(entry)
        return self.recording.time_of(self._at)

    def entry_before(self, entry: int) -> AnyEntry | None:
        """Return the entry that led to the state before an entry; None where a file begins."""
        self._go_to(entry)
        return self._last

    def pod_of(self, entry: OfPod) -> PodInfo:
        """Return the pod of the entry that led to the current state, as the scheduler had it."""
        return self._state.pod_of(entry)

    def _pending(self, uid: str, pod: Pod) -> PendingPod:
        tried = self._tried.get(uid, _Tried())
        return PendingPod(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            uid=uid,
            message=tried.message,
            plugins=tried.plugins,
            attempts=tried.attempts,
            since=self.recording.time_of(self._since.get(uid, 0)),
            priority=pod.spec.priority or 0,
        )

    # --- moving -----------------------------------------------------------------------------

    def _begin(self, entry: int) -> None:
        """Start at the last checkpoint before an entry."""
        self._number, self._left = self.recording.state(before=entry)
        self._state = ReplayState(RequestRules.of(self.gates))
        self._config = self._configuration(self.recording.header_at(self._number).config)
        #: uid → outcome of the last attempt; uid → when it was first seen pending
        self._tried: dict[str, _Tried] = {}
        self._since: dict[str, int] = {}
        self._at = 0
        for each in self._left:
            self._apply(each)
            if isinstance(each, CheckpointEnd):
                break
        #: the last applied entry since
        self._last: AnyEntry | None = None

    def _configuration(self, config: dict[str, object]) -> SchedulerConfiguration:
        return configuration_of(config, self.gates)

    def _go_to(self, entry: int) -> None:
        if not 0 <= entry <= self.recording.entries:
            raise UsageError(
                f"there is no entry {entry}: the recording has {self.recording.entries}"
            )
        nearest = max(part.first for part in self.recording.parts if part.first <= entry)
        if entry < self._number or nearest > self._number:
            self._begin(entry)
        entries: Iterator[AnyEntry] = self._left
        while self._number < entry:
            self._last = next(entries)
            self._apply(self._last)
            self._number += 1

    def _apply(self, entry: AnyEntry) -> None:
        self._at = max(self._at, entry.at)
        self._note(entry)
        if isinstance(entry, Configured):
            self._config = self._configuration(entry.config)
        else:
            self._state.apply(entry)

    def _note(self, entry: Entry) -> None:
        if isinstance(entry, Decided):
            plugins = (*entry.plugins, *entry.pending_plugins)
            self._tried[entry.uid] = _Tried(entry.message, plugins, entry.attempt)
        elif isinstance(entry, GroupDecided):
            for each in entry.members:
                self._tried[each.uid] = _Tried(each.message, (), each.attempt)
        elif isinstance(entry, Raised):
            self._tried[entry.uid] = _Tried(entry.error, (), entry.attempt)
        elif isinstance(entry, Returned):
            before = self._tried.get(entry.uid, _Tried())
            plugins = (entry.plugin,) if entry.plugin else ()
            self._tried[entry.uid] = _Tried(entry.message, plugins, before.attempts)
        elif isinstance(entry, PendingEntry):
            self._since.setdefault(entry.pod.metadata.uid, entry.at)
        elif isinstance(entry, Gone):
            self._waits_no_longer(entry.uid)
        elif isinstance(entry, Put) and entry.kind == "Pod":
            self._waits_no_longer(entry.object.metadata.uid)

    def _waits_no_longer(self, uid: str) -> None:
        self._tried.pop(uid, None)
        self._since.pop(uid, None)
