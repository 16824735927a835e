"""Scores by domain: few values, and which of them each node has.

    values   [domain] -> score
    domains  [node] -> domain, None: every node is a domain by itself
    counted  [domain] -> whether nodes of the domain take part in normalization

All nodes of a zone or rack have the same number of pods near them. So a plugin scores domains, the
runtime normalizes and weights domains, and only the sum of all plugins is made node by node.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array


class DomainScores(Struct, frozen=True):
    """The score of each node, factored into the score of its domain and the domain it is in."""

    values: Int64Array
    domains: IndexArray | None
    #: a domain that is left out gets 0, and does not count among the others
    counted: BoolArray

    def of_nodes(self) -> Int64Array:
        """Return the score of each node."""
        return self.values if self.domains is None else self.values.take(self.domains)

    def normalized(
        self, normalize: Callable[[Int64Array], Int64Array | None]
    ) -> DomainScores | None:
        """Return normalized scores, where `normalize` is shown each counted domain once."""
        among = normalize(self.values[self.counted])
        if among is None:
            return None
        values = np.zeros_like(self.values)
        values[self.counted] = among
        return replace(self, values=values)

    def __len__(self) -> int:
        return len(self.values if self.domains is None else self.domains)
