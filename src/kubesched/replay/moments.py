"""A recording at one moment: the cluster, and the pods that wait, as of some entry.

Going forward, entries are applied to the state that is there; going back begins at the last file
that starts before the moment. So whoever moves through a recording in steps does not pay for all
of it each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import RequestRules
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
    Put,
    Raised,
    Returned,
)
from kubesched.recording.entries import Pending as PendingEntry
from kubesched.recording.reader import Recording
from kubesched.replay.deciding import configuration_of, gates_of
from kubesched.replay.state import State
from kubesched.snapshot.contents import Snapshot


class PendingPod(Struct, frozen=True, rename="camel"):
    """A pod without a node, and what is known of why."""

    namespace: str
    name: str
    uid: str
    #: why it found no node when it was last tried, "" if it was not
    message: str
    #: who turned it away
    plugins: tuple[str, ...]
    attempts: int
    #: when it was first seen waiting
    since: datetime
    priority: int


class _Tried(Struct, frozen=True):
    message: str = ""
    plugins: tuple[str, ...] = ()
    attempts: int = 0


class Moments:
    """A recording, at any of its moments."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.gates: FeatureGates = gates_of(recording.header.gates)
        self._begin(0)

    def snapshot_at(self, entry: int) -> Snapshot:
        """Return all objects as they were before an entry, with what was decided by then.

        Pods that were assumed to be on a node have it. An entry is a number up to
        `recording.entries`, which is the end.
        """
        self._go_to(entry)
        path = Path(self.recording.parts[-1].path)
        snapshot = Snapshot(source=f"{path.name} at entry {entry}")
        for kind in watched():
            snapshot.objects[kind.name] = list(self._state.objects(kind.name))
        snapshot.notes = list(self.recording.notes)
        return snapshot

    def pending_at(self, entry: int) -> list[PendingPod]:
        """Return the pods of our profiles that waited for a node before an entry."""
        self._go_to(entry)
        ours = {profile.scheduler_name for profile in self._config.profiles}
        placed = self._state.placements()
        return [
            self._pending(uid, pod)
            for uid, pod in self._state.pending.items()
            if uid not in placed and pod.spec.scheduler_name in ours
        ]

    def cluster_at(self, entry: int) -> Cluster:
        """Return the columns before an entry, to be read before another moment is asked for."""
        self._go_to(entry)
        return self._state.cluster

    def configuration_at(self, entry: int) -> SchedulerConfiguration:
        """Return the configuration that was in use before an entry."""
        self._go_to(entry)
        return self._config

    def time_at(self, entry: int) -> datetime:
        """Return when the state was as it is before an entry."""
        self._go_to(entry)
        return self.recording.time_of(self._at)

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
        """Begin at the last known state before an entry."""
        self._number, self._left = self.recording.state(before=entry)
        self._state = State(RequestRules.of(self.gates))
        self._config = self._configuration(self._header_config())
        #: uid → what became of it when it was last tried; when it was first seen waiting
        self._tried: dict[str, _Tried] = {}
        self._since: dict[str, int] = {}
        self._at = 0
        for each in self._left:
            self._apply(each)
            if isinstance(each, CheckpointEnd):
                break

    def _header_config(self) -> dict[str, object]:
        parts = self.recording.parts
        return next(part for part in reversed(parts) if part.first <= self._number).header.config

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
            self._apply(next(entries))
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
