"""PackGpus: fill up nodes that have GPUs in use, so that others stay free for pods that want many.

    score = 100 · (GPUs in use + GPUs that the pod wants) / GPUs of the node

Vectorised: one expression over arrays with one element a node. Pods that want no GPU are none of
its business, and it says so once for each signature of pod. After a placement one node has changed,
for which arrays are slow; `row_scorer` is there for that, and could be left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.plugin import MAX_NODE_SCORE, RowScore, SignaturePreScore
from kubesched.framework.status import SKIP, SUCCESS, Status
from kubesched.plugin_loading import Arguments


class PackGpus(SignaturePreScore, RowScore):
    """Scores by the share of GPUs in use."""

    name = "PackGpus"

    class Args(Arguments):
        """What the configuration may say."""

        resource: str = "nvidia.com/gpu"

    def __init__(self, args: Args) -> None:
        self._resource = args.resource

    def pre_score(self, signature: PodSignature) -> Status:
        """Leave pods alone that want no GPU."""
        return SUCCESS if signature.requests.amounts.get(self._resource) else SKIP

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Return the share in percent that would be in use with the pod."""
        number = nodes.table.resources.find(self._resource)
        if number is None:
            return np.zeros(len(nodes), dtype=np.int64)
        offered = nodes.allocatable(number)
        used = nodes.requested(number) + signature.requests.amounts[self._resource]
        # Nodes without GPUs are scored along with the others, although no such pod fits there.
        share = MAX_NODE_SCORE * used // np.maximum(offered, 1)
        return np.clip(share, 0, MAX_NODE_SCORE)

    def row_scorer(self, signature: PodSignature, table: NodeTable) -> Callable[[int], int] | None:
        """Return the same for one node."""
        number, wanted = table.resources.find(self._resource), signature.requests.amounts
        if number is None:
            return None

        def score(row: int) -> int:
            used = table.requested.item(number, row) + wanted[self._resource]
            share = MAX_NODE_SCORE * used // max(table.allocatable.item(number, row), 1)
            return min(max(share, 0), MAX_NODE_SCORE)

        return score
