"""What pods below a priority take from each row."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.preemptable import PreemptableRequests
from kubesched.cluster.resources import CPU
from tests.support.objects import node, pod
from tests.support.random_cluster import EVENTS, FIRST_NODES, GPU, Event
from tests.support.scheduling import cluster_of


def assert_recounted(cluster: Cluster, lower: PreemptableRequests, priority: int) -> None:
    """Everything equals a recount from the pods."""
    table = cluster.table
    lower.refresh()
    for row in range(table.size):
        pods = [each for each in table.pods[row].values() if each.priority < priority]
        assert lower.pod_count[row] == len(pods)
        for number, name in enumerate(table.resources.names):
            taken = sum(each.requests.amounts.get(name, 0) for each in pods)
            assert lower.requested[number, row] == taken


def test_only_lower_priorities_count() -> None:
    cluster = cluster_of(
        node("n1"),
        pod("lower", node="n1", cpu="1", priority=4),
        pod("same", node="n1", cpu="1", priority=5),
        pod("none", node="n1", cpu="500m"),
        pod("negative", node="n1", cpu="100m", priority=-5),
    )
    for priority, (count, cpu) in {5: (3, 1600), 0: (1, 100), -5: (0, 0), 6: (4, 2600)}.items():
        lower = PreemptableRequests(cluster.table, priority)
        lower.refresh()
        assert (lower.pod_count[0], lower.requested[CPU, 0]) == (count, cpu)


def test_only_rows_that_changed_are_summed_up_again() -> None:
    others = [node(f"other-{number}") for number in range(6)]
    cluster = cluster_of(node("n1"), node("n2"), pod("a", node="n1"), pod("b", node="n2"), *others)
    lower = PreemptableRequests(cluster.table, 5)
    lower.refresh()
    lower.pod_count[:] = 77
    cluster.put_pod(pod("c", node="n2"))
    lower.refresh()
    assert lower.pod_count.tolist() == [77, 2, *[77] * 6]


def test_new_rows_and_resources_make_room_for_themselves() -> None:
    cluster = cluster_of(node("n1"), pod("a", node="n1", requests={GPU: "2"}))
    lower = PreemptableRequests(cluster.table, 5)
    lower.refresh()
    cluster.put_node(node("n2", resources={GPU: "4"}))
    for number in range(100):
        cluster.put_node(node(f"more-{number}"))
    cluster.put_pod(pod("b", node="more-99", cpu="1"))
    assert_recounted(cluster, lower, 5)


@given(first=FIRST_NODES, events=st.lists(EVENTS, min_size=1, max_size=12), often=st.booleans())
@settings(max_examples=40)
def test_sums_follow_every_change(first: list[Node], events: list[Event], often: bool) -> None:
    cluster = cluster_of(*first)
    lower = PreemptableRequests(cluster.table, 1)
    lower.refresh()
    for event in events:
        event.apply(cluster)
        if often:
            assert_recounted(cluster, lower, 1)
    assert_recounted(cluster, lower, 1)
