"""A plugin that does as little as a vectorised one can: what it costs, all of them cost.

It depends on the pods of a node, so it is asked again after each placement. All nodes get the same,
so that pods go where they would have gone without it.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.plugin import RowScore


class Arrays(RowScore):
    """Vectorised, depends on pods, and has nothing but arrays."""

    name = "Arrays"

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Return the same for all nodes, so that pods go where they would have gone."""
        return (nodes.allocatable(0) >= nodes.requested(0)) * np.int64(50)
