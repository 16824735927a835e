"""Devices as informers report them, late, twice and in any order, beside decisions about them."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from kubesched.api.core import NodeSelector
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.device_pools import PoolRules
from tests.support.device_objects import (
    DRIVER,
    allocated,
    allocation,
    claim,
    device,
    device_class,
    fill,
    result,
    slice_of,
    taint_rule,
)
from tests.support.objects import node, requirement, term

NODES, SLICES, POOLS, DEVICES = ["n1", "n2", "n3"], ["s1", "s2", "s3"], ["p", "q"], ["a", "b", "c"]
ON_SSD = NodeSelector(node_selector_terms=(term(requirement("disk", "In", "ssd")),))

nodes, slices, pools = st.sampled_from(NODES), st.sampled_from(SLICES), st.sampled_from(POOLS)
devices = st.sampled_from(DEVICES)
claims = st.sampled_from(["c1", "c2", "c3"])


def test_taints_of_rules_join_those_of_slices() -> None:
    cluster = Cluster()
    fill(cluster, taint_rule(device_name="a"), slice_of("s", device("a"), device("b"), node="n1"))
    table = cluster.devices.table
    assert [len(each) for each in table.taints] == [1, 0]
    fill(cluster, taint_rule(pool="n1"))
    assert [len(each) for each in table.taints] == [1, 1]
    fill(cluster, taint_rule("other", driver="other.example.com"))
    cluster.devices.taint_rules.remove(taint_rule())
    assert [len(each) for each in table.taints] == [0, 0]
    cluster.devices.validate()


def test_a_rule_without_a_selector_is_about_no_device() -> None:
    cluster = Cluster()
    rule_of_none = taint_rule()
    fill(cluster, slice_of("s", device("a"), node="n1"))
    spec = replace(rule_of_none.spec, device_selector=None)
    fill(cluster, replace(rule_of_none, spec=spec))
    assert cluster.devices.table.taints == [()]


class DeviceMachine(RuleBasedStateMachine):
    """Slices, rules, nodes and claims come, change and go; decisions are made and dropped."""

    @initialize()
    def begin(self) -> None:
        self.cluster = Cluster()
        self.devices = self.cluster.devices
        self.visible = [
            self.devices.visible(each)
            for each in (
                PoolRules(),
                PoolRules(partitionable=False),
                PoolRules(counters_everywhere=True),
            )
        ]
        self.version = 0
        self.pending: set[str] = set()

    @rule(name=nodes, is_ssd=st.booleans())
    def put_node(self, name: str, is_ssd: bool) -> None:
        self.cluster.put_node(node(name, labels={"disk": "ssd"} if is_ssd else {}))

    @rule(name=nodes)
    def remove_node(self, name: str) -> None:
        self.cluster.remove_node(name)

    @rule(
        name=slices,
        pool=pools,
        names=st.lists(devices, max_size=3),
        where=st.sampled_from(["n1", "n2", "all", "ssd", "each", "nowhere"]),
        generation=st.integers(1, 2),
        count=st.integers(1, 2),
        counters=st.booleans(),
    )
    def put_slice(  # noqa: PLR0917 (rules are called by name)
        self,
        name: str,
        pool: str,
        names: list[str],
        where: str,
        generation: int,
        count: int,
        counters: bool,
    ) -> None:
        made = [
            device(
                each,
                node="n1" if where == "each" else None,
                counters={"card": {"units": "1"}} if counters and each == "a" else None,
            )
            for each in names
        ]
        fill(
            self.cluster,
            slice_of(
                name,
                *([] if counters and not names else made),
                pool=pool,
                node=where if where in NODES else None,
                everywhere=True if where == "all" else None,
                selector=ON_SSD if where == "ssd" else None,
                per_device=True if where == "each" else None,
                generation=generation,
                slices=count,
                counters={"card": {"units": "2"}} if counters and not names else None,
            ),
        )

    @rule(name=slices)
    def remove_slice(self, name: str) -> None:
        self.devices.slices.remove(slice_of(name))

    @rule(pool=st.sampled_from([None, *POOLS]), name=st.sampled_from([None, *DEVICES]))
    def put_rule(self, pool: str | None, name: str | None) -> None:
        fill(self.cluster, taint_rule(pool=pool, device_name=name))

    @rule()
    def remove_rule(self) -> None:
        self.devices.taint_rules.remove(taint_rule())

    @rule(name=claims, pool=pools, got=st.lists(devices, max_size=2), late=st.booleans())
    def put_claim(self, name: str, pool: str, got: list[str], late: bool) -> None:
        """The watch brings a claim; an older version of it, if it is late."""
        self.version += 1
        version = str(max(self.version - 3, 0) if late else self.version)
        made = claim(name, version=version)
        if got:
            made = allocated(made, *(result(each, pool) for each in got), version=version)
        self.devices.claims.put(made)

    @rule(name=claims, pool=pools, got=devices)
    def write(self, name: str, pool: str, got: str) -> None:
        self.version += 1
        made = allocated(claim(name), result(got, pool, share="s"), version=str(self.version))
        self.devices.claims.written(made)

    @rule(name=claims)
    def remove_claim(self, name: str) -> None:
        self.devices.claims.remove(claim(name))

    @rule(name=claims, pool=pools, got=devices)
    def decide(self, name: str, pool: str, got: str) -> None:
        self.devices.claims.signal(f"claim-{name}", allocation(result(got, pool)))
        self.pending.add(f"claim-{name}")

    @rule(name=claims, is_written=st.booleans())
    def drop(self, name: str, is_written: bool) -> None:
        if self.devices.claims.drop(f"claim-{name}", is_written=is_written):
            self.pending.remove(f"claim-{name}")

    @rule(name=st.sampled_from(["x", "y"]), resource=st.sampled_from([None, "example.com/gpu"]))
    def put_class(self, name: str, resource: str | None) -> None:
        fill(self.cluster, device_class(name, resource=resource))
        expected = {f"deviceclass.resource.kubernetes.io/{name}", resource} - {None}
        assert expected <= self.cluster.table.device_resources

    @invariant()
    def all_of_it_adds_up(self) -> None:
        if hasattr(self, "cluster"):
            self.devices.validate()
            assert self.devices.claims.pending_count == len(self.pending)
            for visible in self.visible:
                for row in range(self.cluster.table.size):
                    for each in visible.of(row).rows:
                        assert self.devices.table.keys[each][0] == DRIVER


TestDeviceMachine = DeviceMachine.TestCase
TestDeviceMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
