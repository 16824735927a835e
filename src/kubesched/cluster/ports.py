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
        #: row → ports taken to be free while evictions are tried out
        self._supposed_free: dict[int, set[HostPort]] = {}

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
            if any(
                port.conflicts(address) and not self._is_supposed_free(row, port, address)
                for address in addresses
            )
        }

    def suppose_free(self, row: int, ports: Iterable[HostPort]) -> None:
        """Take the ports of a pod that is tried to be evicted to be free.

        That goes for other pods which have the same ports, too: kube-scheduler keeps one entry a
        port, and what one pod gives back is gone. Pods get into that position only past the
        scheduler.
        """
        self._supposed_free.setdefault(row, set()).update(ports)

    def suppose_taken(self, row: int, ports: Iterable[HostPort]) -> None:
        """Take the ports of a pod that came back to be taken again."""
        self._supposed_free.get(row, set()).difference_update(ports)

    def stop_supposing(self, row: int) -> None:
        """Go back to what is."""
        self._supposed_free.pop(row, None)

    def _is_supposed_free(self, row: int, port: HostPort, address: str) -> bool:
        supposed = self._supposed_free.get(row)
        return supposed is not None and HostPort(port.protocol, port.port, address) in supposed

    def snapshot(self) -> dict[tuple[str, int], dict[int, dict[str, int]]]:
        """Return all counts, for checks."""
        return {
            key: {row: dict(addresses) for row, addresses in rows.items()}
            for key, rows in self._in_use.items()
        }
