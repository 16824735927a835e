"""NodeName: a pod with ``spec.nodeName`` fits on that node only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.plugin import (
    NODE,
    NOTHING_AGAINST,
    PreFilterResult,
    RowFilter,
    SignaturePreFilter,
)
from kubesched.framework.status import unresolvable
from kubesched.framework.verdict import ALL_PASS, Verdict, reject
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Registration, Registrations

OTHER_NAME = unresolvable("node(s) didn't match the requested node name")


class NodeName(SignaturePreFilter, RowFilter):
    """Checks the node against ``spec.nodeName``."""

    name = "NodeName"
    reads = NODE

    def events_to_register(self) -> Registrations:
        """An added node."""
        return [Registration(ClusterEvent(Resource.NODE, Action.ADD))]

    def pre_filter(self, signature: PodSignature) -> PreFilterResult:
        """Restrict the pod to its node, so that no other is a candidate for preemption."""
        named = signature.node_name
        return PreFilterResult(node_names=frozenset((named,))) if named else NOTHING_AGAINST

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Reject every other node."""
        wanted = signature.node_name
        if not wanted:
            return ALL_PASS
        row = nodes.table.row_of(wanted)
        if row is None:
            return reject(np.ones(len(nodes), dtype=np.bool_), OTHER_NAME)
        return reject(nodes.row_numbers() != row, OTHER_NAME)

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterator[Detail]:  # noqa: ARG002
        """Name the pod's node."""
        wanted = pod.signature.node_name
        there = "" if nodes.table.row_of(wanted) is not None else ", which does not exist"
        yield Detail(f"spec.nodeName is {wanted}{there}", {"nodeName": wanted})
