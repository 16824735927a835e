"""What is allocated of each device.

    claims as shown ── their allocations ──┐
    decisions that are not written yet ────┴──> DeviceUses ──> pools whose devices changed

A device is allocated to one claim as a whole, or several claims have a *share* of it, each with an
amount of its capacities. Access for administrators takes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView

from kubesched.api import quantity
from kubesched.api.resource import DeviceRequestAllocationResult
from kubesched.cluster.device_table import DeviceKey
from kubesched.cluster.incremental import NAMES_LENGTH, Log
from kubesched.cluster.numbering import Numbering
from kubesched.errors import ObjectError, require

#: Driver and name of a pool.
PoolKey = tuple[str, str]
Results = tuple[DeviceRequestAllocationResult, ...]
#: How much of a device is taken: nothing, all of it; other numbers stand for shares.
UNUSED, DEDICATED = 0, 1


class DeviceUse:
    """What is taken of one device."""

    __slots__ = ("consumed", "dedicated", "shares")

    def __init__(self) -> None:
        #: how many claims have it as a whole; more than one only if writers disagree
        self.dedicated = 0
        #: how many shares of it are allocated
        self.shares = 0
        #: capacity → what the shares take of it, in nano units
        self.consumed: dict[str, int] = {}

    @property
    def is_free(self) -> bool:
        """Whether nothing is taken."""
        return not self.dedicated and not self.shares

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceUse) and (
            (self.dedicated, self.shares, self.consumed)
            == (other.dedicated, other.shares, other.consumed)
        )

    __hash__ = None  # type: ignore[assignment]


class DeviceUses:
    """What is taken of all devices, whether slices list them or not."""

    def __init__(self) -> None:
        self._uses: dict[DeviceKey, DeviceUse] = {}
        #: pool → number of its devices of which something is taken, never 0
        self._in_use: dict[PoolKey, int] = {}
        #: pools of which a device was taken or given back
        self.changes: Log[PoolKey] = Log(NAMES_LENGTH)
        #: pool → how often that happened
        self._versions: dict[PoolKey, int] = {}
        #: (dedicated, shared, what the shares take) → its number
        self._levels: Numbering[tuple[bool, bool, frozenset[tuple[str, int]]]] = Numbering(
            first=DEDICATED + 1
        )

    def __len__(self) -> int:
        return len(self._uses)

    def of(self, key: DeviceKey) -> DeviceUse | None:
        """Return what is taken of a device, None if nothing is."""
        return self._uses.get(key)

    @property
    def pools(self) -> KeysView[PoolKey]:
        """The pools of whose devices something is taken; a live view."""
        return self._in_use.keys()

    def levels(self, keys: Iterable[DeviceKey]) -> list[int]:
        """Return a number for each device; it is equal where equal amounts are taken."""
        find, level = self._uses.get, self._level
        return [UNUSED if (use := find(key)) is None else level(use) for key in keys]

    def _level(self, use: DeviceUse) -> int:
        if use.dedicated > 0 and not use.shares:
            return DEDICATED
        return self._levels((use.dedicated > 0, use.shares > 0, frozenset(use.consumed.items())))

    def version_of(self, pool: PoolKey) -> int:
        """Return another number for each state of a pool's devices."""
        return self._versions.get(pool, 0)

    def take(self, results: Results) -> None:
        """Count what was allocated."""
        self._count(results, 1)

    def give_back(self, results: Results) -> None:
        """Stop counting it."""
        self._count(results, -1)

    def _count(self, results: Results, sign: int) -> None:
        for result in results:
            if result.admin_access:
                continue
            key = (result.driver, result.pool, result.device)
            pool = key[:2]
            use = self._uses.get(key)
            if use is None:
                use = self._uses[key] = DeviceUse()
                self._in_use[pool] = self._in_use.get(pool, 0) + 1
            if result.share_id is None:
                use.dedicated += sign
            else:
                use.shares += sign
                _add(use.consumed, result, sign)
            if use.is_free:
                del self._uses[key]
                self._in_use[pool] -= 1
                if not self._in_use[pool]:
                    del self._in_use[pool]
            self._versions[pool] = self._versions.get(pool, 0) + 1
            self.changes.record(pool)

    def validate(self, counted: Iterable[Results]) -> None:
        """Check that what is counted is what `counted` takes."""
        anew = DeviceUses()
        for results in counted:
            anew.take(results)
        require(self._uses == anew._uses, "uses of devices are those of their claims")
        require(self._in_use == anew._in_use, "pools whose devices are in use")


def _add(consumed: dict[str, int], result: DeviceRequestAllocationResult, sign: int) -> None:
    for name, text in result.consumed_capacity.items():
        try:
            amount = quantity.nano(text)
        except ObjectError:
            continue  # an amount that no API server lets through takes nothing
        left = consumed.get(name, 0) + sign * amount
        if left:
            consumed[name] = left
        else:
            consumed.pop(name, None)
