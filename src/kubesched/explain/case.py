"""One pod in a cluster, and the effect of hypothetical changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import Final, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kubesched.api.core import Node, Pod, PodSpec
from kubesched.api.resource import ResourceClaim, ResourceSlice
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError
from kubesched.explain.owners import workload_of
from kubesched.explain.reasons import Reasons, all_reasons
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Status
from kubesched.snapshot.world import World, is_bound_to_its_node

NOWHERE: Final[IndexArray] = np.zeros(0, dtype=np.intp)

#: Controllers that replace their pods when the template changes.
_ROLLED_OUT: Final = ("Deployment", "StatefulSet", "DaemonSet")

#: The subject of a change.
Kind = Literal[
    "schedulerName",
    "schedulingGates",
    "request",
    "tolerate",
    "nodeSelector",
    "nodeAffinity",
    "spread",
    "pod affinity",
    "pod anti-affinity",
    "ports",
    "uncordon",
    "bring back",
    "create",
    "podGroup",
    "deviceCount",
    "deviceToleration",
    "deviceSelector",
    "deviceConstraint",
    "evict",
    "node",
    "several",
]


class Proposal(Struct, frozen=True, kw_only=True):
    """A change that may help; the engine tells whether it does."""

    kind: Kind
    title: str
    #: cost, about 0 to 1 for each thing that is changed
    cost: float
    steps: int = 1
    #: the changed pod
    pod: Pod
    #: pods to evict
    evict: tuple[PodInfo, ...] = ()
    #: changed or new nodes
    nodes: tuple[Node, ...] = ()
    #: pods and slices of devices that come with new nodes
    arriving: tuple[Pod, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    #: changed claims of the pod
    claims: tuple[ResourceClaim, ...] = ()
    #: placed pods of the same workload that change with the pod, as their template does
    siblings: tuple[Pod, ...] = ()


class Case:
    """A pod to be placed."""

    def __init__(self, world: World, framework: Framework, pod: Pod) -> None:
        self.world = world
        self.table = world.table
        self.framework = framework
        #: without a node, and without its nomination
        self.pod = replace(
            pod,
            spec=replace(pod.spec, node_name=""),
            status=replace(pod.status, nominated_node_name=""),
        )
        self.info = world.compile(self.pod)
        #: node and victims that preemption has chosen for the pod
        self.preempted: tuple[str, tuple[PodInfo, ...]] | None = None

    @cached_property
    def reasons(self) -> Reasons:
        """Why each node rejects the pod."""
        return all_reasons(self.framework, self.table, self.info)

    def made_anew(self) -> list[Pod]:
        """Return the placed pods that a change of the pod's template replaces, too."""
        replica_sets = self.world.cluster.workloads.replica_sets
        workload = workload_of(self.pod, replica_sets)
        if workload is None or workload.kind not in _ROLLED_OUT:
            return []
        return [
            each
            for each in self.world.placed.values()
            if each.metadata.namespace == workload.namespace
            and each.metadata.uid != self.pod.metadata.uid
            and workload_of(each, replica_sets) == workload
        ]

    def with_spec(self, change: Callable[[PodSpec], PodSpec]) -> Pod:
        """Return the pod with another spec."""
        return replace(self.pod, spec=change(self.pod.spec))

    def feasible(self, pod: Pod | None = None) -> IndexArray:
        """Return the feasible rows of the pod, or of a changed one, in the current state."""
        try:
            info = self.info if pod is None else self.world.compile(pod)
            found = self.framework.evaluator.look(CycleState(), info)
        except (AttemptError, ObjectError):
            return NOWHERE
        return NOWHERE if isinstance(found, Diagnosis) else found.rows()

    def first_rejection(self, pod: Pod, row: int) -> Status | None:
        """Return why a row rejects a changed pod, None if it does not."""
        state = CycleState()
        try:
            info = self.world.compile(pod)
            found = self.framework.evaluator.look(state, info)
            if isinstance(found, Diagnosis) and found.pre_filter is not None:
                return found.pre_filter
            return self.framework.evaluator.status_on(state, info, row)
        except AttemptError as failed:
            return failed.status

    @contextmanager
    def applied(self, proposal: Proposal) -> Iterator[None]:
        """Apply a proposal to the cluster for a while."""
        with self.world.cluster.transaction() as tx:
            for info in proposal.evict:
                tx.remove(info.uid)
                tx.release(info.pod)
            devices = self.world.cluster.devices
            for each in proposal.slices:
                tx.put_object(devices.slices, each)
            for claim in proposal.claims:
                tx.put_object(devices.claims, claim)
            for node in proposal.nodes:
                tx.put_node(node)
            for pod in proposal.siblings:
                tx.remove(pod.metadata.uid)
            for pod in chain(proposal.siblings, proposal.arriving):
                tx.add(pod)
            yield

    def fits_without(self, pods: Iterable[PodInfo]) -> bool:
        """Tell whether the pod fits somewhere if others were gone."""
        with self.world.cluster.transaction() as tx:
            for each in pods:
                tx.remove(each.uid)
                tx.release(each.pod)
            return bool(len(self.feasible()))

    def would_come_back(self, other: PodInfo) -> bool:
        """Tell whether evicting a pod gains nothing.

        One of higher priority is scheduled first again, a DaemonSet's on the same node, and one of
        the same controller takes the place of the pod.
        """
        return (
            other.priority > self.info.priority
            or is_bound_to_its_node(other.pod)
            or self._is_sibling(other)
        )

    def _is_sibling(self, other: PodInfo) -> bool:
        own = {each.uid for each in self.pod.metadata.owner_references if each.controller}
        return any(
            each.controller and each.uid in own for each in other.pod.metadata.owner_references
        )

    def outcome(self, proposal: Proposal) -> IndexArray:
        """Return the feasible rows after a proposal."""
        with self.applied(proposal):
            return self.feasible(proposal.pod)
