"""kube-scheduler's node order: one node of each zone in turn.

Zones are ordered by first appearance, nodes of a zone by arrival; a node that changes its zone goes
to the end of the new one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kubesched.api import names
from kubesched.api.core import Node
from kubesched.cluster.arrays import IndexArray

Zone = tuple[str, str]

_NO_ROWS: Final[IndexArray] = np.zeros(0, dtype=np.intp)
_NO_TURNS: Final[npt.NDArray[np.uint8]] = np.zeros(0, dtype=np.uint8)


class NodeOrder:
    """Rows by zone, and their interleaved order."""

    def __init__(self) -> None:
        #: zone → rows, both in order of arrival (a dict is an ordered set)
        self._zones: dict[Zone, dict[int, None]] = {}
        self._zone_of: dict[int, Zone] = {}
        #: the same rows as arrays, of zones that did not change since
        self._arrays: dict[Zone, IndexArray] = {}
        self._order: IndexArray | None = None
        self._positions: IndexArray | None = None

    def place(self, row: int, node: Node) -> None:
        """Add a row, or move it if its zone changed."""
        zone = zone_of(node)
        if self._zone_of.get(row) == zone:
            return
        self.remove(row)
        self._zones.setdefault(zone, {})[row] = None
        self._zone_of[row] = zone
        self._arrays.pop(zone, None)

    def remove(self, row: int) -> None:
        """Remove a row, if present."""
        self._order = None
        zone = self._zone_of.pop(row, None)
        if zone is not None:
            del self._zones[zone][row]
            self._arrays.pop(zone, None)
            if not self._zones[zone]:
                del self._zones[zone]

    def saved(self) -> dict[Zone, dict[int, None]]:
        """Return a copy of the order, for `restore`."""
        return {zone: dict(rows) for zone, rows in self._zones.items()}

    def restore(self, saved: dict[Zone, dict[int, None]]) -> None:
        """Restore a saved order of the same rows."""
        self._zones, self._arrays = saved, {}
        self._zone_of = {row: zone for zone, rows in saved.items() for row in rows}
        self._order = None

    def rows(self) -> IndexArray:
        """Return all rows in order."""
        if self._order is None:
            zones = [self._array(zone) for zone in self._zones]
            # Small numbers are sorted much faster.
            turn = np.min_scalar_type(max(map(len, zones), default=0))
            turns = [np.arange(len(rows), dtype=turn) for rows in zones]
            # A stable sort: within a turn, zones keep their order.
            in_turn = np.argsort(np.concatenate([_NO_TURNS, *turns]), kind="stable")
            self._order = np.concatenate([_NO_ROWS, *zones])[in_turn]
            self._positions = None
        return self._order

    def _array(self, zone: Zone) -> IndexArray:
        found = self._arrays.get(zone)
        if found is None:
            rows = self._zones[zone]
            found = self._arrays[zone] = np.fromiter(rows, np.intp, len(rows))
        return found

    def positions(self) -> IndexArray:
        """Return the position of each row in the order; undefined for free rows."""
        order = self.rows()
        if self._positions is None:
            self._positions = np.full(order.max(initial=-1) + 1, -1, dtype=np.intp)
            self._positions[order] = np.arange(len(order))
        return self._positions


def zone_of(node: Node) -> Zone:
    """Return region and zone of a node; the deprecated labels win where both are set."""
    labels = node.metadata.labels or {}
    region = labels.get(names.LABEL_REGION_BETA, labels.get(names.LABEL_REGION, ""))
    zone = labels.get(names.LABEL_ZONE_BETA, labels.get(names.LABEL_ZONE, ""))
    return region, zone


def zone_name(node: Node) -> str:
    """Return the name of a node's zone for users: region/zone, or what it has of them."""
    return "/".join(filter(None, zone_of(node)))
