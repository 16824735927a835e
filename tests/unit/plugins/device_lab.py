"""A node with devices, on which claims are tried."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.resource import ResourceClaim
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.device_pools import PoolRules
from kubesched.plugins.device_ledger import CounterCache, DeviceState, SearchRules
from kubesched.plugins.device_requests import AllocationError, RequestCompiler, Wanted, asked_for
from kubesched.plugins.device_search import Search, Solution
from kubesched.plugins.device_selectors import compile_selector
from tests.support.device_objects import device_class, fill
from tests.support.objects import node


class Bench:
    """One node with devices, on which claims are tried."""

    def __init__(self, *objects: Any, rules: SearchRules | None = None) -> None:
        self.cluster = Cluster()
        self.cluster.put_node(node("n1"))
        fill(self.cluster, device_class(), *objects)
        self._rules = rules or SearchRules()

    def wanted(self, *claims: ResourceClaim) -> Wanted:
        compiler = RequestCompiler(
            self.cluster.devices, compile_selector, taints=True, consumable=self._rules.consumable
        )
        wanted = compiler.compile(tuple(map(asked_for, claims)))
        wanted.refresh()
        return wanted

    def solve(self, *claims: ResourceClaim, steps: int = 1_000_000) -> Solution | None:
        devices = self.cluster.devices
        visible = devices.visible(PoolRules(partitionable=self._rules.partitionable))
        visible.refresh()
        counters = CounterCache(devices.table, devices.uses)
        state = DeviceState(devices.table, devices.uses, counters, self._rules)
        looks = iter(range(steps // 128))
        search = Search(
            self.wanted(*claims),
            visible.of(0),
            state,
            is_late=lambda: next(looks, None) is None,
        )
        return search.run()

    def names(self, *claims: ResourceClaim) -> list[list[str]] | None:
        """The devices that claims get, None if they cannot be served."""
        found = self.solve(*claims)
        keys = self.cluster.devices.table.keys
        return found and [[keys[each.row][2] for each in picks] for picks in found.picks]

    def failure(self, *claims: ResourceClaim) -> str:
        with pytest.raises(AllocationError) as failed:
            self.solve(*claims)
        return failed.value.message([f"default/{each.metadata.name}" for each in claims])
