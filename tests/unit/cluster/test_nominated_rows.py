"""The room that pods have to leave to others: kept sums against counting anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from tests.support.objects import node, on_node, pod

NODES = [f"n{number}" for number in range(4)]
UIDS = [f"p{number}" for number in range(5)]


def counted(cluster: Cluster, asking: PodInfo) -> dict[str, tuple[int, int]]:
    """Node → how many others have a place there that is not theirs yet, and their CPU."""
    found = {}
    for name, others in cluster.nominator.nodes_to_leave_room_on(asking).items():
        row = cluster.table.row_of(name)
        if row is not None:
            coming = [each for each in others if each.uid not in cluster.table.pods[row]]
            if coming:
                cpu = sum(each.requests.amounts.get("cpu", 0) for each in coming)
                found[name] = (len(coming), cpu)
    return found


def kept(cluster: Cluster, asking: PodInfo) -> dict[str, tuple[int, int]]:
    rows = cluster.table.order.rows()
    requested, pod_count = cluster.nominated_rows.reserved_on(rows, asking)
    return {
        cluster.table.name_at(row): (int(pod_count[element]), int(requested[0, element]))
        for element, row in enumerate(rows.tolist())
        if pod_count[element]
    }


steps = st.lists(
    st.one_of(
        st.tuples(st.just("nominate"), st.sampled_from(UIDS), st.sampled_from(NODES)),
        st.tuples(st.just("clear"), st.sampled_from(UIDS), st.just("")),
        st.tuples(st.just("place"), st.sampled_from(UIDS), st.sampled_from(NODES)),
        st.tuples(st.just("remove"), st.sampled_from(UIDS), st.just("")),
        st.tuples(st.just("node comes"), st.just(""), st.sampled_from(NODES)),
        st.tuples(st.just("node goes"), st.just(""), st.sampled_from(NODES)),
    ),
    max_size=25,
)


@given(steps=steps, priority=st.integers(0, 3))
def test_kept_sums_are_what_counting_gives(
    steps: list[tuple[str, str, str]], priority: int
) -> None:
    cluster = Cluster()
    pods = {uid: pod(uid, cpu=str(1 + i), priority=i % 4) for i, uid in enumerate(UIDS)}
    askers = [
        cluster.compiler.pending(each)
        for each in (pod("asking", cpu="1", priority=priority), *pods.values())
    ]
    for what, uid, name in steps:
        match what:
            case "nominate":
                cluster.nominator.nominate(cluster.compiler.pending(pods[uid]), name)
            case "clear":
                cluster.nominator.clear(uid)
            case "place":
                cluster.put_pod(on_node(pods[uid], name))
            case "remove":
                cluster.remove_pod(uid)
            case "node comes":
                cluster.put_node(node(name))
            case "node goes":
                cluster.remove_node(name)
        for asking in askers:
            assert kept(cluster, asking) == counted(cluster, asking)
