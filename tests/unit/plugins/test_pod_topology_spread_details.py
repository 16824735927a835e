"""The counts behind a rejection by a topology spread constraint."""

from __future__ import annotations

from msgspec.structs import replace

from tests.support.objects import node, pod, spread_over
from tests.support.worlds import details, explained

UNEVEN = "node(s) didn't match pod topology spread constraints"
NODES = (
    node("n1", labels={"rack": "a"}),
    node("n2", labels={"rack": "b"}),
    node("n3", labels={"rack": "c"}, cpu="1"),
)
PLACED = [
    pod(f"web-{n}", labels={"app": "web"}, node=name)
    for n, name in enumerate(["n1", "n1", "n1", "n2", "n2"])
]
EVEN = spread_over("rack", app="web")


def test_each_domain_has_its_count_and_skew_the_least_full_first() -> None:
    said = explained(
        pod("p", labels={"app": "web"}, spread=[EVEN], cpu="2"),
        *NODES,
        *PLACED,
    )

    (uneven,) = [each for each in said.reasons if each.text == UNEVEN]
    smallest = "the smallest count is 0 (in c)"
    assert [each.text for each in uneven.details] == [
        f"rack=b has 2 matching app=web, {smallest}: skew 3 with this pod, maxSkew 1",
        f"rack=a has 3 matching app=web, {smallest}: skew 4 with this pod, maxSkew 1",
    ]
    assert uneven.details[1].examples == ("n1",)
    assert uneven.details[1].values == {
        "topologyKey": "rack",
        "domain": "a",
        "count": 3,
        "min": 0,
        "skew": 4,
        "maxSkew": 1,
        "selector": "app=web",
        "counts": {"a": 3, "b": 2, "c": 0},
    }


def test_too_few_domains_count_as_an_empty_one() -> None:
    wide = replace(EVEN, min_domains=5)

    texts = details(pod("p", labels={"app": "web"}, spread=[wide]), *NODES[:1], *PLACED[:1])[UNEVEN]

    assert texts == [
        (
            "rack=a has 1 matching app=web, the smallest counts as 0 with 1 of minDomains 5: "
            "skew 2 with this pod, maxSkew 1"
        )
    ]


def test_a_node_without_the_label_lacks_it() -> None:
    found = details(pod("p", labels={"app": "web"}, spread=[EVEN]), node("bare"))

    assert found == {f"{UNEVEN} (missing required label)": ["the node has no label rack"]}
