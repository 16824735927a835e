"""Scores by domain: one value per domain, and the domain of each node.

    values   [domain] -> score
    domains  [node] -> domain, None: every node is a domain by itself
    counted  [domain] -> whether nodes of the domain take part in normalization

All nodes of a zone or rack have the same number of pods in their domain. So a plugin scores
domains, the runtime normalizes and weights domains, and only the final sum is expanded to nodes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array


class DomainScores(Struct, frozen=True):
    """The score of each node, factored into the node's domain and the domain's score."""

    values: Int64Array
    domains: IndexArray | None
    #: a domain that is not counted gets 0, and is left out of normalization
    counted: BoolArray

    def of_nodes(self) -> Int64Array:
        """Return the score of each node."""
        return self.values if self.domains is None else self.values.take(self.domains)

    def normalized(
        self, normalize: Callable[[Int64Array], Int64Array | None]
    ) -> DomainScores | None:
        """Return normalized scores; `normalize` gets one score per counted domain."""
        among = normalize(self.values[self.counted])
        if among is None:
            return None
        values = np.zeros_like(self.values)
        values[self.counted] = among
        return replace(self, values=values)

    def __len__(self) -> int:
        return len(self.values if self.domains is None else self.domains)
