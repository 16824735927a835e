"""The columns of the page say what the table says, and what changed is all that changed."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.cluster.cluster import Cluster
from kubesched.web.columns import NodeColumns
from kubesched.web.report import ChangedNodes, NodesTold
from tests.support.objects import node, pod
from tests.support.scheduling import cluster_of


def test_nodes_come_by_zone_and_name_with_what_they_offer_and_have() -> None:
    cluster = cluster_of(
        node("b", cpu="4", memory="8Gi", pods=10, zone="z1", resources={"example.com/gpu": "2"}),
        node("a", cpu="2", zone="z2", taints=["x:NoSchedule", "y=1:NoExecute"]),
        node("c", zone="z1", unschedulable=True, conditions={"Ready": "False"}),
        pod("p", node="b", cpu="1500m", memory="1Gi"),
    )

    told = NodeColumns(cluster.table).all()

    assert told.names == ["b", "c", "a"]
    assert told.zones == ["z1", "z1", "z2"]
    assert told.unschedulable == [0, 1, 0]
    assert told.ready == [1, 0, 1]
    assert told.taints == [0, 0, 2]
    assert told.pods == [1, 0, 0]
    assert list(told.resources) == ["cpu", "memory", "pods", "example.com/gpu"]
    assert told.resources["cpu"].allocatable == [4000, 4000, 2000]
    assert told.resources["cpu"].requested == [1500, 0, 0]
    assert told.resources["memory"].requested == [1 << 30, 0, 0]
    assert told.resources["pods"].allocatable == [10, 110, 110]
    assert told.resources["pods"].requested == [1, 0, 0]
    assert told.resources["example.com/gpu"].allocatable == [2, 0, 0]


def test_only_changed_nodes_are_told_again() -> None:
    cluster = cluster_of(*(node(f"n{number}") for number in range(5)))
    columns = NodeColumns(cluster.table)
    version = columns.all().version

    cluster.put_pod(pod("p", node="n3", cpu="1"))
    told = columns.since(version)

    assert told is not None
    assert told.version > version
    assert not told.reload
    assert told.changed.names == ["n3"]
    assert told.changed.resources["cpu"].requested == [1000]
    assert columns.since(told.version) is None


def test_a_node_that_gets_ready_is_told_again() -> None:
    cluster = cluster_of(node("n1", conditions={"Ready": "False"}), node("n2"))
    columns = NodeColumns(cluster.table)
    version = columns.all().version

    cluster.put_node(node("n1", conditions={"Ready": "True"}))
    told = columns.since(version)

    assert told is not None
    assert (told.changed.names, told.changed.ready) == (["n1"], [1])


def test_nodes_that_come_go_or_move_are_a_reason_to_ask_for_all() -> None:
    cluster = cluster_of(node("n1", zone="a"), node("n2", zone="b"))
    columns = NodeColumns(cluster.table)

    changes: tuple[Callable[[], None], ...] = (
        lambda: cluster.put_node(node("n3", zone="a")),
        lambda: cluster.remove_node("n1"),
        lambda: cluster.put_node(node("n2", zone="c")),
        lambda: cluster.put_node(node("n2", zone="c", resources={"example.com/gpu": "1"})),
    )
    for change in changes:
        version = columns.all().version
        change()
        told = columns.since(version)
        assert told is not None
        assert told.reload
        assert told.changed.names == []
    assert columns.all().names == ["n3", "n2"]


def test_a_version_of_another_life_is_a_reason_to_ask_for_all() -> None:
    columns = NodeColumns(cluster_of(node("n1")).table)
    columns.refresh()

    for version in (-1, 0, 99):
        told = columns.since(version)
        assert told is not None
        assert told.reload


def test_nothing_is_done_while_nothing_happens() -> None:
    columns = NodeColumns(cluster_of(node("n1")).table)

    assert columns.current_version() == columns.current_version()


def test_more_changes_than_the_log_holds_are_not_missed() -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    columns = NodeColumns(cluster.table)
    version = columns.all().version
    on_it = pod("p", node="n2", cpu="1")

    for _ in range(40_000):
        cluster.table.row_changes.record(0)
    cluster.put_pod(on_it)
    for _ in range(40_000):
        cluster.table.row_changes.record(0)
    told = columns.since(version)

    assert told is not None
    assert "n2" in told.changed.names


_CHANGES = st.lists(
    st.tuples(st.sampled_from(["node", "gone", "pod", "ask"]), st.integers(0, 4), st.integers(0, 2))
)


@settings(max_examples=60, deadline=None)
@given(_CHANGES)
def test_whoever_follows_has_what_whoever_asks_gets(changes: list[tuple[str, int, int]]) -> None:
    cluster = Cluster()
    columns = NodeColumns(cluster.table)
    followed = _Follower(columns)
    for number, (what, which, zone) in enumerate(changes):
        if what == "node":
            cluster.put_node(node(f"n{which}", zone=f"z{zone}", cpu=str(zone + 1)))
        elif what == "gone":
            cluster.remove_node(f"n{which}")
        elif what == "pod":
            cluster.put_pod(pod(f"p{number % 3}", node=f"n{which}", cpu=f"{zone}"))
        else:
            followed.catch_up()
            assert followed.rows == _rows(columns.all())


class _Follower:
    """A page that takes notice of changes only."""

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self._version = -1
        self.rows: dict[str, object] = {}

    def catch_up(self) -> None:
        told: ChangedNodes | None = self._columns.since(self._version)
        if told is None:
            return
        if told.reload:
            everything = self._columns.all()
            self.rows, self._version = _rows(everything), everything.version
            return
        assert told.changed.names
        assert set(told.changed.names) <= set(self.rows)
        self.rows |= _rows(told.changed)
        self._version = told.version


def _rows(told: NodesTold) -> dict[str, object]:
    return {
        name: (
            told.zones[at],
            told.ready[at],
            told.pods[at],
            {
                resource: (each.allocatable[at], each.requested[at])
                for resource, each in told.resources.items()
            },
        )
        for at, name in enumerate(told.names)
    }
