"""DeferredPodScheduling: preemption for pods whose in-place resize the kubelet has deferred.

Such a pod is on its node already. It is scheduled there once more, so that pods of lower priority
can be preempted for it. It is never bound again: when the resize fits, the kubelet applies it.
Alpha, gate InPlacePodVerticalScalingSchedulerPreemption.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kubesched.api.core import Node
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    NODE,
    NOTHING_AGAINST,
    NOTHING_TO_FILTER,
    Permit,
    PreFilterResult,
    RowFilter,
    SignaturePreFilter,
)
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.framework.verdict import ALL_PASS, Verdict, first_of, reject
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

OTHER_NODE: Final = unresolvable("pod assigned to different node")
FORBIDDEN: Final = unresolvable("node had resize preemption disabled")
FITS: Final = unresolvable("pod resize fits, waiting for Kubelet actuation")


class DeferredPodScheduling(SignaturePreFilter, RowFilter, Permit):
    """Restricts resizes to nodes that allow preemption for them, and prevents a second binding."""

    name = "DeferredPodScheduling"
    reads = NODE

    def events_to_register(self) -> Registrations:
        """The pod's node is added, or allows preemption that it forbade."""
        policy = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_PREEMPTION_POLICY)
        return [
            Registration(policy, signature_hint=_after_policy_change),
            Registration(ClusterEvent(Resource.NODE, Action.ADD), signature_hint=_after_node_came),
        ]

    def pre_filter(self, signature: PodSignature) -> PreFilterResult:
        """Skip pods that have no node yet."""
        return NOTHING_AGAINST if signature.is_resize else NOTHING_TO_FILTER

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Reject all nodes but the pod's, and that one if no pod may be preempted on it."""
        if not signature.is_resize:
            return ALL_PASS
        row = nodes.table.row_of(signature.node_name)
        if row is None:
            return reject(np.ones(len(nodes), dtype=np.bool_), OTHER_NODE)
        others = nodes.row_numbers() != row
        node = nodes.table.nodes[row]
        forbidden = ~others if node is not None and _forbids(node) else nodes.none()
        return first_of(reject(others, OTHER_NODE), reject(forbidden, FORBIDDEN))

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:  # noqa: ARG002
        """Leave a resize that fits to the kubelet."""
        return (FITS if pod.signature.is_resize else SUCCESS), 0.0


def _forbids(node: Node) -> bool:
    policy = node.spec.pod_preemption_policy
    return policy is not None and bool(policy.disable_resize_preemption)


def _is_own(signature: PodSignature, node: Node | None) -> bool:
    return node is not None and signature.is_resize and node.metadata.name == signature.node_name


def _after_policy_change(signature: PodSignature, change: Change[Node]) -> bool:
    """Return whether the pod's node allows preemption that it forbade."""
    old, new = change.old, change.new
    if old is None or new is None or not _is_own(signature, new):
        return False
    return _forbids(old) and not _forbids(new)


def _after_node_came(signature: PodSignature, change: Change[Node]) -> bool:
    """Return whether the pod's node was added, and allows preemption."""
    new = change.new
    return new is not None and _is_own(signature, new) and not _forbids(new)
