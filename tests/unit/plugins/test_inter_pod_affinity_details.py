"""Which pods are behind a rejection by affinity or anti-affinity."""

from __future__ import annotations

from kubesched.api.core import PodAffinityTerm
from kubesched.api.meta import LabelSelector
from tests.support.objects import must, node, pod, pod_term
from tests.support.worlds import details, explained

AWAY = "node(s) didn't match pod anti-affinity rules"
NEAR = "node(s) didn't match pod affinity rules"
KEPT = "node(s) didn't satisfy existing pods anti-affinity rules"
NODES = (
    node("n1", labels={"rack": "a"}),
    node("n2", labels={"rack": "a"}),
    node("n3", labels={"rack": "b"}),
)
AWAY_FROM_WEB = must(pod_term("rack", app="web"))


def test_the_pod_that_the_anti_affinity_is_about_is_named_with_its_node() -> None:
    said = explained(
        pod("p", away_from=AWAY_FROM_WEB),
        *NODES,
        pod("web-1", labels={"app": "web"}, node="n2"),
    )

    (detail,) = said.reasons[0].details
    assert detail.text == "default/web-1 on n2 matches the anti-affinity to app=web in rack=a"
    assert (detail.nodes, detail.examples) == (2, ("n1", "n2"))
    assert detail.values == {
        "pod": "default/web-1",
        "node": "n2",
        "pods": 1,
        "topologyKey": "rack",
        "domain": "a",
        "selector": "app=web",
    }


def test_of_several_pods_one_is_named_and_the_others_are_counted() -> None:
    others = [pod(f"web-{n}", labels={"app": "web"}, node="n1") for n in range(3)]

    (text,) = details(pod("p", away_from=AWAY_FROM_WEB), *NODES, *others)[AWAY]

    assert text.endswith("matches the anti-affinity to app=web in rack=a, as do 2 more pods")


def test_an_existing_pod_with_anti_affinity_is_named() -> None:
    found = details(
        pod("p", labels={"app": "web"}),
        *NODES,
        pod("db-0", away_from=AWAY_FROM_WEB, node="n3"),
        pod("other", node="n3"),
    )

    assert found == {KEPT: ["default/db-0 on n3 has anti-affinity to app=web in rack=b"]}


def test_affinity_names_the_domains_that_have_such_pods() -> None:
    found = details(
        pod("p", near=must(pod_term("rack", app="cache")), cpu="100"),
        *NODES,
        node("n4"),
        pod("cache-0", labels={"app": "cache"}, node="n3"),
    )

    assert found[NEAR] == [
        "the node has no label rack",
        "no pod matches app=cache in rack=a; there is 1 in b",
    ]


def test_affinity_to_no_pod_at_all_is_said_once() -> None:
    found = details(pod("p", near=must(pod_term("rack", app="cache"))), *NODES)

    assert found == {NEAR: ["no pod anywhere matches app=cache"]}


def test_a_term_about_other_namespaces_names_them() -> None:
    elsewhere = PodAffinityTerm(
        topology_key="rack",
        namespaces=("shop",),
        label_selector=LabelSelector(match_labels={"app": "web"}),
    )

    (text,) = details(
        pod("p", away_from=must(elsewhere)),
        *NODES,
        pod("web", namespace="shop", labels={"app": "web"}, node="n3"),
    )[AWAY]

    assert text == "shop/web on n3 matches the anti-affinity to app=web in shop in rack=b"
