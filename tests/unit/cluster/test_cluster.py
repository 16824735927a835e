"""The cluster's state: pods come before their nodes, twice, moved, assumed, forgotten."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubesched.api import labels, names
from kubesched.api.core import Namespace
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.storage import StorageClass
from kubesched.api.workloads import Service
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_counters import Selection
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.resources import CPU
from kubesched.errors import InvariantError, QuantityError
from tests.support.objects import node, on_node, pod
from tests.support.scheduling import cluster_of


def _cpu_on(cluster: Cluster, node_name: str) -> int:
    row = cluster.table.row_of(node_name)
    assert row is not None
    return int(cluster.table.requested[CPU, row])


def test_a_pod_counts_on_its_node() -> None:
    cluster = cluster_of(node("n1"), pod("p", node="n1", cpu="1"))
    assert _cpu_on(cluster, "n1") == 1000
    assert cluster.node_of("p") == "n1"
    assert cluster.pod_count == 1
    cluster.remove_pod("p")
    assert _cpu_on(cluster, "n1") == 0
    assert cluster.pod("p") is None
    cluster.validate()


def test_the_same_pod_twice_counts_once() -> None:
    cluster = cluster_of(node("n1"), pod("p", node="n1", cpu="1"), pod("p", node="n1", cpu="2"))
    assert _cpu_on(cluster, "n1") == 2000
    assert cluster.pod_count == 1
    cluster.validate()


def test_a_pod_seen_on_another_node_has_moved() -> None:
    cluster = cluster_of(node("n1"), node("n2"), pod("p", node="n1", cpu="1"))
    cluster.put_pod(pod("p", node="n2", cpu="1"))
    assert (_cpu_on(cluster, "n1"), _cpu_on(cluster, "n2")) == (0, 1000)
    cluster.validate()


def test_a_pod_may_come_before_its_node() -> None:
    cluster = cluster_of(pod("p", node="n1", cpu="1"))
    assert cluster.node_of("p") == "n1"
    cluster.validate()
    cluster.put_node(node("n1"))
    assert _cpu_on(cluster, "n1") == 1000
    cluster.validate()


def test_a_pod_may_go_before_its_node_comes() -> None:
    cluster = cluster_of(pod("p", node="n1", cpu="1"))
    cluster.remove_pod("p")
    cluster.validate()
    cluster.put_node(node("n1"))
    assert _cpu_on(cluster, "n1") == 0


def test_pods_of_a_removed_node_wait_for_it_to_come_back() -> None:
    cluster = cluster_of(node("n1"), pod("p", node="n1", cpu="1"), pod("q", node="n1", cpu="2"))
    cluster.remove_node("n1")
    cluster.validate()
    assert cluster.pod_count == 2
    cluster.remove_pod("q")
    cluster.put_node(node("n1"))
    assert _cpu_on(cluster, "n1") == 1000
    cluster.validate()


def test_removing_what_is_not_there_changes_nothing() -> None:
    cluster = cluster_of(node("n1"))
    cluster.remove_node("n2")
    cluster.remove_pod("p")
    cluster.forget("p")
    assert list(cluster.table.names()) == ["n1"]
    cluster.validate()


def test_a_resize_counts_as_soon_as_the_kubelet_reports_it() -> None:
    cluster = cluster_of(node("n1"), pod("p", node="n1", cpu="1"))
    cluster.put_pod(pod("p", node="n1", cpu="1", resized_to={"cpu": "3"}))
    assert _cpu_on(cluster, "n1") == 3000
    cluster.validate()


def test_a_version_that_cannot_be_read_leaves_the_old_one_in_place() -> None:
    cluster = cluster_of(node("n1"), pod("p", node="n1", cpu="1"))
    with pytest.raises(QuantityError):
        cluster.put_pod(pod("p", node="n1", cpu="?"))
    assert _cpu_on(cluster, "n1") == 1000
    with pytest.raises(QuantityError):
        cluster.put_node(node("n1", cpu="?"))
    assert _cpu_on(cluster, "n1") == 1000
    cluster.validate()


# --- assumptions ------------------------------------------------------------------------------


def test_an_assumed_pod_counts_at_once_and_is_confirmed_by_the_watch() -> None:
    cluster = cluster_of(node("n1"))
    waiting = pod("p", cpu="1")
    cluster.assume(cluster.compiler.pending(waiting), "n1")
    assert cluster.is_assumed("p")
    assert cluster.assumed_count == 1
    assert _cpu_on(cluster, "n1") == 1000
    cluster.put_pod(on_node(waiting, "n1"))
    assert not cluster.is_assumed("p")
    assert _cpu_on(cluster, "n1") == 1000
    cluster.validate()


def test_a_pod_bound_elsewhere_by_somebody_else_is_where_the_watch_says() -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    waiting = pod("p", cpu="1")
    cluster.assume(cluster.compiler.pending(waiting), "n1")
    cluster.put_pod(on_node(waiting, "n2"))
    assert (_cpu_on(cluster, "n1"), _cpu_on(cluster, "n2")) == (0, 1000)
    assert cluster.assumed_count == 0
    cluster.validate()


def test_a_forgotten_assumption_no_longer_counts_and_may_be_made_again() -> None:
    cluster = cluster_of(node("n1"))
    info = cluster.compiler.pending(pod("p", cpu="1"))
    cluster.assume(info, "n1")
    cluster.forget("p")
    assert _cpu_on(cluster, "n1") == 0
    assert cluster.pod_count == 0
    cluster.assume(info, "n1")
    assert _cpu_on(cluster, "n1") == 1000
    cluster.validate()


def test_forgetting_a_pod_that_was_seen_bound_changes_nothing() -> None:
    cluster = cluster_of(node("n1"))
    waiting = pod("p", cpu="1")
    cluster.assume(cluster.compiler.pending(waiting), "n1")
    cluster.put_pod(on_node(waiting, "n1"))
    cluster.forget("p")
    assert _cpu_on(cluster, "n1") == 1000


def test_a_deleted_pod_is_not_assumed_any_more() -> None:
    cluster = cluster_of(node("n1"))
    cluster.assume(cluster.compiler.pending(pod("p", cpu="1")), "n1")
    cluster.remove_pod("p")
    assert cluster.assumed_count == 0
    assert _cpu_on(cluster, "n1") == 0
    cluster.validate()


def test_a_pod_that_is_on_a_node_cannot_be_assumed() -> None:
    cluster = cluster_of(node("n1"), pod("p", node="n1", cpu="1"))
    with pytest.raises(InvariantError, match="pod default/p is on a node"):
        cluster.assume(cluster.compiler.pending(pod("p")), "n1")
    assert _cpu_on(cluster, "n1") == 1000
    assert cluster.assumed_count == 0


def test_an_assumption_outlives_its_node() -> None:
    cluster = cluster_of(node("n1"))
    cluster.assume(cluster.compiler.pending(pod("p", cpu="1")), "n1")
    cluster.remove_node("n1")
    cluster.validate()
    cluster.forget("p")
    cluster.put_node(node("n1"))
    assert _cpu_on(cluster, "n1") == 0
    cluster.validate()


def test_validate_finds_a_pod_in_two_parts() -> None:
    cluster = cluster_of(node("n1"), node("n2"), pod("p", node="n1"))
    info = cluster.pod("p")
    assert info is not None
    cluster.table.add_pod(1, info)
    with pytest.raises(InvariantError, match="two places"):
        cluster.validate()


def test_the_size_of_an_image_is_read_again_when_the_node_that_first_had_it_is_gone() -> None:
    cluster = cluster_of(node("a", images={"web:1": 100}), node("b", images={"web:1": 200}))
    cluster.remove_node("a")
    cluster.put_node(node("b", images={"web:1": 200}, cpu="8"))
    found = cluster.table.images.find("web:1")
    assert found is not None
    assert found.size_bytes == 200


def test_labels_that_a_pod_gets_by_being_bound_are_no_change_to_its_row() -> None:
    zoned = {"app": "web", names.LABEL_ZONE: "a"}
    cluster = cluster_of(node("n1", zone="a"))
    cluster.assume(cluster.compiler.pending(pod("p", labels={"app": "web"})), "n1")
    in_zone = labels.from_label_selector(LabelSelector(match_labels={names.LABEL_ZONE: "a"}))
    counter = cluster.table.pod_counter(Selection(in_zone, None, with_terminating=True))
    before = cluster.table.row_changes.position
    cluster.put_pod(pod("p", node="n1", labels=zoned))
    assert cluster.table.row_changes.position == before
    assert counter.total == 1
    cluster.validate()
    cluster.put_pod(pod("p", node="n1", labels={**zoned, "more": "yes"}))
    assert cluster.table.row_changes.position > before
    cluster.validate()


def _pending(cluster: Cluster, name: str = "p") -> PodInfo:
    return cluster.compiler.pending(pod(name))


def _assume_and_forget(cluster: Cluster) -> None:
    cluster.assume(_pending(cluster), "n1")
    cluster.forget("p")


@pytest.mark.parametrize(
    "change",
    [
        lambda cluster: cluster.put_node(node("n2")),
        lambda cluster: cluster.put_node(node("n1", labels={"new": "label"})),
        lambda cluster: cluster.remove_node("n1"),
        lambda cluster: cluster.put_pod(pod("new", node="n1")),
        lambda cluster: cluster.remove_pod("there"),
        lambda cluster: cluster.assume(_pending(cluster), "n1"),
        _assume_and_forget,
        lambda cluster: cluster.namespaces.put(Namespace(ObjectMeta(name="new"))),
        lambda cluster: cluster.namespaces.remove(Namespace(ObjectMeta(name="default"))),
        lambda cluster: cluster.nominator.nominate(_pending(cluster), "n1"),
        lambda cluster: cluster.nominator.clear("nominated"),
        lambda cluster: cluster.workloads.services.put(Service(ObjectMeta(name="web"))),
        lambda cluster: cluster.storage.classes.put(StorageClass(ObjectMeta(name="fast"))),
    ],
)
def test_every_change_that_may_matter_to_a_waiting_pod_makes_another_version(
    change: Callable[[Cluster], object],
) -> None:
    """What is left out here is never noticed by the queue when it checks itself."""
    cluster = cluster_of(node("n1"), pod("there", node="n1"))
    cluster.nominator.nominate(_pending(cluster, "nominated"), "n1")
    cluster.namespaces.put(Namespace(ObjectMeta(name="default")))
    before = cluster.version
    change(cluster)
    assert cluster.version > before


@pytest.mark.parametrize(("priority", "want"), [(5, False), (6, True)])
def test_pods_that_could_be_preempted(priority: int, want: bool) -> None:
    cluster = cluster_of(node("n1"), pod("there", node="n1", priority=5))
    assert cluster.has_pods_below(priority) is want
    cluster.remove_pod("there")
    assert not cluster.has_pods_below(priority)
