"""SchedulingGates: gates pods until their scheduling gates are removed."""

from __future__ import annotations

from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.plugin import PreEnqueue
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Registration, Registrations


class SchedulingGates(PreEnqueue):
    """Keeps gated pods out of the active queue."""

    name = "SchedulingGates"

    def events_to_register(self) -> Registrations:
        """Only the removal of the pod's last gate helps."""
        ungated = ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return [Registration(ungated)]

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Reject pods that have a gate."""
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        listed = " ".join(gate.name for gate in gates)
        return unresolvable(f"waiting for scheduling gates: [{listed}]")
