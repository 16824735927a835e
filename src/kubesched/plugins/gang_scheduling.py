"""GangScheduling: pods that are to be placed together, or not at all.

Placing groups is not available in this version. With the feature gate GenericWorkload, by which
kube-scheduler heeds ``spec.schedulingGroup``, a pod of a group is rejected with a message that says
so, rather than started without the others. Without the gate the field is ignored, as there.
"""

from __future__ import annotations

from typing import Final

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    NOTHING_TO_FILTER,
    Permit,
    PreEnqueue,
    PreFilter,
    PreFilterResult,
)
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.queue.hints import Registrations

#: The gate by which kube-scheduler heeds groups at all, with or without this plugin.
GATE: Final = "GenericWorkload"


class GangScheduling(PreEnqueue, PreFilter, Permit):
    """Rejects pods of groups.

    In PreFilter, because that is where the pod gets a condition that its owner sees; a pod that
    PreEnqueue holds back has none. The other two points are those that the plugin has in
    kube-scheduler, so that configurations may name it there.
    """

    name = "GangScheduling"

    def events_to_register(self) -> Registrations:
        """Nothing that happens helps: a pod cannot leave its group."""
        return []

    def pre_enqueue(self, pod: PodInfo) -> Status:  # noqa: ARG002
        """Let all pods be tried."""
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:  # noqa: ARG002
        """Reject the pod if it belongs to a group."""
        group = pod.pod.spec.scheduling_group
        if group is None:
            return NOTHING_TO_FILTER
        return PreFilterResult(
            unresolvable(
                f'pod group "{group.pod_group_name}": groups are not supported by this version of '
                f"kubesched; without the feature gate {GATE}, pods are scheduled one by one"
            )
        )

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:  # noqa: ARG002
        """Let all pods be bound."""
        return SUCCESS, 0.0
