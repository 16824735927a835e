"""Why pods wait for a node, all of them by cause, or those of one workload.

    pending pods ── pods alike ──> one attempt ──> Cause ──> with the same reasons: one WaitingCause
                                                              └── one example, with its details

Pods of a workload differ in their names, so that thousands of pods take few attempts. Causes are
told apart by the reasons that nodes reject a pod for, regardless of how many nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from difflib import get_close_matches
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.cluster.pod_groups import named_group
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.errors import ObjectError
from kubesched.explain.explaining import ExplainOptions, explain
from kubesched.explain.owners import WorkloadName, known_workloads, replica_set_of, workload_of
from kubesched.explain.report import (
    PodsOnNode,
    WaitingCause,
    WaitingReport,
    WaitingWorkload,
    WorkloadExplanation,
)
from kubesched.explain.unclaimed import is_unclaimed, unclaimed_message
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import listed
from kubesched.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from kubesched.snapshot.world import World

_QUOTED: Final = re.compile(r'"[^"]*"')
_SIMILAR: Final = 3
#: Of the example of a cause; an explanation of the pod itself has all.
_MOST_DETAILS: Final = 10
_BRIEFLY: Final = ExplainOptions(changes=False)

NOMINATED: Final = "Nominated"
_FITS: Final = "fits now, and is about to be tried"


class Cause(Struct, frozen=True):
    """Why a pod waits."""

    outcome: str
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """What pods with the same cause have in common: not the names of their own objects."""
        return self.outcome, _QUOTED.sub('""', self.text)


def waiting_pods(world: World, namespace: str = "") -> WaitingReport:
    """Return why pods wait for a node; those of a namespace, or all."""
    waiting = [pod for (where, _), pod in world.pending.items() if namespace in ("", where)]
    return WaitingReport(
        waiting=len(waiting),
        placed=sum(namespace in ("", where) for where, _ in world.placed),
        nodes=len(world.table),
        namespace=namespace,
        causes=_Causes(world).of(waiting),
        notes=tuple(world.notes),
    )


def explain_workload(world: World, workload: WorkloadName) -> WorkloadExplanation:
    """Return where the pods of a workload are, and why others wait."""
    replica_sets = world.cluster.workloads.replica_sets

    def is_of(pod: Pod) -> bool:
        return workload in (workload_of(pod, replica_sets), replica_set_of(pod))

    waiting = list(filter(is_of, world.pending.values()))
    nodes = Counter(pod.spec.node_name for pod in world.placed.values() if is_of(pod))
    return WorkloadExplanation(
        kind=workload.kind,
        namespace=workload.namespace,
        name=workload.name,
        waiting=len(waiting),
        placed=nodes.total(),
        causes=_Causes(world).of(waiting),
        nodes=tuple(PodsOnNode(*each) for each in nodes.most_common()),
        notes=tuple(world.notes),
    )


def find_workload(world: World, kind: str, namespace: str, name: str) -> WorkloadName:
    """Return a workload by its kind, in any case, and name.

    Raises ObjectError that names similar ones if there is none.
    """
    pods = (*world.pending.values(), *world.placed.values())
    known = dict.fromkeys(known_workloads(world, pods))
    of_kind = [each for each in known if each.kind.lower() == kind.lower()]
    for each in of_kind:
        if (each.namespace, each.name) == (namespace, name):
            return each
    same = [each for each in of_kind if each.name == name]
    names = {each.name for each in of_kind if each.namespace == namespace}
    near = [
        WorkloadName(kind, namespace, each) for each in get_close_matches(name, names, n=_SIMILAR)
    ]
    others = [each for each in known if (each.namespace, each.name) == (namespace, name)]
    found = [*same, *near] or others
    found = found or of_kind
    hint = listed(f"{each.kind.lower()} {each.namespace}/{each.name}" for each in found)
    raise ObjectError(
        f"{kind.lower()} {namespace}/{name} not found among the owners of pods"
        + (f"; there is {hint}" if hint else "")
    )


class _Causes:
    """Finds out why pods wait, once for those that are alike."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[Hashable, Cause] = {}

    def of(self, pods: Iterable[Pod]) -> tuple[WaitingCause, ...]:
        """Return the causes, the most common first."""
        found: dict[Hashable, tuple[Cause, list[Pod]]] = {}
        for pod in pods:
            cause = self._cause(pod)
            found.setdefault(cause.key, (cause, []))[1].append(pod)
        ranked = sorted(found.values(), key=lambda each: (-len(each[1]), each[0].text))
        return tuple(self._told(*each) for each in ranked)

    def _told(self, cause: Cause, pods: list[Pod]) -> WaitingCause:
        replica_sets = self._world.cluster.workloads.replica_sets
        counts = Counter(workload_of(pod, replica_sets) or _by_itself(pod) for pod in pods)
        said = explain(self._world, pods[0], _BRIEFLY)
        return WaitingCause(
            outcome=cause.outcome,
            text=cause.text,
            pods=len(pods),
            example=said.pod,
            message=said.message,
            reasons=tuple(
                replace(each, details=each.details[:_MOST_DETAILS]) for each in said.reasons
            )
            if cause.outcome == "Unschedulable"
            else (),
            pod_reasons=said.pod_reasons,
            workloads=tuple(WaitingWorkload(*each, count) for each, count in counts.most_common()),
            names=tuple(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods),
        )

    def _cause(self, pod: Pod) -> Cause:
        world = self._world
        if is_unclaimed(pod, world.frameworks):
            return self._once(("unclaimed", pod.spec.scheduler_name), lambda: self._unclaimed(pod))
        group = named_group(pod)
        if group is not None and world.engine.groups is not None:
            known = world.cluster.groups.objects.get(group.namespace, group.name)
            if known is not None:
                return self._once(group, lambda: _of_group(world, pod))
        try:
            info = world.compile(pod)
        except ObjectError as invalid:
            return Cause("Error", str(invalid))
        if info.volumes is not NO_VOLUMES or pod.spec.resource_claims:
            # Claims are the pod's own.
            return self._attempt(info)
        owners = pod.metadata.owner_references
        key = info.signature, info.labels, owners, pod.spec.scheduler_name, _state_of(pod)
        return self._once(key, lambda: self._attempt(info))

    def _once(self, key: Hashable, find: Callable[[], Cause]) -> Cause:
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]

    def _unclaimed(self, pod: Pod) -> Cause:
        return Cause("Unclaimed", unclaimed_message(pod, self._world.frameworks))

    def _attempt(self, info: PodInfo) -> Cause:
        framework = self._world.engine.framework_of(info.pod.spec.scheduler_name)
        gate = framework.gate(info)
        if not gate.ok:
            return Cause("Gated", gate.message)
        try:
            found = framework.evaluator.look(CycleState(), info)
        except AttemptError as failed:
            return Cause("Error", failed.status.message)
        if not isinstance(found, Diagnosis):
            return Cause("Schedulable", _FITS)
        if info.pod.status.nominated_node_name:
            return Cause(NOMINATED, "pods that it preempts are being terminated")
        return Cause("Unschedulable", _reasons_of(found))


def _reasons_of(found: Diagnosis) -> str:
    if found.pre_filter is not None:
        return found.pre_filter.message
    # By how many nodes differs from pod to pod.
    return ", ".join(sorted(found.reason_counts())) or NO_NODES_AVAILABLE


def _of_group(world: World, pod: Pod) -> Cause:
    said = explain(world, pod, _BRIEFLY)
    group = said.group
    if group is None:
        return Cause(said.outcome, said.message or _FITS)
    return Cause(group.outcome, f"PodGroup {group.group}: {group.text}")


def _by_itself(pod: Pod) -> WorkloadName:
    return WorkloadName("Pod", pod.metadata.namespace, pod.metadata.name)


def _state_of(pod: Pod) -> Hashable:
    return pod.status.nominated_node_name, tuple(each.name for each in pod.spec.scheduling_gates)
