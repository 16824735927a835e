"""The counters that devices of a pool share: what is left of them, and who draws on them.

With the gate DRADeviceCompatibilityGroups, devices that draw on the same set of counters must also
go together.
"""

from __future__ import annotations

from kubesched.api.resource import Device
from kubesched.cluster.device_pools import PoolView, amounts
from kubesched.cluster.device_table import DeviceTable
from kubesched.cluster.device_uses import DeviceUses, PoolKey
from kubesched.plugins.compatibility_groups import Groups, groups_of, joined, seeded


class CounterCache:
    """What is left of the counters of pools, until a device of the pool is taken or given back."""

    def __init__(self, table: DeviceTable, uses: DeviceUses) -> None:
        self._table = table
        self._uses = uses
        self._cache: dict[PoolKey, tuple[PoolView, int, dict[str, dict[str, int]]]] = {}

    def left(self, pool: PoolView) -> dict[str, dict[str, int]]:
        """Return what is left of a pool's counters; less than nothing counts as nothing."""
        version = self._uses.version_of(pool.key)
        cached = self._cache.get(pool.key)
        if cached is not None and cached[0] is pool and cached[1] == version:
            return cached[2]
        left = {name: dict(counters) for name, counters in pool.counters.items()}
        for row in pool.counter_users:
            if self._uses.of(self._table.keys[row]) is None:
                continue
            for each in self._table.device_at(row).consumes_counters:
                of_set = left[each.counter_set]
                for name, amount in amounts(each.counters).items():
                    of_set[name] -= amount
        self._cache[pool.key] = pool, version, left
        return left

    def groups(self, pool: PoolView) -> dict[str, Groups]:
        """Return the compatibility groups that allocated devices have in common, by counter set."""
        found: dict[str, Groups] = {}
        for row in pool.counter_users:
            if self._uses.of(self._table.keys[row]) is not None:
                for each in self._table.device_at(row).consumes_counters:
                    found[each.counter_set] = seeded(found.get(each.counter_set), groups_of(each))
        return found


class CounterDraws:
    """What devices that are chosen take of counters."""

    def __init__(self, counters: CounterCache, *, has_groups: bool) -> None:
        self._counters = counters
        self._has_groups = has_groups
        #: pool → set of counters → counter → what is taken of it
        self._drawn: dict[PoolKey, dict[str, dict[str, int]]] = {}
        #: pool → set of counters → the groups that all devices which draw on it have in common
        self._groups: dict[PoolKey, dict[str, Groups | None]] = {}
        #: for each device that was chosen, these groups as they were before it
        self._before: list[dict[str, Groups | None]] = []

    def take(self, pool: PoolView, device: Device) -> bool:
        """Let a device draw on counters; return False, and do not, if something speaks against it.

        All counters of the pool have to suffice.
        """
        if self._has_groups and not self._join(pool, device):
            return False
        drawn = self._drawn.setdefault(pool.key, {})
        _add_counters(drawn, device, 1)
        for name, counters in self._counters.left(pool).items():
            of_set = drawn.get(name, {})
            if any(amount < of_set.get(counter, 0) for counter, amount in counters.items()):
                self.give_back(pool, device)
                return False
        return True

    def give_back(self, pool: PoolView, device: Device) -> None:
        """Take a choice back, which must be the last one."""
        _add_counters(self._drawn[pool.key], device, -1)
        if self._has_groups:
            self._groups[pool.key].update(self._before.pop())

    def _join(self, pool: PoolView, device: Device) -> bool:
        """Add a device to those that draw on its counters; False if it does not go with them."""
        common = self._groups.get(pool.key)
        if common is None:
            common = self._groups[pool.key] = dict(self._counters.groups(pool))
        together: dict[str, Groups | None] = {}
        for each in device.consumes_counters:
            groups = joined(common.get(each.counter_set), groups_of(each))
            if groups is None:
                return False
            together[each.counter_set] = groups
        self._before.append({name: common.get(name) for name in together})
        common.update(together)
        return True


def _add_counters(drawn: dict[str, dict[str, int]], device: Device, sign: int) -> None:
    for each in device.consumes_counters:
        of_set = drawn.setdefault(each.counter_set, {})
        for name, amount in amounts(each.counters).items():
            of_set[name] = of_set.get(name, 0) + sign * amount
