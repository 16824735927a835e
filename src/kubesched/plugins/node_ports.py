"""NodePorts: two pods cannot have the same host port of one node."""

from __future__ import annotations

from kubesched.api.core import Pod
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_signature import PodSignature, host_ports
from kubesched.framework.plugin import (
    NOTHING_AGAINST,
    NOTHING_TO_FILTER,
    PreFilterResult,
    RowFilter,
    SignaturePreFilter,
)
from kubesched.framework.status import unschedulable
from kubesched.framework.verdict import ALL_PASS, Verdict, reject
from kubesched.plugins.changes import has_place
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

PORT_TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts(SignaturePreFilter, RowFilter):
    """Checks that the host ports which a pod wants are free."""

    name = "NodePorts"
    reads_pods = True
    skips_resizes = True

    def events_to_register(self) -> Registrations:
        """A pod that goes and had one of the ports, or a node that comes."""
        return [
            Registration(
                ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), signature_hint=_after_deletion
            ),
            Registration(ClusterEvent(Resource.NODE, Action.ADD)),
        ]

    def pre_filter(self, signature: PodSignature) -> PreFilterResult:
        """Skip pods without host ports."""
        return NOTHING_AGAINST if signature.host_ports else NOTHING_TO_FILTER

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Turn nodes away where a port is taken."""
        taken = nodes.table.ports.rows_in_conflict(signature.host_ports)
        if not taken:
            return ALL_PASS
        return reject(nodes.among(taken), PORT_TAKEN)


def _after_deletion(signature: PodSignature, change: Change[Pod]) -> bool:
    """Ask whether the pod that is gone had, or was to have, a port that is wanted."""
    gone = change.old
    if gone is None or not has_place(gone):
        return False
    wanted = signature.host_ports
    return any(
        (port.protocol, port.port) == (free.protocol, free.port) and port.conflicts(free.address)
        for free in host_ports(gone.spec)
        for port in wanted
    )
