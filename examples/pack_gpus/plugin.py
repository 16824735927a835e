"""PackGpus: fill up nodes that have GPUs in use, so that others stay free for pods that want many.

    score = 100 · (GPUs in use + GPUs that the pod wants) / GPUs of the node

Vectorised: one expression over arrays with one element a node. Pods that request no GPU are not
scored, which PreScore says once for each pod signature.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
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
        """Skip pods that request no GPU."""
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
