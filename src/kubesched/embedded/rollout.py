"""How many pods of each revision a Deployment wants next: arithmetic without objects."""

from __future__ import annotations

import math
from typing import NamedTuple


class Revision(NamedTuple):
    """A ReplicaSet of a Deployment."""

    replicas: int
    #: pods that are ready
    available: int


class RollingLimits(NamedTuple):
    """How far a rolling update may stray from the number of replicas."""

    surge: int
    unavailable: int

    @classmethod
    def of(cls, surge: str | int, unavailable: str | int, replicas: int) -> RollingLimits:
        """Resolve percentages: of the surge upwards, of what may be unavailable downwards."""
        found = cls(math.ceil(_part(surge, replicas)), math.floor(_part(unavailable, replicas)))
        # With neither, an update could never begin.
        return found if any(found) else cls(0, 1)


def _part(value: str | int, of: int) -> float:
    if isinstance(value, str) and value.endswith("%"):
        return int(value[:-1]) * of / 100
    return int(value)


def next_sizes(
    wanted: int, new: Revision, old: list[Revision], limits: RollingLimits | None
) -> tuple[int, list[int]]:
    """Return the sizes of the new revision and of the old ones, as far as they may change now.

    Without limits, all old pods go before the first new one comes.
    """
    old_total = sum(each.replicas for each in old)
    if limits is None:
        return (new.replicas if old_total else wanted), [0 for _ in old]
    room = wanted + limits.surge - new.replicas - old_total
    grown = min(wanted, new.replicas + max(room, 0)) if new.replicas < wanted else wanted
    return grown, _shrunk(wanted, new, old, limits)


def _shrunk(wanted: int, new: Revision, old: list[Revision], limits: RollingLimits) -> list[int]:
    """Scale old revisions down: first pods that are not ready, then those that can be spared."""
    least = wanted - limits.unavailable
    total = new.replicas + sum(each.replicas for each in old)
    may_go = total - least - (new.replicas - new.available)
    sizes = []
    for each in old:
        gone = min(each.replicas - each.available, max(may_go, 0))
        may_go -= gone
        sizes.append(each.replicas - gone)
    ready = sum(min(each.available, size) for each, size in zip(old, sizes, strict=True))
    spare = new.available + ready - least
    for index, size in enumerate(sizes):
        gone = max(min(size, spare), 0)
        spare -= gone
        sizes[index] = size - gone
    return sizes
