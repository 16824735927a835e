from __future__ import annotations

from typing import Any

import pytest

from kubesched.config.legacy.policy_tables import PREDICATES
from kubesched.config.legacy.releases import KNOWN_THEN
from kubesched.config.legacy.successors import successor
from kubesched.errors import ConfigError
from tests.support.legacy_configurations import arguments, converted, policy, running

MANDATORY = {"NodeUnschedulable", "TaintToleration"}
ALL_OLD_FILTERS = {
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
}


def filters(*predicates: dict[str, Any]) -> set[str]:
    return set(running(converted(policy(predicates=list(predicates))))["filter"]) & KNOWN_THEN


def scores(*priorities: dict[str, Any]) -> dict[str, int]:
    return old_scores(policy(priorities=list(priorities)))


def old_scores(document: dict[str, Any]) -> dict[str, int]:
    """What scores, without plugins that came later."""
    found = running(converted(document))["score"]
    return {name: weight for name, weight in found.items() if name in KNOWN_THEN}


def test_a_policy_without_predicates_has_the_default_ones() -> None:
    conversion = converted(policy())

    assert running(conversion)["filter"].keys() & KNOWN_THEN == ALL_OLD_FILTERS


def test_a_policy_with_an_empty_list_has_the_mandatory_ones() -> None:
    assert filters() == MANDATORY


@pytest.mark.parametrize(
    "predicate",
    [name for name in PREDICATES if name not in {"CheckNodeLabelPresence", "CheckServiceAffinity"}],
)
def test_a_predicate_filters_by_its_plugins_and_nothing_else_does(predicate: str) -> None:
    plugins, _ = PREDICATES[predicate]

    assert filters({"name": predicate}) == MANDATORY | {successor(each) for each in plugins}


def test_volumes_are_bound_if_they_were() -> None:
    with_volumes = running(converted(policy(predicates=[{"name": "CheckVolumeBinding"}])))
    without = running(converted(policy(predicates=[])))

    for point in ("preFilter", "filter", "reserve", "preBind"):
        assert "VolumeBinding" in with_volumes[point]
        assert "VolumeBinding" not in without[point]


def test_preemption_binding_and_sorting_always_are() -> None:
    found = running(converted(policy(predicates=[], priorities=[])))

    assert "DefaultPreemption" in found["postFilter"]
    assert list(found["bind"]) == ["DefaultBinder"]
    assert list(found["queueSort"]) == ["PrioritySort"]


def test_a_policy_without_priorities_has_the_default_ones() -> None:
    assert old_scores(policy()) == {
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        "NodeAffinity": 1,
        "TaintToleration": 1,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "VolumeBinding": 1,
    }


@pytest.mark.parametrize(
    ("priority", "plugin"),
    [
        ("TaintTolerationPriority", "TaintToleration"),
        ("NodeAffinityPriority", "NodeAffinity"),
        ("ImageLocalityPriority", "ImageLocality"),
        ("InterPodAffinityPriority", "InterPodAffinity"),
        ("BalancedResourceAllocation", "NodeResourcesBalancedAllocation"),
        ("LeastRequestedPriority", "NodeResourcesFit"),
        ("MostRequestedPriority", "NodeResourcesFit"),
        ("SelectorSpreadPriority", "PodTopologySpread"),
        ("ServiceSpreadingPriority", "PodTopologySpread"),
        ("EvenPodsSpreadPriority", "PodTopologySpread"),
        ("RequestedToCapacityRatioPriority", "NodeResourcesFit"),
    ],
)
def test_a_priority_scores_with_its_weight_and_nothing_else_does(
    priority: str, plugin: str
) -> None:
    assert scores({"name": priority, "weight": 7}) == {plugin: 7, "VolumeBinding": 1}


def test_the_even_priority_scores_pods_with_constraints_of_their_own_alone() -> None:
    only_even = converted(policy(priorities=[{"name": "EvenPodsSpreadPriority", "weight": 2}]))
    both = converted(
        policy(
            priorities=[
                {"name": "SelectorSpreadPriority", "weight": 5},
                {"name": "EvenPodsSpreadPriority", "weight": 2},
            ]
        )
    )

    assert arguments(only_even, "PodTopologySpread") == {"defaultingType": "List"}
    assert arguments(both, "PodTopologySpread") is None
    assert running(both)["score"]["PodTopologySpread"] == 2


def test_a_shape_and_its_resources_are_taken_over() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    resources = [{"name": "nvidia.com/gpu", "weight": 3}]
    argument = {"requestedToCapacityRatioArguments": {"shape": shape, "resources": resources}}
    priority = {"name": "Pack", "weight": 4, "argument": argument}

    conversion = converted(policy(priorities=[priority]))

    assert running(conversion)["score"]["NodeResourcesFit"] == 4
    assert arguments(conversion, "NodeResourcesFit") == {
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": resources,
            "requestedToCapacityRatio": {"shape": shape},
        }
    }


def test_the_weight_of_labels_counts_once_for_each() -> None:
    def preference(label: str, *, presence: bool) -> dict[str, Any]:
        argument = {"labelPreference": {"label": label, "presence": presence}}
        return {"name": f"by-{label}", "weight": 3, "argument": argument}

    conversion = converted(
        policy(priorities=[preference("ssd", presence=True), preference("spot", presence=False)])
    )

    assert running(conversion)["score"]["NodeAffinity"] == 6


@pytest.mark.parametrize(
    ("priorities", "want"),
    [([], None), ([{"name": "InterPodAffinityPriority", "weight": 1}], 10)],
    ids=["without the priority it had no effect", "with it"],
)
def test_the_weight_of_hard_affinity(priorities: list[dict[str, Any]], want: int | None) -> None:
    conversion = converted(policy(priorities=priorities, hardPodAffinitySymmetricWeight=10))

    found = arguments(conversion, "InterPodAffinity")

    assert found == (None if want is None else {"hardPodAffinityWeight": want})


def test_what_is_the_default_is_said_to_be() -> None:
    document = policy(
        predicates=[{"name": "PodFitsResources"}],
        priorities=[
            {"name": "LeastRequestedPriority", "weight": 1},
            {"name": "EqualPriority", "weight": 1},
            {"name": "NodeAffinityPriority", "weight": 1},
        ],
    )

    report = converted(document).report

    assert report.default == [
        "predicate PodFitsResources: NodeResourcesFit",
        "priority LeastRequestedPriority weight 1: NodeResourcesFit LeastAllocated",
        "priority EqualPriority: it gave all nodes the same",
    ]
    assert "priority NodeAffinityPriority weight 1 -> score NodeAffinity" in report.converted


def test_what_has_no_counterpart_is_said_with_what_to_do_instead() -> None:
    document = policy(
        predicates=[{"name": "Region", "argument": {"serviceAffinity": {"labels": ["region"]}}}],
        priorities=[{"name": "NodePreferAvoidPodsPriority", "weight": 10000}],
        alwaysCheckAllPredicates=True,
    )

    lost = converted(document).report.lost

    assert [line.partition(":")[0] for line in lost] == [
        "alwaysCheckAllPredicates",
        "NodePreferAvoidPods",
        "ServiceAffinity by region",
    ]
    assert "podAffinity" in lost[2]


@pytest.mark.parametrize(
    ("priorities", "want"),
    [
        (
            [{"name": "NodeAffinityPriority", "weight": 0}],
            'priority "NodeAffinityPriority" needs a weight of at least 1, not 0',
        ),
        ([{"name": "Best", "weight": 1}], 'priority "Best" never existed, and has no argument'),
        (
            [
                {"name": "A", "weight": 1, "argument": {"labelPreference": {"label": "a"}}},
                {"name": "B", "weight": 2, "argument": {"labelPreference": {"label": "b"}}},
            ],
            'priority "B": priorities of one kind need the same weight, not 1 and 2',
        ),
        (
            [
                {
                    "name": "A",
                    "weight": 1,
                    "argument": {
                        "labelPreference": {"label": "a"},
                        "serviceAntiAffinity": {"label": "a"},
                    },
                }
            ],
            (
                'priority "A" needs exactly one argument of serviceAntiAffinity, labelPreference, '
                "requestedToCapacityRatioArguments"
            ),
        ),
    ],
    ids=["no weight", "unknown", "two weights", "two arguments"],
)
def test_refused(priorities: list[dict[str, Any]], want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        converted(policy(priorities=priorities))

    assert str(caught.value) == f"old.yaml: {want}"
