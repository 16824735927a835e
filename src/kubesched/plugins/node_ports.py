"""NodePorts: two pods cannot have the same host port of one node."""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.api.core import Pod
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature, host_ports
from kubesched.cluster.ports import ANY_ADDRESS, HostPort
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
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
    """Checks that the host ports that a pod requests are free."""

    name = "NodePorts"
    skips_resizes = True

    def events_to_register(self) -> Registrations:
        """A deleted pod with one of the ports, or an added node."""
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
        """Reject nodes where a port is taken."""
        taken = nodes.table.ports.rows_in_conflict(signature.host_ports)
        if not taken:
            return ALL_PASS
        return reject(nodes.among(taken), PORT_TAKEN)

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterator[Detail]:  # noqa: ARG002
        """Name the port, and the pod that has it."""
        for row in nodes.row_numbers().tolist():
            for other in nodes.table.pods[row].values():
                for port in pod.signature.host_ports:
                    if any(_is_same(port, each) for each in other.signature.host_ports):
                        yield _taken(port, other, row)


def _is_same(wanted: HostPort, taken: HostPort) -> bool:
    return wanted[:2] == taken[:2] and wanted.conflicts(taken.address)


def _taken(port: HostPort, by: PodInfo, row: int) -> Detail:
    address = "" if port.address == ANY_ADDRESS else f"{port.address}:"
    return Detail(
        f"host port {address}{port.port}/{port.protocol} is used by {by.full_name}",
        {
            "hostPort": port.port,
            "protocol": port.protocol,
            "hostIP": port.address,
            "pod": by.full_name,
        },
        rows=(row,),
    )


def _after_deletion(signature: PodSignature, change: Change[Pod]) -> bool:
    """Return whether the deleted pod had, or was nominated with, a requested port."""
    gone = change.old
    if gone is None or not has_place(gone):
        return False
    wanted = signature.host_ports
    return any(_is_same(port, free) for free in host_ports(gone.spec) for port in wanted)
