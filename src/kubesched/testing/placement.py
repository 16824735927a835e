"""The result of scheduling pods in a test, expectations, and their failure messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

#: Maximum number of nodes in a message.
SHOWN_NODES = 12


class PluginScoreColumn(Struct, frozen=True):
    """One plugin's scores."""

    plugin: str
    weight: int
    #: node → score, 0 to 100, unweighted
    scores: Mapping[str, int]


class PodPlacement(Struct, frozen=True, kw_only=True):
    """The result of scheduling one pod."""

    pod: str
    #: its node, "" if none
    node: str = ""
    zone: str = ""
    #: why it is unschedulable, as in its condition
    message: str = ""
    #: whether there was an error, as opposed to a rejection
    is_error: bool = False
    #: the nominated node, "" if none
    nominated_node: str = ""
    #: the victims
    victims: tuple[str, ...] = ()
    #: the devices that its claims got, as pool/device
    devices: tuple[str, ...] = ()
    #: node → why it rejects the pod
    refused: Mapping[str, str] = {}
    #: node → the numbers and names behind that, if the plugin gives any
    details: Mapping[str, str] = {}
    scores: tuple[PluginScoreColumn, ...] = ()
    #: node → sum of the weighted scores
    totals: Mapping[str, int] = {}

    def lands_on(self, *nodes: str) -> PodPlacement:
        """Expect that the pod goes to this node, or to one of these, and not by chance."""
        __tracebackhide__ = True
        wanted = " or ".join(nodes)
        if self.node not in nodes:
            where = f"lands on {self.node}" if self.node else "stays pending"
            raise AssertionError(self._text(f"{self.pod} {where}, expected {wanted}"))
        best = max(self.totals.values(), default=0)
        others = sorted(n for n, total in self.totals.items() if total == best and n not in nodes)
        if others:
            also = ", ".join(others[:SHOWN_NODES])
            raise AssertionError(
                self._text(f"{self.pod} lands on {self.node} only by chance: as good are {also}")
            )
        return self

    def avoids(self, *nodes: str) -> PodPlacement:
        """Expect that the pod is placed, but on none of these."""
        __tracebackhide__ = True
        if not self.node:
            raise AssertionError(self._text(f"{self.pod} stays pending, expected it to land"))
        best = max(self.totals.values(), default=0)
        possible = {self.node} | {n for n, total in self.totals.items() if total == best}
        bad = sorted(possible & set(nodes))
        if bad:
            raise AssertionError(self._text(f"{self.pod} may land on {', '.join(bad)}"))
        return self

    def stays_pending_because(self, reason: str) -> PodPlacement:
        """Expect that the pod is unschedulable, and that its condition has this text."""
        __tracebackhide__ = True
        if self.node:
            raise AssertionError(self._text(f"{self.pod} lands on {self.node}, expected none"))
        if reason not in self.message:
            raise AssertionError(self._text(f"{self.pod} stays pending, but not for {reason!r}"))
        return self

    def __str__(self) -> str:
        return self._text(f"{self.pod} {f'lands on {self.node}' if self.node else 'is pending'}")

    # --- messages ---------------------------------------------------------------------------

    def _text(self, headline: str) -> str:
        parts = [headline, *self._told(), *self._table(), *self._refusals()]
        return "\n".join(parts)

    def _told(self) -> list[str]:
        told = [f"  {self.message}"] if self.message else []
        if self.nominated_node:
            told.append(f"  room is made on {self.nominated_node}: {', '.join(self.victims)}")
        return told

    def _table(self) -> list[str]:
        if not self.totals:
            return []
        ranked = sorted(self.totals, key=lambda node: (-self.totals[node], node))
        header = ["node", *(f"{each.plugin} x{each.weight}" for each in self.scores), "total"]
        rows = [
            [node, *(str(each.scores[node]) for each in self.scores), str(self.totals[node])]
            for node in ranked[:SHOWN_NODES]
        ]
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines = ["  " + "  ".join(_aligned(row, widths)).rstrip() for row in ([header, *rows])]
        return lines + _and_more(len(ranked))

    def _refusals(self) -> list[str]:
        by_reason: dict[str, list[str]] = {}
        for node, reason in self.refused.items():
            by_reason.setdefault(reason, []).append(node)
        return [
            f"  not {', '.join(nodes[:SHOWN_NODES])}{' …' if len(nodes) > SHOWN_NODES else ''}: "
            f"{reason}"
            for reason, nodes in by_reason.items()
        ]


class PodPlacements(Sequence[PodPlacement]):
    """The results of scheduling several pods in sequence."""

    def __init__(self, placements: Sequence[PodPlacement], zones: Sequence[str]) -> None:
        self._placements = list(placements)
        self._zones = list(zones)

    def __len__(self) -> int:
        return len(self._placements)

    def __getitem__(self, index: int) -> PodPlacement:  # type: ignore[override]
        return self._placements[index]

    def __iter__(self) -> Iterator[PodPlacement]:
        return iter(self._placements)

    @property
    def nodes(self) -> list[str]:
        """The node of each, "" for none."""
        return [each.node for each in self._placements]

    @property
    def per_node(self) -> Counter[str]:
        """The number of pods on each node."""
        return Counter(node for node in self.nodes if node)

    @property
    def per_zone(self) -> dict[str, int]:
        """The number of pods in each zone of the cluster."""
        counts = Counter(each.zone for each in self._placements if each.node)
        return {zone: counts[zone] for zone in self._zones}

    def all_land(self) -> PodPlacements:
        """Expect that none of them stays pending."""
        __tracebackhide__ = True
        pending = [each for each in self._placements if not each.node]
        if pending:
            text = f"{len(pending)} of {len(self)} pods stay pending, the first is:"
            raise AssertionError(f"{text}\n{pending[0]}")
        return self

    def spreads_over_zones(self, *, max_skew: int = 1) -> PodPlacements:
        """Expect that all land, and that no two zones differ by more than `max_skew` pods."""
        __tracebackhide__ = True
        self.all_land()
        counts = self.per_zone
        if not counts:
            raise AssertionError("no node has a zone: make nodes with zones=3")
        skew = max(counts.values()) - min(counts.values())
        if skew > max_skew:
            shown = ", ".join(f"{zone}: {count}" for zone, count in counts.items())
            text = f"{len(self)} pods over zones differ by {skew}, expected {max_skew} at most"
            raise AssertionError(f"{text}\n  {shown}")
        return self


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first = row[0].ljust(widths[0])
    return [first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]


def _and_more(count: int) -> list[str]:
    return [f"  … and {count - SHOWN_NODES} more"] if count > SHOWN_NODES else []
