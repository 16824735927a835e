"""From which nodes storage can be reached."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node, NodeSelector, NodeSelectorTerm
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.api.storage import TopologySelectorLabelRequirement, TopologySelectorTerm
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.plugins.volume_topology import (
    FEW_CHANGES,
    RowPairs,
    Topologies,
    Topology,
    TopologyRows,
    of_allowed_topologies,
    of_label_selector,
    of_node_selector,
)
from tests.support.objects import named, node, requirement, term
from tests.support.scheduling import cluster_of
from tests.support.volume_scheduling import host, in_zones, on_hosts


@pytest.fixture
def cluster() -> Cluster:
    return cluster_of(host("n1", zone="a"), host("n2", zone="b"), host("n3", zone="c"), node("n4"))


def reached(topology: Topology | None, cluster: Cluster) -> list[str]:
    """Ask both ways, by mask and by row numbers, which must agree."""
    table = cluster.table
    rows = sorted(TopologyRows(table).rows(topology).tolist())
    if topology is not None:
        mask = topology(NodeRows.all_of(table))
        assert [row for row in range(table.size) if mask[row]] == rows
    return [table.name_at(row) for row in rows if table.valid[row]]


def selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


# --- node affinity of volumes -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([on_hosts("n2")], ["n2"]),
        ([on_hosts("n2", "n1")], ["n1", "n2"]),
        ([on_hosts("n2", "gone")], ["n2"]),
        ([on_hosts("gone")], []),
        ([in_zones("a"), on_hosts("n3")], ["n1", "n3"]),
        ([in_zones("a", "b", "c", "d", "e")], ["n1", "n2", "n3"]),
        ([term(requirement("topology.kubernetes.io/zone", "NotIn", "a"))], ["n2", "n3", "n4"]),
        ([term(requirement("topology.kubernetes.io/zone", "DoesNotExist"))], ["n4"]),
        (
            [
                term(
                    requirement("topology.kubernetes.io/zone", "In", "a", "b"),
                    requirement("kubernetes.io/hostname", "In", "n2", "n3"),
                )
            ],
            ["n2"],
        ),
        # A term that says nothing matches nothing, as does one that cannot be understood.
        ([NodeSelectorTerm()], []),
        ([term(requirement("zone", "Near", "a"))], []),
        ([term(requirement("zone", "Near", "a")), on_hosts("n1")], ["n1"]),
        ([], []),
    ],
)
def test_node_affinity(
    cluster: Cluster, terms: list[NodeSelectorTerm], expected: list[str]
) -> None:
    assert reached(of_node_selector(selector(*terms)), cluster) == expected


def test_a_condition_on_the_name_of_a_node_counts_as_fulfilled(cluster: Cluster) -> None:
    assert reached(of_node_selector(selector(named("n1"))), cluster) == ["n1", "n2", "n3", "n4"]


def test_equal_affinities_are_compiled_once() -> None:
    topologies = Topologies()
    assert topologies.of(selector(on_hosts("n1"))) is topologies.of(selector(on_hosts("n1")))


# --- allowed topologies -------------------------------------------------------------------------


def allowed(*terms: dict[str, tuple[str, ...]]) -> tuple[TopologySelectorTerm, ...]:
    return tuple(
        TopologySelectorTerm(
            match_label_expressions=tuple(
                TopologySelectorLabelRequirement(key=key, values=values)
                for key, values in each.items()
            )
        )
        for each in terms
    )


ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        (allowed({ZONE: ("a", "b")}), ["n1", "n2"]),
        (allowed({ZONE: ("a", "b"), HOST: ("n2", "n3")}), ["n2"]),
        (allowed({ZONE: ("a",)}, {HOST: ("n3",)}), ["n1", "n3"]),
        (allowed({}), []),
        (allowed({}, {ZONE: ("a",)}), ["n1"]),
        (allowed({ZONE: ()}), []),
        (allowed({"not a key": ("a",)}, {ZONE: ("a",)}), ["n1"]),
    ],
)
def test_allowed_topologies(
    cluster: Cluster, terms: tuple[TopologySelectorTerm, ...], expected: list[str]
) -> None:
    topology = of_allowed_topologies(terms)
    assert topology is not None
    assert reached(topology, cluster) == expected


def test_a_class_that_names_no_topology_allows_all(cluster: Cluster) -> None:
    assert of_allowed_topologies(()) is None
    assert reached(None, cluster) == ["n1", "n2", "n3", "n4"]


# --- where space is -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        (None, []),
        (LabelSelector(), ["n1", "n2", "n3", "n4"]),
        (LabelSelector(match_labels={ZONE: "a"}), ["n1"]),
        (LabelSelector(match_labels={ZONE: "a", HOST: "n2"}), []),
        (
            LabelSelector(
                match_expressions=(LabelSelectorRequirement(key=ZONE, operator="Exists"),)
            ),
            ["n1", "n2", "n3"],
        ),
        (LabelSelector(match_labels={"not a key": "a"}), []),
    ],
)
def test_node_topology(
    cluster: Cluster, topology: LabelSelector | None, expected: list[str]
) -> None:
    assert reached(of_label_selector(topology), cluster) == expected


# --- rows are found again when labels change ----------------------------------------------------


def test_rows_follow_the_labels(cluster: Cluster) -> None:
    rows = TopologyRows(cluster.table)
    in_a = of_node_selector(selector(in_zones("a")))

    def found() -> list[str]:
        return sorted(cluster.table.name_at(row) for row in rows.rows(in_a).tolist())

    assert found() == ["n1"]
    cluster.put_node(host("n2", zone="a"))
    assert found() == ["n1", "n2"]
    cluster.put_node(host("n5", zone="a"))
    assert found() == ["n1", "n2", "n5"]
    cluster.remove_node("n1")
    assert found() == ["n2", "n5"]
    cluster.put_node(host("n6", zone="z"))
    assert found() == ["n2", "n5"]
    in_z = of_node_selector(selector(in_zones("z")))
    assert [cluster.table.name_at(row) for row in rows.rows(in_z).tolist()] == ["n6"]


@pytest.mark.parametrize(
    ("topology", "change", "differs"),
    [
        (of_node_selector(selector(in_zones("a"))), host("n2", zone="b", colour="red"), False),
        (of_node_selector(selector(in_zones("a"))), host("n2", zone="c"), True),
        (of_label_selector(LabelSelector()), host("n2", zone="c"), False),
        (of_label_selector(LabelSelector()), host("n5"), True),
    ],
)
def test_a_version_tells_whether_rows_may_differ(
    cluster: Cluster, topology: Topology, change: Node, differs: bool
) -> None:
    rows = TopologyRows(cluster.table)

    def versions() -> list[int]:
        return [rows.version_of(key) for key in topology.keys or [None]]

    before = versions()
    assert versions() == before
    cluster.put_node(change)
    assert (versions() != before) is differs


# --- many topologies in order -------------------------------------------------------------------

_KINDS: list[Topology | None] = [
    None,
    of_label_selector(LabelSelector()),
    of_label_selector(None),
    *(of_node_selector(selector(on_hosts(name))) for name in ("n1", "n2", "n3")),
    *(of_node_selector(selector(in_zones(zone))) for zone in ("a", "b")),
    of_node_selector(selector(in_zones("a", "b"))),
    of_node_selector(selector(in_zones("a"), on_hosts("n3"))),
    of_node_selector(selector(term(requirement(ZONE, "DoesNotExist")))),
]
_kinds = st.sampled_from(_KINDS)
_steps = st.one_of(
    st.tuples(st.just("insert"), st.floats(0, 1), _kinds),
    st.tuples(st.just("remove"), st.floats(0, 0.99), st.none()),
    st.tuples(
        st.just("put node"),
        st.sampled_from(["n1", "n2", "n3", "n4"]),
        st.sampled_from([None, "a", "b"]),
    ),
    st.tuples(st.just("remove node"), st.sampled_from(["n2", "n3"]), st.none()),
    st.tuples(st.just("ask"), st.none(), st.none()),
)


@given(first=st.lists(_kinds, max_size=5), steps=st.lists(_steps, max_size=60))
@settings(max_examples=150, deadline=None)
def test_pairs_are_those_of_each_topology_in_turn(
    first: list[Topology | None], steps: list[tuple[str, Any, Any]]
) -> None:
    cluster = cluster_of(host("n1", zone="a"), host("n2", zone="b"))
    pairs, listed = RowPairs(TopologyRows(cluster.table), first), list(first)
    for step, where, what in [*steps, ("ask", None, None)]:
        match step:
            case "insert":
                place = int(where * len(listed))
                listed.insert(place, what)
                pairs.insert(place, what)
            case "remove" if listed:
                place = int(where * len(listed))
                del listed[place]
                pairs.remove(place)
            case "put node":
                cluster.put_node(host(where, zone=what))
            case "remove node" if cluster.table.row_of(where) is not None:
                cluster.remove_node(where)
            case "ask":
                _check(pairs, listed, cluster)


def _check(pairs: RowPairs, listed: list[Topology | None], cluster: Cluster) -> None:
    fresh = TopologyRows(cluster.table)
    want = [(place, row) for place, each in enumerate(listed) for row in fresh.rows(each).tolist()]
    assert pairs.count() == len(want)
    for first in range(len(listed) + 1):
        places, rows = pairs.pairs(first)
        found = list(zip(places.tolist(), rows.tolist(), strict=True))
        assert found == [each for each in want if each[0] >= first]


def test_many_changes_at_once(cluster: Cluster) -> None:
    pairs, listed = RowPairs(TopologyRows(cluster.table)), list[Topology | None]()
    _check(pairs, listed, cluster)
    for number in range(2 * FEW_CHANGES):
        listed.insert(number // 2, _KINDS[number % len(_KINDS)])
        pairs.insert(number // 2, _KINDS[number % len(_KINDS)])
    _check(pairs, listed, cluster)
    for _ in range(2 * FEW_CHANGES - 1):
        del listed[0]
        pairs.remove(0)
    _check(pairs, listed, cluster)


def test_equal_node_topologies_are_compiled_once() -> None:
    compiled = Topologies()
    first = compiled.of_labels(LabelSelector(match_labels={ZONE: "a", HOST: "n1"}))
    assert compiled.of_labels(LabelSelector(match_labels={HOST: "n1", ZONE: "a"})) is first
    assert compiled.of_labels(LabelSelector(match_labels={HOST: "n2", ZONE: "a"})) is not first
    assert compiled.of_labels(LabelSelector()) is not compiled.of_labels(None)
