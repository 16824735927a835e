"""ImageLocality: prefers nodes that already have the pod's images.

Each image that a node has counts with its size, scaled down by how few nodes have it, so that one
node which happens to have a large image does not attract everything. The sum is clamped and scaled:

    score = 100 · (clamp(sum, min, max) - min) / (max - min),  max = 1000 Mi · images

Images are those of containers, of init containers and of image volumes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.plugin import MAX_NODE_SCORE, NODE, RowScore

MIN_BYTES = 23 << 20
MAX_BYTES_PER_IMAGE = 1000 << 20


class ImageLocality(RowScore):
    """Scores nodes by the images they have."""

    name = "ImageLocality"
    reads = NODE
    proven_range = True

    def epoch(self, signature: PodSignature, table: NodeTable) -> Hashable:
        """The number of nodes, and of those with each image, which affects all of them."""
        spread = [state and state.spread for state in map(table.images.find, signature.images)]
        return len(table), *spread

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Score by the clamped sum of the sizes."""
        most = MAX_BYTES_PER_IMAGE * len(signature.images)
        if most <= MIN_BYTES:
            return np.zeros(len(nodes), dtype=np.int64)
        total = np.clip(self._bytes_present(signature, nodes, most), MIN_BYTES, most)
        return MAX_NODE_SCORE * (total - MIN_BYTES) // (most - MIN_BYTES)

    def _bytes_present(self, signature: PodSignature, nodes: NodeRows, most: int) -> Int64Array:
        """Return the bytes of the pod's images on each row; an image counts at most `most`."""
        present = np.zeros(nodes.table.size, dtype=np.int64)
        for image, times in Counter(signature.images).items():
            state = nodes.table.images.find(image)
            if state is not None:
                spread = len(state.rows) / len(nodes.table)
                present[state.rows_array()] += min(times * int(state.size_bytes * spread), most)
        return present[nodes.rows]
