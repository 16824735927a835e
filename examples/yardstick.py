"""A minimal vectorised plugin: its cost is the base cost of all of them.

It depends on the pods of a node, so it is called again after each placement. All nodes get the same
score, so that placements do not change.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.plugin import RowScore


class Arrays(RowScore):
    """Vectorised, depends on pods, and has only the array form."""

    name = "Arrays"

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Return the same for all nodes, so that placements do not change."""
        return (nodes.allocatable(0) >= nodes.requested(0)) * np.int64(50)
