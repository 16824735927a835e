"""PodTopologySpread: which domains are too full, and which are fuller than others.

Numbers are computed by hand: hard constraints compare count + 1 - smallest count with maxSkew; soft
ones sum count · ln(domains + 2) + maxSkew - 1, where ln 4 = 1.386 and ln 5 = 1.609.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Node, Pod, Toleration, TopologySpreadConstraint
from kubesched.api.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
)
from kubesched.api.workloads import PlainSelectorSpec, ReplicaSet, SelectorSpec, Service
from kubesched.config.args import LIST_DEFAULTING, PodTopologySpreadArgs
from kubesched.config.features import FeatureGates
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import unresolvable, unschedulable
from kubesched.plugins.pod_topology_spread import NO_CONSTRAINTS, NodeClasses, _rounded
from tests.support.evaluating import feasible_rows, total_scores
from tests.support.objects import node, pod, spread_over
from tests.support.scheduling import Lab

ZONE, HOST = names.LABEL_ZONE, names.LABEL_HOSTNAME
WEB = {"app": "web"}
NAME = "PodTopologySpread"


def place(name: str, zone: str | None = None, **more: Any) -> Node:
    """A node that is labelled with its name, and perhaps a zone."""
    labels = {HOST: name, **more.pop("labels", {})}
    return node(name, zone=zone, labels=labels, **more)


def webs(count: int, on: str, **more: Any) -> list[Pod]:
    """Some pods of the kind on a node."""
    more = {"labels": WEB, **more}
    kind = "-".join(more["labels"].values()) + more.get("namespace", "")
    return [pod(f"{on}-{kind}-{number}", node=on, **more) for number in range(count)]


def zones(**counts: int) -> list[Node | Pod]:
    """One node per zone, both of that name, with so many pods of the kind."""
    found: list[Node | Pod] = []
    for zone, count in counts.items():
        found += [place(zone, zone), *webs(count, zone)]
    return found


def over(key: str = ZONE, *, max_skew: int = 1, soft: bool = False, **more: Any) -> Any:
    """A constraint on pods of the kind."""
    return replace(spread_over(key, max_skew=max_skew, soft=soft, app="web"), **more)


def web(*constraints: TopologySpreadConstraint, **more: Any) -> Pod:
    """A pod of the kind that wants a node."""
    return pod("asking", **{"labels": WEB, **more}, spread=constraints)


def alone(*objects: Node | Pod, **more: Any) -> Lab:
    """A profile in which nobody else filters or scores."""
    return Lab(*objects, only=[NAME], **more)


# --- hard constraints -------------------------------------------------------------------------

TERMINATING = [
    replace(each, metadata=replace(each.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    for each in webs(3, "a")
]

HARD: dict[str, tuple[list[Node | Pod], Pod, list[str]]] = {
    "all the same": (zones(a=1, b=1), web(over()), ["a", "b"]),
    "one too many": (zones(a=2, b=1), web(over()), ["b"]),
    "a larger skew": (zones(a=2, b=1), web(over(max_skew=2)), ["a", "b"]),
    "the pod itself does not count": (zones(a=2, b=1), web(over(), labels={}), ["a", "b"]),
    "an empty domain is the smallest": (zones(a=1, b=1, c=0), web(over()), ["c"]),
    "nodes of a domain count together": (
        [place("a1", "a"), place("a2", "a"), place("b", "b"), *webs(1, "a1"), *webs(1, "a2")],
        web(over()),
        ["b"],
    ),
    "enough domains": (zones(a=1, b=1), web(over(min_domains=2)), ["a", "b"]),
    "too few domains: the smallest count is 0": (
        zones(a=1, b=0),
        web(over(min_domains=3)),
        ["b"],
    ),
    "too few domains, none empty": (zones(a=1, b=1), web(over(min_domains=3)), []),
    "too few domains with a larger skew": (
        zones(a=1, b=2),
        web(over(min_domains=3, max_skew=2)),
        ["a"],
    ),
    "a node in no domain is left out": ([*zones(a=1), place("x")], web(over()), ["a"]),
    "all constraints must hold": (
        [place("a1", "a"), place("a2", "a"), place("b1", "b"), *webs(1, "a1"), *webs(1, "b1")],
        web(over(), over(HOST)),
        ["a2"],
    ),
    "a node without all labels counts for no constraint": (
        # Without its pod, zone a has none.
        [place("a", "a"), place("b", "b"), node("a-nameless", zone="a"), *webs(1, "a-nameless")],
        web(over(), over(HOST)),
        ["a", "b"],
    ),
    "pods of other namespaces are others": (
        [*zones(a=0, b=0), *webs(3, "a", namespace="elsewhere")],
        web(over()),
        ["a", "b"],
    ),
    "pods on their way out are gone": ([*zones(a=0, b=0), *TERMINATING], web(over()), ["a", "b"]),
    "other labels are other pods": (
        [*zones(a=0, b=0), *webs(3, "a", labels={"app": "db"})],
        web(over()),
        ["a", "b"],
    ),
    "no selector selects nothing, not even the pod": (
        zones(a=5, b=0),
        web(over(label_selector=None)),
        ["a", "b"],
    ),
    "an empty selector selects the pod alone": (
        zones(a=5, b=0),
        web(over(label_selector=LabelSelector())),
        ["a", "b"],
    ),
    "an empty selector and too few domains": (
        zones(a=5),
        web(over(label_selector=LabelSelector(), min_domains=2)),
        ["a"],
    ),
}


@pytest.mark.parametrize(("objects", "asking", "feasible"), HARD.values(), ids=HARD.keys())
def test_where_a_hard_constraint_lets_pods_go(
    objects: list[Node | Pod], asking: Pod, feasible: list[str]
) -> None:
    assert sorted(alone(*objects).feasible(asking)) == feasible


@pytest.mark.parametrize(("objects", "asking", "feasible"), HARD.values(), ids=HARD.keys())
def test_the_same_nodes_are_turned_away_without_reasons(
    objects: list[Node | Pod], asking: Pod, feasible: list[str]
) -> None:
    assert sorted(alone(*objects).left_by_masks("PodTopologySpread", asking)) == feasible


def test_too_full_can_be_helped_and_no_domain_cannot() -> None:
    lab = Lab(*zones(a=1, b=1), place("c", "c", unschedulable=True), place("x"))
    diagnosis = lab.diagnosis(web(over()))
    statuses = {
        name: diagnosis.status_of(lab.cluster.table.row_of(name) or 0) for name in ("a", "b", "x")
    }
    full = unschedulable("node(s) didn't match pod topology spread constraints").by(NAME)
    assert statuses == {
        "a": full,
        "b": full,
        "x": unresolvable(
            "node(s) didn't match pod topology spread constraints (missing required label)"
        ).by(NAME),
    }


#: (policies, tolerations) → where the pod may go, if zone c has no pod of the kind, but its only
#: node is neither an ssd one nor untainted
INCLUDED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "by default, nodes that the pod does not select do not count": ({}, ["a", "b", "c"]),
    "affinity honoured": ({"node_affinity_policy": "Honor"}, ["a", "b", "c"]),
    "affinity ignored": ({"node_affinity_policy": "Ignore"}, ["c"]),
    "both": ({"node_affinity_policy": "Ignore", "node_taints_policy": "Honor"}, ["a", "b", "c"]),
    "neither": ({"node_affinity_policy": "Ignore", "node_taints_policy": "Ignore"}, ["c"]),
}


@pytest.mark.parametrize(("policies", "feasible"), INCLUDED.values(), ids=INCLUDED.keys())
def test_which_nodes_count(policies: dict[str, Any], feasible: list[str]) -> None:
    ssd = {"disk": "ssd"}
    lab = alone(
        place("a", "a", labels=ssd),
        place("b", "b", labels=ssd),
        place("c", "c", taints=["dedicated:NoSchedule"]),
        *webs(1, "a"),
        *webs(1, "b"),
    )
    asking = web(over(**policies), node_selector=ssd)
    assert sorted(lab.feasible(asking)) == feasible


@pytest.mark.parametrize(
    ("policy", "tolerates", "feasible"),
    [
        (None, False, ["c"]),
        ("Ignore", False, ["c"]),
        ("Honor", False, ["a", "b", "c"]),
        ("Honor", True, ["c"]),
    ],
)
def test_tainted_nodes_count_unless_taints_are_honoured(
    policy: str | None, tolerates: bool, feasible: list[str]
) -> None:
    lab = alone(*zones(a=1, b=1), place("c", "c", taints=["dedicated:NoExecute"]))
    tolerations = [Toleration(operator="Exists")] if tolerates else []
    asking = web(over(node_taints_policy=policy), tolerations=tolerations)
    assert sorted(lab.feasible(asking)) == feasible


def test_a_taint_that_only_advises_is_none() -> None:
    lab = alone(*zones(a=1, b=1), place("c", "c", taints=["slow:PreferNoSchedule"]))
    assert lab.feasible(web(over(node_taints_policy="Honor"))) == ["c"]


def test_where_no_node_counts_every_domain_is_empty() -> None:
    lab = alone(place("a", "a", taints=["x:NoSchedule"]), *webs(4, "a"))
    assert lab.feasible(web(over(node_taints_policy="Honor"))) == ["a"]


# --- matchLabelKeys ---------------------------------------------------------------------------


def version(number: int, **more: Any) -> dict[str, str]:
    return {"app": "web", "version": f"v{number}", **more}


TWO_VERSIONS: list[Node | Pod] = [
    place("a", "a"),
    place("b", "b"),
    *webs(2, "a", labels=version(1)),
    *webs(1, "b", labels=version(2)),
]
KEYS: dict[str, tuple[tuple[str, ...], dict[str, str], list[str]]] = {
    "all versions together": ((), version(2), ["b"]),
    "each version by itself": (("version",), version(2), ["a"]),
    "a new version": (("version",), version(3), ["a", "b"]),
    "a key that the pod lacks": (("absent",), version(2), ["b"]),
    "several keys": (("absent", "version", "app"), version(1), ["b"]),
}


@pytest.mark.parametrize(("keys", "labels", "feasible"), KEYS.values(), ids=KEYS.keys())
def test_only_pods_with_the_same_values_count(
    keys: tuple[str, ...], labels: dict[str, str], feasible: list[str]
) -> None:
    lab = alone(*TWO_VERSIONS)
    assert sorted(lab.feasible(web(over(match_label_keys=keys), labels=labels))) == feasible


def test_without_its_feature_gate_keys_are_not_looked_at() -> None:
    off = ("MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge")
    gates = FeatureGates.of(dict.fromkeys(off, False))
    lab = alone(*TWO_VERSIONS, gates=gates)
    assert lab.feasible(web(over(match_label_keys=("version",)), labels=version(2))) == ["b"]


# --- soft constraints -------------------------------------------------------------------------

#: objects, pod, raw scores, normalised scores
SOFT: dict[str, tuple[list[Node | Pod], Pod, dict[str, int], dict[str, int]]] = {
    "three domains": (
        # 2 · 1.609, 1 · 1.609, 0
        zones(a=2, b=1, c=0),
        web(over(soft=True)),
        {"a": 3, "b": 2, "c": 0},
        {"a": 0, "b": 33, "c": 100},
    ),
    "a larger skew waters differences down": (
        zones(a=2, b=1, c=0),
        web(over(soft=True, max_skew=3)),
        {"a": 5, "b": 4, "c": 2},
        {"a": 40, "b": 60, "c": 100},
    ),
    "two constraints": (
        # zone: ln 4 each; node: ln 5 each
        [place("a1", "a"), place("a2", "a"), place("b1", "b"), *webs(2, "a1"), *webs(1, "b1")],
        web(over(soft=True), over(HOST, soft=True)),
        {"a1": 6, "a2": 3, "b1": 3},
        {"a1": 50, "a2": 100, "b1": 100},
    ),
    "nobody anywhere": (
        zones(a=0, b=0),
        web(over(soft=True)),
        {"a": 0, "b": 0},
        {"a": 100, "b": 100},
    ),
    "all the same": (
        # 1.386
        zones(a=1, b=1),
        web(over(soft=True)),
        {"a": 1, "b": 1},
        {"a": 100, "b": 100},
    ),
    "a node without the label gets nothing": (
        [*zones(a=1, b=0), place("x")],
        web(over(soft=True)),
        {"a": 1, "b": 0, "x": 0},
        {"a": 0, "b": 100, "x": 0},
    ),
    "no node has the label": (
        [place("x"), place("y"), *webs(1, "x")],
        web(over(soft=True)),
        {"x": 0, "y": 0},
        {"x": 0, "y": 0},
    ),
    "pods of an infeasible node count in their domain, its own domain does not": (
        # Zones a and b: ln 4. Zone a has 1 + 3 pods.
        [
            *zones(a=1, b=1),
            place("a-closed", "a", unschedulable=True),
            *webs(3, "a-closed"),
            place("c", "c", unschedulable=True),
        ],
        web(over(soft=True)),
        {"a": 6, "b": 1},
        {"a": 16, "b": 100},
    ),
    "pods on their way out do not count": (
        [*zones(a=0, b=1), *TERMINATING],
        web(over(soft=True)),
        {"a": 0, "b": 1},
        {"a": 100, "b": 0},
    ),
    "hard ones do not score": (
        zones(a=1, b=0),
        web(over(max_skew=5), over(HOST, soft=True)),
        {"a": 1, "b": 0},
        {"a": 0, "b": 100},
    ),
}


@pytest.mark.parametrize(("objects", "asking", "raw", "normalised"), SOFT.values(), ids=SOFT.keys())
def test_fewer_pods_in_a_domain_are_better(
    objects: list[Node | Pod], asking: Pod, raw: dict[str, int], normalised: dict[str, int]
) -> None:
    lab = Lab(*objects, only=["NodeUnschedulable", NAME])
    assert lab.scores(NAME, asking, raw=True) == raw
    assert lab.scores(NAME, asking) == normalised


def test_without_soft_constraints_there_is_no_score() -> None:
    assert NAME not in Lab(*zones(a=1, b=1)).plugin_scores(web(over(max_skew=3)))


# --- defaults ---------------------------------------------------------------------------------


def service(**selector: str) -> Service:
    return Service(
        metadata=ObjectMeta(name="-".join(selector), namespace="default"),
        spec=PlainSelectorSpec(selector=selector or None),
    )


def replica_set(name: str, *operators: tuple[str, str]) -> ReplicaSet:
    expressions = tuple(LabelSelectorRequirement(key=k, operator=op) for k, op in operators)
    return ReplicaSet(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=SelectorSpec(selector=LabelSelector(match_expressions=expressions)),
    )


def owned(each: Pod, name: str) -> Pod:
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=name, controller=True)
    return replace(each, metadata=replace(each.metadata, owner_references=(owner,)))


def test_pods_of_a_service_are_spread_over_nodes_and_zones() -> None:
    """Nodes: 3, so ln 5, skew 3; zones a, b and none: ln 5, skew 5.

    a: 1.609 + 2 + 1.609 + 4; b: 2 + 4; x, which is in no zone: 2.
    """
    lab = Lab(*zones(a=1, b=0), place("x"))
    lab.cluster.workloads.services.put(service(app="web"))
    assert lab.scores(NAME, web(), raw=True) == {"a": 9, "b": 6, "x": 2}
    assert lab.scores(NAME, web()) == {"a": 22, "b": 55, "x": 100}


def test_pods_of_an_owner_are_its_kind() -> None:
    lab = Lab(*zones(a=1, b=0))
    lab.cluster.workloads.replica_sets.put(replica_set("rs", ("app", "Exists")))
    # ln 4 twice: 1.386 + 2 + 1.386 + 4, and 6
    assert lab.scores(NAME, owned(web(), "rs"), raw=True) == {"a": 9, "b": 6}
    assert NAME not in lab.plugin_scores(web())
    assert NAME not in lab.plugin_scores(owned(web(), "another"))


def test_services_and_owner_are_combined() -> None:
    lab = Lab(*zones(a=1, b=0), *webs(3, "b", labels={"app": "web", "canary": "yes"}))
    lab.cluster.workloads.services.put(service(app="web"))
    lab.cluster.workloads.replica_sets.put(replica_set("rs", ("canary", "DoesNotExist")))
    assert lab.scores(NAME, owned(web(), "rs"), raw=True) == {"a": 9, "b": 6}


def test_pods_of_no_service_are_not_spread() -> None:
    lab = Lab(*zones(a=1, b=0))
    lab.cluster.workloads.services.put(service(app="db"))
    lab.cluster.workloads.services.put(service())
    assert NAME not in lab.plugin_scores(web())


def test_own_constraints_replace_the_defaults() -> None:
    lab = Lab(*zones(a=1, b=0))
    lab.cluster.workloads.services.put(service(app="web"))
    assert NAME not in lab.plugin_scores(web(over(max_skew=9)))


def listed(*constraints: TopologySpreadConstraint) -> dict[str, Any]:
    bare = tuple(replace(each, label_selector=None) for each in constraints)
    args = PodTopologySpreadArgs(default_constraints=bare, defaulting_type=LIST_DEFAULTING)
    return {NAME: args}


def test_listed_defaults_ask_for_all_labels() -> None:
    lab = alone(*zones(a=1, b=0), place("x"), args=listed(over(soft=True)))
    lab.cluster.workloads.services.put(service(app="web"))
    assert lab.scores(NAME, web()) == {"a": 0, "b": 100, "x": 0}


def test_listed_defaults_may_be_hard() -> None:
    lab = alone(*zones(a=1, b=0), place("x"), args=listed(over()))
    assert lab.feasible(web()) == ["a", "b", "x"], "the pod is of no kind"
    lab.cluster.workloads.services.put(service(app="web"))
    assert lab.feasible(web()) == ["b"]


def test_an_empty_list_means_no_defaults() -> None:
    lab = Lab(*zones(a=1, b=0), args=listed())
    lab.cluster.workloads.services.put(service(app="web"))
    assert NAME not in lab.plugin_scores(web())


# --- what is malformed, what is kept ----------------------------------------------------------


def test_a_malformed_selector_is_an_error() -> None:
    wrong = LabelSelectorRequirement(key="app", operator="Resembles")
    constraint = over(label_selector=LabelSelector(match_expressions=(wrong,)))
    with pytest.raises(AttemptError) as failed:
        alone(*zones(a=0)).feasible(web(constraint))
    assert str(failed.value).startswith(
        'running PreFilter plugin "PodTopologySpread": get constraints from pod: '
        "obtaining pod's hard topology spread constraints: "
    )
    assert '"Resembles" is not a valid label selector operator' in str(failed.value)


def test_counts_follow_pods_and_nodes() -> None:
    lab = alone(*zones(a=1, b=1))
    asking = web(over())
    assert lab.feasible(asking) == ["a", "b"]
    lab.cluster.put_pod(pod("late", node="a", labels=WEB))
    assert lab.feasible(asking) == ["b"]
    lab.cluster.put_node(place("c", "c"))
    assert lab.feasible(asking) == ["c"]
    lab.cluster.remove_node("c")
    lab.cluster.remove_pod("late")
    assert lab.feasible(asking) == ["a", "b"]
    lab.cluster.put_node(place("b", "a"))
    assert sorted(lab.feasible(asking)) == ["a", "b"], "there is one zone only"


def test_signatures_and_labels_are_released() -> None:
    lab = Lab(*zones(a=1, b=1))
    honouring = over(node_taints_policy="Honor", max_skew=3)
    hermit = web(honouring, over(soft=True), node_selector={ZONE: "a"}, labels={"app": "hermit"})
    info = lab.pending(hermit)
    signature, labels = weakref.ref(info.signature), weakref.ref(info.labels)
    evaluator = lab.framework.evaluator
    total_scores(evaluator, CycleState(), info, lab.cluster.table.order.rows())
    feasible_rows(evaluator, CycleState(), info)
    evaluator.plans.clear()
    del info

    assert signature() is None
    assert labels() is None
    assert not lab.plugin(NAME)._constraints


def test_pods_that_differ_in_other_labels_share_their_constraints() -> None:
    lab = alone(*TWO_VERSIONS)
    constraint = over(match_label_keys=("version",))

    asking = []

    def constraints(**labels: str) -> object:
        asking.append(lab.pending(web(constraint, labels=labels)))
        return lab.plugin(NAME)._constraints_of(asking[-1])

    first = constraints(**version(1), pod="p-1")
    assert constraints(**version(1), pod="p-2") is first
    assert constraints(**version(2), pod="p-1") is not first
    assert constraints(app="db", version="v1", pod="p-1") is not first


def test_pods_of_a_service_that_differ_in_other_labels_share_the_defaults() -> None:
    lab = alone(*zones(a=0, b=0))
    lab.cluster.workloads.services.put(service(app="web"))

    def constraints(**labels: str) -> object:
        return lab.plugin(NAME)._constraints_of(lab.pending(pod(labels=labels)))

    assert constraints(app="web", pod="p-1") is constraints(app="web", pod="p-2")
    assert constraints(app="db") is NO_CONSTRAINTS


@given(
    counts=st.lists(st.integers(0, 10**6), min_size=1, max_size=4),
    domains=st.integers(0, 100_000),
    max_skew=st.integers(1, 1000),
)
def test_scores_are_rounded_to_the_nearest(counts: list[int], domains: int, max_skew: int) -> None:
    raw = sum(count * math.log(domains + 2) + (max_skew - 1) for count in counts)
    below = math.floor(raw)
    want = below + 1 if raw - below >= 0.5 else below
    assert _rounded(np.array([raw])).tolist() == [want]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 40)), min_size=1, max_size=60
    )
)
@settings(deadline=None)
def test_classes_of_nodes_have_the_levels_of_their_nodes(nodes: list[tuple[int, int, int]]) -> None:
    """Whether there are few classes, or each node is one."""
    for width in (1, 2, 3):
        levels = list(np.array(nodes, dtype=np.intp).T[:width])
        classes = NodeClasses.of(levels)
        of_nodes = classes.of_nodes
        if of_nodes is None:
            of_nodes = np.arange(len(nodes))
        for level, by_class in zip(levels, classes.levels, strict=True):
            assert by_class.take(of_nodes).tolist() == level.tolist()
        counted = np.bincount(of_nodes, minlength=len(classes.node_counts))
        assert classes.node_counts.tolist() == counted.tolist()
