"""Rows by the claims and disks that their pods use, as pods come and go."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from kubesched.api.core import Volume
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_volumes import PodVolumes, compile_volumes
from kubesched.errors import InvariantError
from tests.support.objects import node, pod
from tests.support.scheduling import cluster_of
from tests.support.storage_objects import (
    aws_disk,
    claim_volume,
    ephemeral_volume,
    gce_disk,
    rbd_image,
    using,
    with_volumes,
)

VOLUMES = [
    claim_volume("a"),
    claim_volume("b"),
    ephemeral_volume("e"),
    gce_disk("d"),
    gce_disk("d", read_only=True),
    aws_disk("d", read_only=True),
    rbd_image("i", "m1", "m2"),
    rbd_image("i", "m2", read_only=True),
]


def disks_of(*volumes: Volume) -> PodVolumes:
    return compile_volumes(with_volumes(pod("wants"), *volumes))


def test_claims_are_in_use_on_the_rows_of_their_pods() -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    uses = cluster.table.volume_uses
    cluster.put_pod(using(pod("p1", node="n1"), "a"))
    cluster.put_pod(using(pod("p2", node="n2"), "a", "b"))
    cluster.put_pod(using(pod("p3", node="n2", namespace="other"), "a"))

    assert uses.rows_using(("default", "a")) == {0, 1}
    assert uses.rows_using(("other", "a")) == {1}
    assert uses.uses_of_name("a") == {0: 1, 1: 2}
    assert uses.is_claim_in_use(("default", "b"))

    cluster.remove_pod("p2")

    assert uses.rows_using(("default", "a")) == {0}
    assert not uses.is_claim_in_use(("default", "b"))


def test_claims_made_for_a_pod_are_used_and_not_named() -> None:
    cluster = cluster_of(node("n1"), with_volumes(pod("p1", node="n1"), ephemeral_volume("e")))
    uses = cluster.table.volume_uses

    assert uses.rows_using(("default", "p1-e")) == {0}
    assert not uses.is_claim_in_use(("default", "p1-e"))
    assert uses.uses_of_name("p1-e") == {}


def test_pods_whose_node_is_not_there_use_nothing() -> None:
    cluster = cluster_of(node("n1"), using(pod("p1", node="n1"), "a"))
    cluster.remove_node("n1")
    assert not cluster.table.volume_uses.is_claim_in_use(("default", "a"))

    cluster.put_node(node("n1"))
    assert cluster.table.volume_uses.is_claim_in_use(("default", "a"))


def test_rows_where_a_disk_is_taken() -> None:
    cluster = cluster_of(
        node("writer"),
        node("reader"),
        node("free"),
        with_volumes(pod("p1", node="writer"), gce_disk("d")),
        with_volumes(pod("p2", node="reader"), gce_disk("d", read_only=True)),
    )
    uses = cluster.table.volume_uses

    assert uses.rows_in_conflict(disks_of(gce_disk("d")).disks) == {0, 1}
    assert uses.rows_in_conflict(disks_of(gce_disk("d", read_only=True)).disks) == {0}
    assert uses.rows_in_conflict(disks_of(gce_disk("x"), aws_disk("d")).disks) == set()


def test_a_pod_that_comes_back_with_other_volumes_is_counted_anew() -> None:
    cluster = cluster_of(node("n1"), using(pod("p1", node="n1"), "a"))
    cluster.put_pod(using(pod("p1", node="n1"), "b"))

    assert not cluster.table.volume_uses.is_claim_in_use(("default", "a"))
    cluster.validate()


def test_rows_have_pods_with_volumes_that_may_be_attached() -> None:
    cluster = cluster_of(
        node("n1"),
        node("n2"),
        using(pod("p1", node="n1"), "a"),
        using(pod("p2", node="n1"), "b"),
        pod("p3", node="n2"),
    )
    uses = cluster.table.volume_uses
    assert set(uses.rows) == {0}
    cluster.remove_pod("p1")
    assert set(uses.rows) == {0}
    cluster.remove_pod("p2")
    assert not uses.rows


def test_validate_notices_what_was_not_counted() -> None:
    cluster = cluster_of(node("n1"), using(pod("p1", node="n1"), "a"))
    cluster.table.volume_uses.remove(0, cluster.table.pods[0]["p1"].volumes)

    with pytest.raises(InvariantError, match="rows that use claims"):
        cluster.validate()


class UsesMachine(RuleBasedStateMachine):
    """Pods with volumes come to rows, go, and are tried out."""

    @initialize()
    def begin(self) -> None:
        self.cluster: Cluster = cluster_of(node("n0"), node("n1"))
        self.count = 0

    @rule(row=st.integers(0, 2), volumes=st.lists(st.sampled_from(VOLUMES), max_size=3))
    def pod_comes(self, row: int, volumes: list[Volume]) -> None:
        self.count += 1
        named = [replace(each, name=f"v{number}") for number, each in enumerate(volumes)]
        self.cluster.put_pod(with_volumes(pod(f"p{self.count}", node=f"n{row}"), *named))

    @rule(number=st.integers(1, 12))
    def pod_goes(self, number: int) -> None:
        self.cluster.remove_pod(f"p{number}")

    @rule(row=st.integers(0, 2))
    def node_goes(self, row: int) -> None:
        self.cluster.remove_node(f"n{row}")

    @rule(row=st.integers(0, 2))
    def node_comes(self, row: int) -> None:
        self.cluster.put_node(node(f"n{row}"))

    @rule(row=st.integers(0, 2), volume=st.sampled_from(VOLUMES))
    def what_if(self, row: int, volume: Volume) -> None:
        table = self.cluster.table
        number = table.row_of(f"n{row}")
        if number is None:
            return
        with self.cluster.transaction() as tx:
            for uid in list(table.pods[number]):
                tx.remove(uid)
            new = self.cluster.compiler.pending(with_volumes(pod("new"), volume))
            tx.place(new, f"n{row}")
            table.validate()

    @invariant()
    def everything_adds_up(self) -> None:
        self.cluster.validate()


TestUses = UsesMachine.TestCase
