"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

import numpy as np

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.plugin import (
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
    reads_pods = False
    reads_requests = False

    def events_to_register(self) -> Registrations:
        """The node may come."""
        return [Registration(ClusterEvent(Resource.NODE, Action.ADD))]

    def pre_filter(self, signature: PodSignature) -> PreFilterResult:
        """Look at no other node, so that none of them is a candidate for preemption."""
        named = signature.node_name
        return PreFilterResult(node_names=frozenset((named,))) if named else NOTHING_AGAINST

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Turn every other node away."""
        wanted = signature.node_name
        if not wanted:
            return ALL_PASS
        row = nodes.table.row_of(wanted)
        if row is None:
            return reject(np.ones(len(nodes), dtype=np.bool_), OTHER_NAME)
        return reject(nodes.row_numbers() != row, OTHER_NAME)
