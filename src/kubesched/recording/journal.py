"""The journal: hears of everything in the scheduler's loop, and hands it to the writer as it is.

Nothing is encoded or written here. An entry is a struct that refers to objects which never change;
to make one and put it into a queue is all that the loop has to pay for.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from msgspec.structs import replace

from kubesched import KUBERNETES_VERSION, __version__
from kubesched.api.core import Pod
from kubesched.clock import Clock
from kubesched.cluster.pod_info import PodInfo
from kubesched.config import encoding
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.status import Status
from kubesched.queue.queued_pod import QueuedPod
from kubesched.recording.entries import (
    FORMAT,
    Answered,
    Asking,
    Assumed,
    CheckpointEnd,
    Configured,
    Decided,
    Entry,
    Forgotten,
    Gates,
    Gone,
    Header,
    Nominated,
    Pending,
    Put,
    Raised,
    Randomness,
    Removed,
    Returned,
    Unnominated,
    VolumeAssumed,
    VolumeRestored,
)
from kubesched.recording.writer import NewFile, Writer


class Outcome(Protocol):
    """What became of one attempt at one pod."""

    status: Status
    node_name: str
    diagnosis: Diagnosis | None
    nominated_node: str | None
    evaluated_nodes: int
    feasible_nodes: int


class State(Protocol):
    """What can be written down as a whole."""

    def checkpoint(self) -> Iterator[Entry]:
        """Return entries that lead to it."""


class Journal:
    """Keeps what the scheduler saw and decided; use it as a context manager."""

    def __init__(
        self,
        writer: Writer,
        *,
        clock: Clock,
        plugin_files: Sequence[str] = (),
    ) -> None:
        self.writer = writer
        self._clock = clock
        self._plugin_files = tuple(plugin_files)
        self._run = secrets.token_hex(8)
        self._start = clock.time()
        #: entries so far
        self._count = 0
        #: uid → pod that wants a node, as it was last told
        self._pending: dict[str, Pod] = {}
        #: an attempt is under way, and randomness in between two states
        self._deciding = False
        #: uids of those who are to make room for the pod that is being decided about
        self._victims: tuple[str, ...] = ()
        self._state: State | None = None
        self._randomness: Callable[[], Randomness] | None = None
        self._config: SchedulerConfiguration | None = None
        self._gates = Gates()

    def __enter__(self) -> Self:
        self.writer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.writer.close()

    # --- the whole --------------------------------------------------------------------------

    def begin(
        self,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        state: State,
        randomness: Callable[[], Randomness],
    ) -> None:
        """Begin with a state; nothing may be told before that."""
        self._config = config
        self._gates = Gates(
            explicit=dict(gates.explicit),
            emulated_version=gates.emulated_version,
            min_compatibility_version=gates.min_compatibility_version,
        )
        self._state = state
        self._randomness = randomness
        self._new_file()

    def configured(self, config: SchedulerConfiguration) -> None:
        """Another configuration took the place of the one before."""
        if self._randomness is not None:
            self._config = config
            made = encoding.to_json_object(config)
            self._add(Configured(at=self._now(), config=made, randomness=self._randomness()))

    def _new_file(self) -> None:
        if self._state is None or self._randomness is None or self._config is None:
            return
        header = Header(
            kubesched_recording=FORMAT,
            run=self._run,
            first_entry=self._count,
            start=self._start,
            version=__version__,
            kubernetes_version=KUBERNETES_VERSION,
            config=encoding.to_json_object(self._config),
            gates=self._gates,
            plugin_files=self._plugin_files,
        )
        # Taken now: it is written while the state goes on changing.
        checkpoint = [*self._state.checkpoint(), *self._all_pending()]
        checkpoint.append(CheckpointEnd(at=self._now(), randomness=self._randomness()))
        self.writer.begin_file(NewFile(header, checkpoint))

    def _all_pending(self) -> Iterator[Entry]:
        for pod in self._pending.values():
            yield Pending(pod=pod)

    def _add(self, entry: Entry) -> None:
        writer = self.writer
        writer.append(entry)
        self._count += 1
        # Between two entries the state is as the first of them left it.
        if writer.full and not self._deciding:
            self._new_file()

    def _now(self) -> int:
        return int((self._clock.time() - self._start) * 1000)

    # --- what is seen -----------------------------------------------------------------------

    def put(self, kind: str, obj: object) -> None:
        """An object came or changed."""
        self._add(Put(at=self._now(), kind=kind, object=obj))

    def removed(self, kind: str, namespace: str = "", name: str = "", *, uid: str = "") -> None:
        """An object went."""
        self._add(Removed(at=self._now(), kind=kind, namespace=namespace, name=name, uid=uid))

    def placed(self, pod: Pod) -> None:
        """A pod on a node came or changed."""
        self._pending.pop(pod.metadata.uid, None)
        self._add(Put(at=self._now(), kind="Pod", object=pod))

    def pending(self, pod: Pod) -> None:
        """A pod that wants a node came or changed."""
        self._pending[pod.metadata.uid] = pod
        self._add(Pending(at=self._now(), pod=pod))

    def gone(self, uid: str) -> None:
        """A pod that wanted a node went."""
        if self._pending.pop(uid, None) is not None:
            self._add(Gone(at=self._now(), uid=uid))

    def volume_assumed(self, kind: str, obj: object) -> None:
        """A volume or claim shows as it is to be."""
        self._add(VolumeAssumed(at=self._now(), kind=kind, object=obj))

    def volume_restored(self, kind: str, namespace: str, name: str) -> None:
        """A volume or claim shows as it is again."""
        self._add(VolumeRestored(at=self._now(), kind=kind, namespace=namespace, name=name))

    # --- what is done -----------------------------------------------------------------------

    def deciding(self) -> None:
        """An attempt at a pod begins."""
        self._deciding = True
        self._victims = ()

    def asking(self, profile: str, pod: Pod) -> None:
        """An attempt at a pod begins, during which extenders are asked and other things happen."""
        self.deciding()
        known, uid = self._unless_known(pod), pod.metadata.uid
        self._add(Asking(at=self._now(), uid=uid, pod=known, profile=profile))

    def answered(self, answer: Answered) -> None:
        """Extenders answered."""
        self._add(replace(answer, at=self._now()))

    def evicting(self, victims: Iterable[PodInfo]) -> None:
        """Those are to make room for the pod that is being decided about."""
        self._victims = tuple([each.uid for each in victims])

    def decided(self, profile: str, pod: QueuedPod, outcome: Outcome) -> None:
        """An attempt at a pod came to a result."""
        self._deciding = False
        info, status, diagnosis = pod.info, outcome.status, outcome.diagnosis
        meta = info.pod.metadata
        if status.ok:
            plugins: tuple[str, ...] = ()
            waits: tuple[str, ...] = ()
        elif diagnosis is not None:
            plugins = tuple(sorted(diagnosis.unschedulable_plugins))
            waits = tuple(sorted(diagnosis.pending_plugins))
        else:
            plugins, waits = (status.plugin,) if status.plugin else (), ()
        self._add(
            Decided(
                at=self._now(),
                uid=meta.uid,
                pod=self._unless_known(info.pod),
                namespace=meta.namespace,
                name=meta.name,
                profile=profile,
                attempt=pod.attempts,
                node=outcome.node_name,
                code=status.code.label,
                message=status.message,
                nominated=outcome.nominated_node,
                victims=self._victims,
                plugins=plugins,
                pending_plugins=waits,
                evaluated=outcome.evaluated_nodes,
                feasible=outcome.feasible_nodes,
            )
        )

    def raised(self, pod: QueuedPod, bug: Exception) -> None:
        """An attempt at a pod broke off; does nothing if it had come to a result before."""
        if not self._deciding:
            return
        self._deciding = False
        raised = Raised(
            at=self._now(),
            uid=pod.info.uid,
            pod=self._unless_known(pod.info.pod),
            profile=pod.info.pod.spec.scheduler_name,
            attempt=pod.attempts,
            error=f"{type(bug).__name__}: {bug}",
        )
        self._add(raised)

    def returned(self, pod: PodInfo, status: Status) -> None:
        """A pod could not be bound to its node."""
        self._add(
            Returned(at=self._now(), uid=pod.uid, message=status.message, plugin=status.plugin)
        )

    def assumed(self, pod: Pod, node_name: str) -> None:
        """A pod counts on a node."""
        uid = pod.metadata.uid
        known = self._unless_known(pod)
        self._add(Assumed(at=self._now(), uid=uid, node=node_name, pod=known))

    def forgotten(self, uid: str) -> None:
        """A pod does not count on its node any more."""
        self._add(Forgotten(at=self._now(), uid=uid))

    def nominated(self, pod: Pod, node_name: str) -> None:
        """A pod was promised a node."""
        uid = pod.metadata.uid
        known = self._unless_known(pod)
        self._add(Nominated(at=self._now(), uid=uid, node=node_name, pod=known))

    def unnominated(self, uid: str) -> None:
        """The promise was taken back."""
        self._add(Unnominated(at=self._now(), uid=uid))

    def _unless_known(self, pod: Pod) -> Pod | None:
        return None if self._pending.get(pod.metadata.uid) is pod else pod
