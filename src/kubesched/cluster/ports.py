"""Host ports in use, indexed by port: few pods use any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (the wildcard that pods ask for, not something we listen on)


class HostPort(NamedTuple):
    """A port that a pod uses on its node's address."""

    protocol: str
    port: int
    address: str

    def conflicts(self, address: str) -> bool:
        """Return whether the same port on `address` conflicts."""
        return ANY_ADDRESS in (self.address, address) or self.address == address


class HostPorts:
    """Host ports in use, by row."""

    def __init__(self) -> None:
        #: (protocol, port) → row → address → number of pods
        self._in_use: dict[tuple[str, int], dict[int, Counter[str]]] = {}
        #: row → ports that count as free during a dry-run preemption
        self._supposed_free: dict[int, set[HostPort]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        """Mark `ports` as used on `row`."""
        for port in ports:
            rows = self._in_use.setdefault((port.protocol, port.port), {})
            rows.setdefault(row, Counter())[port.address] += 1

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        """Release `ports` on `row`."""
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
        """Return the rows where at least one of `ports` is in use."""
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
        """Count the ports of a dry-run victim as free.

        That includes the same ports of other pods: kube-scheduler keeps one entry per port, and
        removing one pod removes it. Only pods that were bound past the scheduler share a port.
        """
        self._supposed_free.setdefault(row, set()).update(ports)

    def suppose_taken(self, row: int, ports: Iterable[HostPort]) -> None:
        """Count the ports of a reprieved pod as used again."""
        self._supposed_free.get(row, set()).difference_update(ports)

    def stop_supposing(self, row: int) -> None:
        """End the dry run."""
        self._supposed_free.pop(row, None)

    def _is_supposed_free(self, row: int, port: HostPort, address: str) -> bool:
        supposed = self._supposed_free.get(row)
        return supposed is not None and HostPort(port.protocol, port.port, address) in supposed

    def snapshot(self) -> dict[tuple[str, int], dict[int, dict[str, int]]]:
        """Return all counts, for `validate`."""
        return {
            key: {row: dict(addresses) for row, addresses in rows.items()}
            for key, rows in self._in_use.items()
        }
