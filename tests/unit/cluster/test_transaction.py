"""Transactions: what if pods came and went, and everything is as before afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.resources import CPU, MEMORY
from kubesched.errors import InvariantError
from tests.support.device_objects import (
    allocated,
    allocation,
    claim,
    claiming,
    device,
    device_class,
    fill,
    request,
    result,
    slice_of,
)
from tests.support.objects import GI, MI, node, pod
from tests.support.random_cluster import EVENTS, FIRST_NODES, NODE_NAMES, Event
from tests.support.scheduling import cluster_of
from tests.support.storage_objects import using


def traces(cluster: Cluster) -> dict[str, Any]:
    """Everything that a transaction can change, as plain data."""
    table, size = cluster.table, cluster.table.size
    return {
        "requested": table.requested[:, :size].tolist(),
        "non_zero": table.non_zero_requested[:, :size].tolist(),
        "pod_count": table.pod_count[:size].tolist(),
        "allocatable": table.allocatable[:, :size].tolist(),
        "nodes": {name: table.row_of(name) for name in sorted(table.names())},
        "pods": [list(pods) for pods in table.pods],
        "order": table.order.rows().tolist(),
        "ports": table.ports.snapshot(),
        "version": cluster.version,
        "assumed": cluster.assumed_count,
    }


def visible(cluster: Cluster, size: int) -> dict[str, Any]:
    """The same of the first rows, without the version."""
    found = traces(cluster)
    for column in ("requested", "non_zero", "allocatable"):
        found[column] = [row[:size] for row in found[column]]
    found["pod_count"], found["pods"] = found["pod_count"][:size], found["pods"][:size]
    del found["version"]
    return found


def busy_cluster() -> Cluster:
    """Two nodes with pods on them."""
    return cluster_of(
        node("n1"),
        node("n2"),
        pod("stays", node="n1", cpu="1", memory="1Gi", ports=[80]),
        pod("goes", node="n1", cpu="500m", ports=[443]),
        pod("elsewhere", node="n2", cpu="3"),
    )


def test_a_transaction_really_changes_the_cluster_for_a_while() -> None:
    cluster = busy_cluster()
    table = cluster.table
    row = table.row_of("n1")
    assert row is not None
    coming = cluster.compiler.pending(pod("comes", cpu="2", memory="300Mi", ports=[8080]))
    with cluster.transaction() as tx:
        tx.place(coming, "n1")
        tx.remove("goes")
        assert table.requested[CPU, row] == 1000 + 2000
        assert table.requested[MEMORY, row] == GI + 300 * MI
        assert set(table.pods[row]) == {"stays", "comes"}
        assert {port for _, port in table.ports.snapshot()} == {80, 8080}
        cluster.validate()
    assert list(table.pods[row]) == ["stays", "goes"]
    cluster.validate()


def test_everything_is_undone_in_the_end_logs_included() -> None:
    cluster = busy_cluster()
    before = traces(cluster)
    with cluster.transaction() as tx:
        tx.remove("stays")
        tx.place(cluster.compiler.pending(pod("comes", cpu="2", ports=[8080])), "n2")
        assert traces(cluster) != before
    assert traces(cluster) == before
    cluster.validate()


def test_nodes_are_as_they_were_and_views_look_at_them_once_more() -> None:
    cluster = busy_cluster()
    zones = cluster.table.domains("topology.kubernetes.io/zone")
    before, version = traces(cluster), cluster.version
    with cluster.transaction() as tx:
        tx.put_node(node("n1", cpu="1", zone="other"))
        tx.remove_node("n2")
    after = traces(cluster)
    assert after.pop("version") != before.pop("version") == version
    assert after == before
    zones.validate()
    cluster.validate()


def test_a_row_that_another_node_had_in_between_has_its_pods_again() -> None:
    cluster = busy_cluster()
    with cluster.transaction() as tx:
        tx.remove_node("n1")
        tx.put_node(node("n3"))
        assert cluster.table.row_of("n3") == 0
        tx.place(cluster.compiler.pending(pod("comes")), "n3")
    assert list(cluster.table.pods[0]) == ["stays", "goes"]
    cluster.validate()


def test_everything_is_undone_after_an_exception() -> None:
    cluster = busy_cluster()
    before = traces(cluster)
    coming = cluster.compiler.pending(pod("comes", cpu="2", ports=[8080]))

    def fail() -> None:
        with cluster.transaction() as tx:
            tx.place(coming, "n1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert traces(cluster) == before


def test_what_is_kept_stays() -> None:
    cluster = busy_cluster()
    with cluster.transaction() as tx:
        tx.remove("goes")
        tx.place(cluster.compiler.pending(pod("comes", cpu="2")), "n1")
        tx.keep()
    assert cluster.node_of("goes") is None
    assert cluster.node_of("comes") == "n1"
    assert cluster.is_assumed("comes")
    cluster.validate()


def test_a_transaction_may_take_place_within_another() -> None:
    cluster = busy_cluster()
    before = traces(cluster)
    with cluster.transaction() as outer:
        outer.remove("stays")
        between = traces(cluster)
        with cluster.transaction() as inner:
            inner.place(cluster.compiler.pending(pod("comes", cpu="2", ports=[8080])), "n1")
            inner.remove("goes")
        assert traces(cluster) == between
    assert traces(cluster) == before
    cluster.validate()


def test_a_pod_is_placed_once() -> None:
    cluster = busy_cluster()
    before = traces(cluster)
    there = cluster.pod("stays")
    assert there is not None
    with pytest.raises(InvariantError, match="cannot be assumed"), cluster.transaction() as tx:
        tx.place(there, "n2")
    assert traces(cluster) == before


def test_claims_of_pods_follow() -> None:
    cluster = cluster_of(node("n1"), using(pod("p1", node="n1"), "a"))
    uses = cluster.table.volume_uses
    with cluster.transaction() as tx:
        tx.remove("p1")
        tx.place(cluster.compiler.pending(using(pod("p2"), "b")), "n1")
        assert not uses.is_claim_in_use(("default", "a"))
        assert uses.is_claim_in_use(("default", "b"))
    assert uses.is_claim_in_use(("default", "a"))
    assert not uses.is_claim_in_use(("default", "b"))


def test_the_ports_of_a_pod_that_is_evicted_are_free_until_it_is_reprieved() -> None:
    cluster = busy_cluster()
    goes = cluster.pod("goes")
    assert goes is not None
    wanted, ports = goes.signature.host_ports, cluster.table.ports
    with cluster.transaction() as tx:
        tx.evict(goes)
        assert not ports.rows_in_conflict(wanted)
        tx.reprieve(goes, "n1")
        assert ports.rows_in_conflict(wanted) == {0}
        tx.evict(goes)
    assert ports.rows_in_conflict(wanted) == {0}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["place", "remove", "put node", "remove node", "ask"]),
        st.sampled_from(NODE_NAMES),
        st.integers(0, 9),
    ),
    max_size=12,
)


@given(first=FIRST_NODES, events=st.lists(EVENTS, max_size=10), steps=STEPS)
@settings(max_examples=80)
def test_nothing_is_left_of_a_transaction(
    first: list[Any], events: list[Event], steps: list[tuple[str, str, int]]
) -> None:
    cluster = cluster_of(*first)
    for event in events:
        event.apply(cluster)
    table = cluster.table
    views = [table.float_resource(CPU), table.domains("topology.kubernetes.io/zone")]
    size = cluster.table.size
    before = visible(cluster, size)
    with cluster.transaction() as tx:
        for what, name, number in steps:
            if what == "place":
                info = cluster.compiler.pending(pod(f"new-{number}", cpu="1", ports=[80]))
                if cluster.pod(info.uid) is None:
                    tx.place(info, name)
            elif what == "remove":
                tx.remove(f"p{number}")
            elif what == "put node":
                tx.put_node(node(name, cpu=str(number + 1), zone="ab"[number % 2]))
            elif what == "remove node":
                tx.remove_node(name)
            else:
                views[number % 2].validate()
        cluster.validate()
    for view in views:
        view.validate()
    cluster.validate()
    assert visible(cluster, size) == before


# --- devices ------------------------------------------------------------------------------------


def _with_gpu(*users: str) -> tuple[Cluster, Pod]:
    """A cluster in which a claim has a device, and a pod that uses the claim."""
    made = claiming(pod("p1"), "c")
    cluster = cluster_of(node("n1"), replace(made, spec=replace(made.spec, node_name="n1")))
    fill(
        cluster,
        device_class(),
        slice_of("s", device("gpu-0"), node="n1"),
        allocated(claim("c", request()), result("gpu-0"), users=users),
    )
    return cluster, made


def test_a_pod_that_is_gone_gives_its_devices_back_for_a_while() -> None:
    cluster, made = _with_gpu(made_uid := pod("p1").metadata.uid)

    with cluster.transaction() as tx:
        tx.remove(made_uid)
        tx.release(made)
        assert not len(cluster.devices.uses)
        cluster.validate()
    assert len(cluster.devices.uses) == 1
    cluster.validate()


def test_devices_that_another_pod_uses_stay_until_it_is_gone_too() -> None:
    cluster, made = _with_gpu(pod("p1").metadata.uid, pod("p2").metadata.uid)
    other = claiming(pod("p2"), "c")

    with cluster.transaction() as tx:
        tx.release(made)
        assert len(cluster.devices.uses) == 1
        tx.release(other)
        assert not len(cluster.devices.uses)
    found = cluster.devices.claims.get("default", "c")
    assert found is not None
    assert len(found.status.reserved_for) == 2


def test_a_decision_about_devices_is_given_back_before_it_is_written() -> None:
    cluster, made = _with_gpu()
    unwritten = claim("c", request())
    cluster.devices.claims.put(unwritten)
    cluster.devices.claims.signal(unwritten.metadata.uid, allocation(result("gpu-0")))

    with cluster.transaction() as tx:
        tx.release(made)
        assert not len(cluster.devices.uses)
    assert len(cluster.devices.uses) == 1
    assert cluster.devices.claims.pending_count == 1
    cluster.validate()


def test_objects_come_and_go_and_are_as_before() -> None:
    cluster = cluster_of(node("n1"))
    fill(cluster, device_class("a"))

    with cluster.transaction() as tx:
        tx.put_object(cluster.devices.classes, device_class("b"))
        tx.put_object(cluster.devices.classes, device_class("a", "false"))
        assert list(cluster.devices.classes) == [device_class("a", "false"), device_class("b")]
    assert list(cluster.devices.classes) == [device_class("a")]
