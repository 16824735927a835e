"""Devices: the classes, slices, rules and claims that informers report, and what follows from them.

    slices, taint rules ──> DeviceTable (rows), Pools ──> VisibleDevices: which nodes see what
    claims, decisions ────> DeviceUses: what is taken

Informers put objects in. DynamicResources reads what follows from them, and signals its decisions.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.resource import (
    Device,
    DeviceClass,
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.cluster.claim_users import ClaimUsers
from kubesched.cluster.device_pools import Pool, PoolRules, PoolSlice
from kubesched.cluster.device_table import DeviceTable
from kubesched.cluster.device_uses import DeviceUses, PoolKey
from kubesched.cluster.extended_resources import ExtendedResources
from kubesched.cluster.incremental import NAMES_LENGTH, Log
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.object_store import NamedStore
from kubesched.cluster.resource_claims import ResourceClaims
from kubesched.cluster.visible_devices import VisibleDevices
from kubesched.errors import require


class Devices:
    """All objects of ``resource.k8s.io``, and the devices that there are."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self.classes: NamedStore[DeviceClass] = NamedStore()
        self.slices: NamedStore[ResourceSlice] = NamedStore()
        self.taint_rules: NamedStore[DeviceTaintRule] = NamedStore()
        self.uses = DeviceUses()
        self.claims = ResourceClaims(self.uses)
        #: pending pods by the claims that they name
        self.claim_users = ClaimUsers()
        self._all = (self.classes, self.slices, self.taint_rules, self.claims)
        self.table = DeviceTable()
        #: names of resources that classes stand for
        self.extended_resources = ExtendedResources(self.classes)
        #: name of a slice → the slice with the rows of its devices
        self._placed: dict[str, PoolSlice] = {}
        #: pool → its slices by name
        self._slices_of: dict[PoolKey, dict[str, PoolSlice]] = {}
        #: name of a rule → the selector and the taint that devices have of it
        self._rules: dict[str, DeviceTaintRule] = {}
        #: pools of which slices, devices or taints changed
        self.pool_changes: Log[PoolKey] = Log(NAMES_LENGTH)
        #: by the rules of the feature gates → the pools, and which nodes see them
        self._pools: dict[PoolRules, dict[PoolKey, Pool]] = {}
        self._visible: dict[PoolRules, VisibleDevices] = {}
        self.slices.listeners.append(self._slice_changed)
        self.taint_rules.listeners.append(self._rule_changed)
        self.classes.listeners.append(self._class_changed)

    @property
    def version(self) -> tuple[int, ...]:
        """Another one for each state of the objects, and of what was decided."""
        return (*[store.changes.position for store in self._all], self.uses.changes.position)

    def visible(self, rules: PoolRules) -> VisibleDevices:
        """Return which nodes see which devices."""
        found = self._visible.get(rules)
        if found is None:
            pools = self._pools[rules] = {}
            for each in self._placed.values():
                self._pool_of(pools, each.spec, rules).put(each)
            found = self._visible[rules] = VisibleDevices(self._nodes, pools, self.pool_changes)
        return found

    def pool_keys(self) -> Iterable[PoolKey]:
        """Return all pools."""
        return self._slices_of.keys()

    def slices_of(self, key: PoolKey) -> Iterable[PoolSlice]:
        """Return the slices of a pool, of all generations."""
        return self._slices_of.get(key, {}).values()

    def _class_changed(self, name: str) -> None:  # noqa: ARG002 (the listener's)
        self._nodes.set_device_resources(self.extended_resources.names())

    # --- slices -----------------------------------------------------------------------------------

    def _slice_changed(self, name: str) -> None:
        before, now = self._placed.get(name), self.slices.get(name)
        if before is not None and now is not None and before.spec == now.spec:
            return  # drivers publish what has not changed, too
        if before is not None:
            self._take_out(name, before)
        if now is not None:
            self._put_in(name, now)

    def _take_out(self, name: str, before: PoolSlice) -> None:
        key = _key_of(before.spec)
        del self._placed[name], self._slices_of[key][name]
        if not self._slices_of[key]:
            del self._slices_of[key]
        for pools in self._pools.values():
            pool = pools[key]
            pool.remove(name)
            if not pool.slices:
                del pools[key]
        for row in before.rows:
            self.table.remove(row)
        self.pool_changes.record(key)

    def _put_in(self, name: str, now: ResourceSlice) -> None:
        spec = now.spec
        rows = tuple(self.table.add(spec, each, self._taints(spec, each)) for each in spec.devices)
        made = self._placed[name] = PoolSlice(now, rows)
        self._slices_of.setdefault(_key_of(spec), {})[name] = made
        for rules, pools in self._pools.items():
            self._pool_of(pools, spec, rules).put(made)
        self.pool_changes.record(_key_of(spec))

    def _pool_of(
        self, pools: dict[PoolKey, Pool], spec: ResourceSliceSpec, rules: PoolRules
    ) -> Pool:
        key = _key_of(spec)
        pool = pools.get(key)
        if pool is None:
            pool = pools[key] = Pool(key, rules)
        return pool

    # --- taints -----------------------------------------------------------------------------------

    def _rule_changed(self, name: str) -> None:
        before, now = self._rules.pop(name, None), self.taint_rules.get(name)
        if now is not None:
            self._rules[name] = now
        for each in self._placed.values():
            if any(rule is not None and _concerns(rule, each.spec) for rule in (before, now)):
                self._taint(each)

    def _taint(self, each: PoolSlice) -> None:
        """Give the devices of a slice the taints that they have by now."""
        changed = [
            self.table.set_taints(row, self._taints(each.spec, device))
            for row, device in zip(each.rows, each.spec.devices, strict=True)
        ]
        if any(changed):
            key = _key_of(each.spec)
            for pools in self._pools.values():
                pools[key].changed()
            self.pool_changes.record(key)

    def _taints(self, spec: ResourceSliceSpec, device: Device) -> tuple[DeviceTaint, ...]:
        if not self._rules:
            return device.taints
        added = (
            rule.spec.taint
            for rule in self._rules.values()
            if _concerns(rule, spec) and _concerns_device(rule, device)
        )
        return (*device.taints, *added)

    def validate(self) -> None:
        """Check each store, and all that follows from the objects."""
        for store in self._all:
            store.validate()
        self.table.validate()
        self.claim_users.validate()
        self.extended_resources.validate()
        require({each.metadata.name for each in self.slices} == self._placed.keys(), "slices")
        require({each.metadata.name for each in self.taint_rules} == self._rules.keys(), "rules")
        rows = [row for each in self._placed.values() for row in each.rows]
        require(len(set(rows)) == len(rows) == len(self.table), "each device has a row of its own")
        for each in self._placed.values():
            for row, device in zip(each.rows, each.spec.devices, strict=True):
                key = (each.spec.driver, each.spec.pool.name, device.name)
                require(self.table.devices[row] is device, f"the device of row {row}")
                require(self.table.keys[row] == key, f"the key of row {row}")
                taints = sorted(map(str, self._taints(each.spec, device)))
                require(sorted(map(str, self.table.taints[row])) == taints, f"taints of row {row}")
        of_pools = {
            name: each for slices in self._slices_of.values() for name, each in slices.items()
        }
        require(of_pools == self._placed and all(self._slices_of.values()), "slices of pools")
        for pools in self._pools.values():
            _validate_pools(pools, self._placed.values())
        for visible in self._visible.values():
            visible.validate()


def _validate_pools(pools: dict[PoolKey, Pool], slices: Iterable[PoolSlice]) -> None:
    found = {each.name: key for key, pool in pools.items() for each in pool.slices}
    require(found == {each.name: _key_of(each.spec) for each in slices}, "slices by pool")
    for pool in pools.values():
        require(bool(pool.slices), f"pool {pool.key} has slices")
        pool.validate()


def _key_of(spec: ResourceSliceSpec) -> PoolKey:
    return spec.driver, spec.pool.name


def _concerns(rule: DeviceTaintRule, spec: ResourceSliceSpec) -> bool:
    selector = rule.spec.device_selector
    return (
        selector is not None
        and selector.driver in (None, spec.driver)
        and selector.pool in (None, spec.pool.name)
    )


def _concerns_device(rule: DeviceTaintRule, device: Device) -> bool:
    selector = rule.spec.device_selector
    return selector is not None and selector.device in (None, device.name)
