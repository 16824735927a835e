"""DynamicResources: devices that pods claim.

Allocating devices is not available in this version. A pod that claims some is turned away with a
message that says so, rather than started on a node that cannot serve it. For all other pods the
plugin says what it says in kube-scheduler: there is nothing to do, and no claim to take back.
"""

from __future__ import annotations

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import (
    NOTHING_TO_FILTER,
    PostFilter,
    PostFilterResult,
    PreFilter,
    PreFilterResult,
    Score,
)
from kubesched.framework.status import error, unresolvable, unschedulable
from kubesched.queue.hints import Registrations

NOT_AVAILABLE = PreFilterResult(
    unresolvable("resource claims are not supported by this version of kubesched")
)
#: There is no claim to take back, which is not worth a word.
NO_CLAIMS = PostFilterResult(unschedulable())
#: An earlier plugin turned the pod away before this one saw it.
NOT_SEEN = PostFilterResult(error("not found"))

#: Under this key of the cycle state stands that PreFilter saw the pod.
SEEN = "DynamicResources"


class DynamicResources(PreFilter, PostFilter, Score):
    """Turns pods away that claim devices."""

    name = "DynamicResources"
    proven_range = True
    skips_resizes = True

    def events_to_register(self) -> Registrations:
        """Nothing that happens helps."""
        return []

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:  # noqa: ARG002
        """Turn the pod away if it claims devices."""
        state.write(SEEN, True)
        return NOT_AVAILABLE if pod.pod.spec.resource_claims else NOTHING_TO_FILTER

    def post_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        diagnosis: Diagnosis,  # noqa: ARG002
    ) -> PostFilterResult:
        """Say that no claim can be taken back."""
        return NO_CLAIMS if state.get(SEEN) or pod.signature.is_resize else NOT_SEEN

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> None:  # noqa: ARG002
        """Prefer no node: without claims there is nothing that one of them would serve better."""
        return
