"""Host ports in use, by port rather than by node: few pods use any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (the wildcard that pods ask for, not something we listen on)


class HostPort(NamedTuple):
    """A port that a pod takes on its node's address."""

    protocol: str
    port: int
    address: str

    def conflicts(self, address: str) -> bool:
        """Tell whether the same port on `address` is the same socket."""
        return ANY_ADDRESS in (self.address, address) or self.address == address


class HostPorts:
    """Which rows have which ports taken."""

    def __init__(self) -> None:
        #: (protocol, port) → row → address → number of pods
        self._in_use: dict[tuple[str, int], dict[int, Counter[str]]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        """Take `ports` on `row`."""
        for port in ports:
            rows = self._in_use.setdefault((port.protocol, port.port), {})
            rows.setdefault(row, Counter())[port.address] += 1

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        """Give `ports` back on `row`."""
        for port in ports:
            rows = self._in_use[port.protocol, port.port]
            addresses = rows[row]
            addresses[port.address] -= 1
            if not addresses[port.address]:
                del addresses[port.address]
            if not addresses:
                del rows[row]
            if not rows:
                del self._in_use[port.protocol, port.port]

    def rows_in_conflict(self, ports: Iterable[HostPort]) -> set[int]:
        """Return the rows where at least one of `ports` is taken."""
        return {
            row
            for port in ports
            for row, addresses in self._in_use.get((port.protocol, port.port), {}).items()
            if any(port.conflicts(address) for address in addresses)
        }

    def snapshot(self) -> dict[tuple[str, int], dict[int, dict[str, int]]]:
        """Return all counts, for checks."""
        return {
            key: {row: dict(addresses) for row, addresses in rows.items()}
            for key, rows in self._in_use.items()
        }
