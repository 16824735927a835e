"""CheapestNode: prefer the cheapest of the feasible nodes.

The price is a label of the node, in any currency and per any time, as long as it is the same for
all: ``example.com/price: "0.34"``. The price of a node without the label is an argument: somewhat
above the highest one, since the cheapest node gets 100 and the most expensive 0.
"""

from __future__ import annotations

from kubesched.framework.node_by_node import CachedNodeScore, LowestWins, NodeView, SignatureView
from kubesched.framework.plugin import NODE
from kubesched.plugin_loading import Arguments

#: Prices are compared to a ten-thousandth: scores are whole numbers.
PRECISION = 10_000


class CheapestNode(LowestWins, CachedNodeScore):
    """Scores by a label."""

    name = "CheapestNode"
    # The price does not depend on the node's pods: no new call when those change.
    reads = NODE

    class Args(Arguments):
        """What the configuration may say."""

        price_label: str = "example.com/price"
        unknown_price: float = 2.0

        def __post_init__(self) -> None:
            if self.unknown_price < 0:
                raise ValueError("unknownPrice must not be negative")

    def __init__(self, args: Args) -> None:
        self._args = args

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        """Return the price; `LowestWins` makes the lowest one 100 and the highest one 0."""
        text = node.labels.get(self._args.price_label)
        price = self._args.unknown_price if text is None else float(text)
        return round(price * PRECISION)
