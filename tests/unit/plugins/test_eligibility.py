"""Which nodes a pod could use, by its own wishes and by the nodes' taints."""

from __future__ import annotations

import gc
import weakref

from kubesched.api.core import Toleration
from kubesched.plugins.eligibility import Eligibility
from tests.support.objects import node, pod, requirement, requires, term
from tests.support.scheduling import Lab

SSD = {"disk": "ssd"}


def eligibility(lab: Lab, *, comparisons: bool = False) -> Eligibility:
    return Eligibility(lab.cluster.table, comparisons=comparisons)


def test_a_pod_without_wishes_has_no_column() -> None:
    lab = Lab(node("a"))
    assert eligibility(lab).matches_affinity(lab.pending(pod()).signature) is None


def test_selector_and_affinity_count_together_and_follow_the_nodes() -> None:
    lab = Lab(node("a", labels=SSD), node("b", labels={**SSD, "gen": "3"}), node("c"))
    asking = pod(node_selector=SSD, node_affinity=requires(term(requirement("gen", "Gt", "2"))))
    found, signature = eligibility(lab), lab.pending(asking).signature
    first = found.matches_affinity(signature)
    assert first is not None
    assert first.tolist() == [False, True, False]
    lab.cluster.put_node(node("a", labels={**SSD, "gen": "9"}))
    again = found.matches_affinity(signature)
    assert again is not None
    assert again.tolist() == [True, True, False]


def test_only_forbidding_taints_count() -> None:
    lab = Lab(
        node("a"),
        node("b", taints=["x=1:NoSchedule"]),
        node("c", taints=["x=1:NoExecute"]),
        node("d", taints=["x=1:PreferNoSchedule"]),
        node("e", unschedulable=True),
    )
    found = eligibility(lab)
    assert found.tolerated(lab.pending(pod()).signature).tolist() == [
        True,
        False,
        False,
        True,
        True,
    ]
    tolerating = pod(tolerations=[Toleration(key="x", value="1", effect="NoExecute")])
    assert found.tolerated(lab.pending(tolerating).signature).tolist() == [
        True,
        False,
        True,
        True,
        True,
    ]


def test_numbers_are_compared_if_the_feature_is_on() -> None:
    lab = Lab(node("a", taints=["tier=5:NoSchedule"]))
    signature = lab.pending(
        pod(tolerations=[Toleration(key="tier", operator="Gt", value="3", effect="NoSchedule")])
    ).signature
    assert eligibility(lab, comparisons=True).tolerated(signature).tolist() == [True]
    assert eligibility(lab, comparisons=False).tolerated(signature).tolist() == [False]


def test_signatures_are_released() -> None:
    lab = Lab(node("a", labels=SSD))
    found = eligibility(lab)
    info = lab.pending(pod(node_selector=SSD))
    signature = weakref.ref(info.signature)
    found.matches_affinity(info.signature)
    found.tolerated(info.signature)
    del info
    gc.collect()
    assert signature() is None
