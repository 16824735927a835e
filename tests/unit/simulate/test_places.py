"""Nodes by pool and zone, and names in few words."""

from __future__ import annotations

import pytest

from kubesched.simulate.places import POOL_LABELS, folded, natural, places_of, pool_of
from tests.support.objects import node


@pytest.mark.parametrize("label", POOL_LABELS)
def test_each_of_the_usual_labels_names_the_pool(label: str) -> None:
    assert pool_of(node("n", labels={label: "blue"})) == "blue"


def test_a_node_without_such_a_label_has_no_pool() -> None:
    assert pool_of(node("n", labels={"x": "y"})) == ""


def test_places_have_the_fullest_first_and_nodes_as_people_count() -> None:
    nodes = {
        name: node(name, zone=zone, region="r", labels={"pool": "p"})
        for name, zone in (("n2", "a"), ("n10", "a"), ("n1", "b"))
    }

    found = places_of(["n10", "n1", "n2", "n10"], nodes)

    assert [(each.zone, each.pods, list(each.nodes.items())) for each in found] == [
        ("r/a", 3, [("n2", 1), ("n10", 2)]),
        ("r/b", 1, [("n1", 1)]),
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["b", "a"], "a, b"),
        (["n10", "n9", "n9"], "n9, n10"),
        (["n3", "n1", "n12", "n2"], "n1 … n12"),
        ([], ""),
    ],
)
def test_many_names_are_the_first_and_the_last(names: list[str], said: str) -> None:
    assert folded(names) == said


def test_names_that_begin_with_numbers_can_be_compared() -> None:
    assert sorted(["10a", "9", "x", "2b3"], key=natural) == ["2b3", "9", "10a", "x"]
