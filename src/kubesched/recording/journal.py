"""The journal: receives all events of the scheduler's loop and queues them for the writer.

Nothing is encoded or written here. An entry is a struct that refers to immutable objects; creating
and queueing it is the loop's only cost.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from kubesched import KUBERNETES_VERSION, __version__
from kubesched.api.core import Pod
from kubesched.api.resource import AllocationResult
from kubesched.clock import Clock, SteadyClock
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.config import encoding
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.group import GroupInfo
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Status
from kubesched.observer import AttemptResult, GroupMemberResult, RandomChoices, SchedulerObserver
from kubesched.queue import events
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod
from kubesched.queue.tally import ACTIVE, GATED, UNSCHEDULABLE
from kubesched.recording import randomness
from kubesched.recording.entries import (
    FORMAT,
    Answered,
    Asking,
    Assumed,
    CheckpointEnd,
    ClaimDecided,
    ClaimDropped,
    Configured,
    Decided,
    Entry,
    Forgotten,
    Gates,
    Gone,
    GroupDecided,
    Header,
    MemberDecided,
    Moved,
    NodeRejection,
    NodeVictims,
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
from kubesched.recording.recorded_cluster import RecordedCluster
from kubesched.recording.writer import NewFile, Writer


class Journal(SchedulerObserver):
    """Records the scheduler's inputs and decisions; a context manager."""

    def __init__(
        self,
        writer: Writer,
        *,
        clock: Clock,
        plugin_files: Sequence[str] = (),
    ) -> None:
        self.writer = writer
        self._clock = SteadyClock(clock)
        self._plugin_files = tuple(plugin_files)
        self._run = secrets.token_hex(8)
        self._start = self._clock.time()
        #: number of entries so far
        self._count = 0
        #: uid → pending pod, as last recorded
        self._pending: dict[str, Pod] = {}
        #: uid → part of the queue, as last notified; without pods in flight
        self._queued_in: dict[str, str] = {}
        #: whether an attempt is in progress, so that random generators are between two states
        self._deciding = False
        #: uids of the victims of the current attempt
        self._victims: tuple[str, ...] = ()
        self._cluster: RecordedCluster | None = None
        self._choices: RandomChoices | None = None
        self._frameworks: Mapping[str, Framework] = {}
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

    def make_cluster(self, rules: RequestRules) -> RecordedCluster:
        """Return a cluster that records every change."""
        self._cluster = RecordedCluster(rules, self)
        return self._cluster

    def begin(
        self,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        choices: RandomChoices,
        frameworks: Mapping[str, Framework],
    ) -> None:
        """Start with the current state; must be called first."""
        self._config = config
        self._gates = Gates(
            explicit=dict(gates.explicit),
            emulated_version=gates.emulated_version,
            min_compatibility_version=gates.min_compatibility_version,
        )
        self._choices = choices
        self._frameworks = frameworks
        self._new_file()

    def configured(self, config: SchedulerConfiguration) -> None:
        """Record a new configuration."""
        if self._choices is not None:
            self._config = config
            made, random = encoding.to_json_object(config), self._randomness(self._choices)
            self._add(Configured(at=self._now(), config=made, randomness=random))

    def detach(self) -> None:
        """Stop writing: the writer's thread and file belong to the parent process."""
        self.writer.failure = "this is only a copy"

    def _randomness(self, choices: RandomChoices) -> Randomness:
        return randomness.capture(choices.rng, choices.sampler.start, self._frameworks)

    def _new_file(self) -> None:
        if self._cluster is None or self._choices is None or self._config is None:
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
        # Taken now: it is written while the state changes.
        checkpoint = [*self._cluster.checkpoint(), *self._all_pending()]
        random = self._randomness(self._choices)
        checkpoint.append(CheckpointEnd(at=self._now(), randomness=random))
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

    # --- inputs ---------------------------------------------------------------------------

    def put(self, kind: str, obj: object) -> None:
        """Record an added or changed object."""
        self._add(Put(at=self._now(), kind=kind, object=obj))

    def removed(self, kind: str, namespace: str = "", name: str = "", *, uid: str = "") -> None:
        """Record a removed object."""
        self._add(Removed(at=self._now(), kind=kind, namespace=namespace, name=name, uid=uid))

    def placed(self, pod: Pod) -> None:
        """Record an added or changed pod on a node."""
        self._pending.pop(pod.metadata.uid, None)
        self._queued_in.pop(pod.metadata.uid, None)
        self._add(Put(at=self._now(), kind="Pod", object=pod))

    def pending(self, pod: Pod) -> None:
        """Record an added or changed pending pod."""
        self._pending[pod.metadata.uid] = pod
        self._add(Pending(at=self._now(), pod=pod))

    def gone(self, uid: str) -> None:
        """Record a removed pending pod."""
        self._queued_in.pop(uid, None)
        if self._pending.pop(uid, None) is not None:
            self._add(Gone(at=self._now(), uid=uid))

    def moved(self, entity: QueuedEntity, queue: str, event_label: str) -> None:
        """Record which pods are in another part of the queue now.

        A group enters its part again with each member that joins: the others did not move.
        """
        gate = entity.gated_by if queue == UNSCHEDULABLE else ""
        part = GATED if gate else queue
        is_arrival = part == ACTIVE and event_label == events.UNSCHEDULED_POD_ADD.label
        uids = []
        for pod in entity.pods():
            before = self._queued_in.get(pod.info.uid)
            if before != part:
                self._queued_in[pod.info.uid] = part
                if before or pod.attempts or not is_arrival:
                    uids.append(pod.info.uid)
        if uids:
            self._add(
                Moved(at=self._now(), uids=tuple(uids), queue=part, event=event_label, plugin=gate)
            )

    def volume_assumed(self, kind: str, obj: object) -> None:
        """Record an assumed volume or claim."""
        self._add(VolumeAssumed(at=self._now(), kind=kind, object=obj))

    def volume_restored(self, kind: str, namespace: str, name: str) -> None:
        """Record that the assumption of a volume or claim was undone."""
        self._add(VolumeRestored(at=self._now(), kind=kind, namespace=namespace, name=name))

    # --- actions --------------------------------------------------------------------------

    def deciding(self) -> None:
        """Note the start of an attempt."""
        self._deciding = True
        self._victims = ()

    def asking(self, profile: str, pod: Pod) -> None:
        """Record the start of an attempt that may call extenders."""
        self.deciding()
        known, uid = self._unless_known(pod), pod.metadata.uid
        self._add(Asking(at=self._now(), uid=uid, pod=known, profile=profile))

    def extenders_filtered(self, feasible: Sequence[str], rejected: Mapping[str, Status]) -> None:
        """Record the nodes that extenders left, and why they rejected the others."""
        reasons = {
            name: NodeRejection(status.code.value, status.reasons)
            for name, status in rejected.items()
        }
        self._add(Answered(at=self._now(), feasible=tuple(feasible), rejected=reasons))

    def extenders_scored(self, scores: Mapping[str, int]) -> None:
        """Record the scores of extenders."""
        self._add(Answered(at=self._now(), scores=dict(scores)))

    def extenders_chose_victims(self, victims: Mapping[str, tuple[Sequence[Pod], int]]) -> None:
        """Record the victims that extenders left, and the number of PDB violations."""
        told = {
            name: NodeVictims(tuple(pod.metadata.uid for pod in pods), violations)
            for name, (pods, violations) in victims.items()
        }
        self._add(Answered(at=self._now(), victims=told))

    def extenders_failed(self, message: str) -> None:
        """Record that extenders failed."""
        self._add(Answered(at=self._now(), error=message))

    def evicting(self, victims: Iterable[PodInfo]) -> None:
        """Note the victims of the current attempt."""
        self._victims = tuple([each.uid for each in victims])

    def decided(self, profile: str, pod: QueuedPod, result: AttemptResult) -> None:
        """Record the result of an attempt."""
        self._deciding = False
        self._queued_in.pop(pod.info.uid, None)
        info, status, diagnosis = pod.info, result.status, result.diagnosis
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
                node=result.node_name,
                code=status.code.label,
                message=status.message,
                nominated=result.nominated_node,
                victims=self._victims,
                plugins=plugins,
                pending_plugins=waits,
                evaluated=result.evaluated_nodes,
                feasible=result.feasible_nodes,
            )
        )

    def abandoned(self) -> None:
        """Note that an attempt has no result."""
        self._deciding = False

    def group_decided(
        self, profile: str, group: GroupInfo, members: Sequence[tuple[QueuedPod, GroupMemberResult]]
    ) -> None:
        """Record the result of an attempt at a group."""
        self._deciding = False
        for member in group.pods:
            self._queued_in.pop(member.uid, None)
        changed = (self._unless_known(pod.pod) for pod in group.pods)
        self._add(
            GroupDecided(
                at=self._now(),
                group_kind=group.key.kind.value,
                namespace=group.key.namespace,
                name=group.key.name,
                profile=profile,
                uids=tuple([pod.uid for pod in group.pods]),
                pods=tuple([pod for pod in changed if pod is not None]),
                members=tuple([_member(pod, result) for pod, result in members]),
                victims=self._victims,
            )
        )

    def claim_decided(
        self, uid: str, allocation: AllocationResult | None, is_written: bool
    ) -> None:
        """Record that devices were chosen for a claim, or that the choice was dropped.

        What is tried during an attempt is given back in it, and not recorded.
        """
        if self._deciding:
            return
        if allocation is None:
            self._add(ClaimDropped(at=self._now(), uid=uid, written=is_written))
        else:
            self._add(ClaimDecided(at=self._now(), uid=uid, allocation=allocation))

    def raised(self, pod: QueuedPod, bug: Exception) -> None:
        """Record an exception in an attempt; does nothing if it had a result before."""
        if not self._deciding:
            return
        self._deciding = False
        self._queued_in.pop(pod.info.uid, None)
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
        """Record that a pod could not be bound."""
        self._add(
            Returned(at=self._now(), uid=pod.uid, message=status.message, plugin=status.plugin)
        )

    def assumed(self, pod: Pod, node_name: str) -> None:
        """Record an assumed pod."""
        uid = pod.metadata.uid
        known = self._unless_known(pod)
        self._add(Assumed(at=self._now(), uid=uid, node=node_name, pod=known))

    def forgotten(self, uid: str) -> None:
        """Record that an assumption was undone."""
        self._add(Forgotten(at=self._now(), uid=uid))

    def nominated(self, pod: Pod, node_name: str) -> None:
        """Record a nomination."""
        uid = pod.metadata.uid
        known = self._unless_known(pod)
        self._add(Nominated(at=self._now(), uid=uid, node=node_name, pod=known))

    def unnominated(self, uid: str) -> None:
        """Record that a nomination was cleared."""
        self._add(Unnominated(at=self._now(), uid=uid))

    def _unless_known(self, pod: Pod) -> Pod | None:
        return None if self._pending.get(pod.metadata.uid) is pod else pod


def _member(pod: QueuedPod, result: GroupMemberResult) -> MemberDecided:
    meta = pod.info.pod.metadata
    return MemberDecided(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        node=result.decision.node_name if result.binds else "",
        code=result.status.code.label,
        message=result.status.message,
        nominated=result.nominated_node,
        attempt=pod.attempts,
    )
