"""A node with devices, on which claims are tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kubesched.api.resource import ResourceClaim
from kubesched.cluster.cluster import Cluster
from kubesched.plugins.device_counters import CounterCache
from kubesched.plugins.device_ledger import DeviceState
from kubesched.plugins.device_requests import AllocationError, RequestCompiler, Wanted, asked_for
from kubesched.plugins.device_rules import SearchRules
from kubesched.plugins.device_search import DEVICES_PER_LOOK, Search, Solution
from kubesched.plugins.device_selectors import compile_selector
from tests.support.device_objects import device_class, fill
from tests.support.objects import node


class Bench:
    """One node with devices, on which claims are tried."""

    def __init__(
        self, *objects: Any, rules: SearchRules | None = None, features: Sequence[str] = ()
    ) -> None:
        self.cluster = Cluster()
        self.cluster.put_node(node("n1", features=features))
        fill(self.cluster, device_class(), *objects)
        self._rules = rules or SearchRules()

    def wanted(self, *claims: ResourceClaim) -> Wanted:
        compiler = RequestCompiler(
            self.cluster.devices, compile_selector, taints=True, rules=self._rules
        )
        wanted = compiler.compile(tuple(map(asked_for, claims)))
        wanted.refresh()
        return wanted

    def solve(self, *claims: ResourceClaim, steps: int = 1_000_000) -> Solution | None:
        devices = self.cluster.devices
        visible = devices.visible(self._rules.of_pools)
        visible.refresh()
        counters = CounterCache(devices.table, devices.uses)
        state = DeviceState(devices.table, devices.uses, counters, self._rules)
        looks = iter(range(steps // DEVICES_PER_LOOK))
        search = Search(self.wanted(*claims), visible.of(0), state)
        return search.run(lambda: next(looks, None) is None)

    def names(self, *claims: ResourceClaim) -> list[list[str]] | None:
        """The devices that claims get, None if they cannot be served."""
        found = self.solve(*claims)
        keys = self.cluster.devices.table.keys
        return found and [[keys[each.row][2] for each in picks] for picks in found.picks]

    def failure(self, *claims: ResourceClaim) -> str:
        with pytest.raises(AllocationError) as failed:
            self.solve(*claims)
        return failed.value.message([f"default/{each.metadata.name}" for each in claims])
