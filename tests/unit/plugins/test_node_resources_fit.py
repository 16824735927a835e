"""NodeResourcesFit: what fits, what is said of what does not, and three ways to score."""

from __future__ import annotations

import pytest

from kubesched.api.core import Node, Pod, ResourceList
from kubesched.config.args import (
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.status import Status, unresolvable, unschedulable
from tests.support.objects import container, named, node, pod, requires
from tests.support.scheduling import Lab

GPU = "example.com/gpu"

# --- Filter -----------------------------------------------------------------------------------

#: 4 cpu, 8Gi, 10Gi storage, 4 gpu, of which 3 cpu, 6Gi, 8Gi, 3 gpu are taken.
_TAKEN: ResourceList = {"cpu": "3", "memory": "6Gi", "ephemeral-storage": "8Gi", GPU: "3"}
_OFFERED: ResourceList = {"ephemeral-storage": "10Gi", GPU: "4"}


@pytest.mark.parametrize(
    ("requests", "want"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param(
            {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "2Gi", GPU: "1"},
            None,
            id="exactly what is left",
        ),
        pytest.param({"cpu": "1001m"}, unschedulable("Insufficient cpu"), id="cpu"),
        pytest.param({"memory": "2049Mi"}, unschedulable("Insufficient memory"), id="memory"),
        pytest.param(
            {"ephemeral-storage": "3Gi"},
            unschedulable("Insufficient ephemeral-storage"),
            id="ephemeral storage",
        ),
        pytest.param({GPU: "2"}, unschedulable(f"Insufficient {GPU}"), id="extended resource"),
        pytest.param({"cpu": "4001m"}, unresolvable("Insufficient cpu"), id="more than there is"),
        pytest.param({"cpu": "4"}, unschedulable("Insufficient cpu"), id="all there is"),
        pytest.param(
            {"hugepages-2Mi": "2Mi"}, unresolvable("Insufficient hugepages-2Mi"), id="not offered"
        ),
        pytest.param({GPU: "0", "cpu": "0"}, None, id="zero"),
        pytest.param(
            {GPU: "2", "ephemeral-storage": "3Gi", "memory": "3Gi", "cpu": "2"},
            unschedulable(
                "Insufficient cpu",
                "Insufficient memory",
                "Insufficient ephemeral-storage",
                f"Insufficient {GPU}",
            ),
            id="all that is lacking, in this order",
        ),
        pytest.param(
            {"cpu": "2", "memory": "9Gi"},
            unresolvable("Insufficient cpu", "Insufficient memory"),
            id="unresolvable if one of them is",
        ),
    ],
)
def test_filter(requests: ResourceList, want: Status | None) -> None:
    lab = Lab(node("n", resources=_OFFERED), pod("there", node="n", requests=_TAKEN))
    found = lab.rejections("NodeResourcesFit", pod(requests=requests))
    assert found == ({} if want is None else {"n": want})


def test_too_many_pods_comes_first_and_is_never_unresolvable() -> None:
    lab = Lab(node("full", pods=1), node("none", pods=0), pod("there", node="full"))
    too_many = unschedulable("Too many pods")
    assert lab.rejections("NodeResourcesFit", pod()) == {"full": too_many, "none": too_many}
    both = unschedulable("Too many pods", "Insufficient cpu")
    lab.cluster.put_pod(pod("there", node="full", cpu="4"))
    assert lab.rejections("NodeResourcesFit", pod(cpu="1"))["full"] == both
    worse = unresolvable("Too many pods", "Insufficient cpu")
    assert lab.rejections("NodeResourcesFit", pod(cpu="5"))["none"] == worse


def test_each_node_lacks_something_else() -> None:
    lab = Lab(
        node("fits"),
        node("cpu", cpu="1"),
        node("memory", memory="1Gi"),
        node("both", cpu="1", memory="1Gi"),
    )
    assert lab.rejections("NodeResourcesFit", pod(cpu="2", memory="2Gi")) == {
        "cpu": unresolvable("Insufficient cpu"),
        "memory": unresolvable("Insufficient memory"),
        "both": unresolvable("Insufficient cpu", "Insufficient memory"),
    }


@pytest.mark.parametrize(
    ("asking", "fits"),
    [
        pytest.param(
            pod(containers=[container("a", cpu="2"), container("b", cpu="2")]), True, id="sum"
        ),
        pytest.param(
            pod(containers=[container("a", cpu="2"), container("b", cpu="2001m")]), False, id="more"
        ),
        pytest.param(
            pod(cpu="1", init_containers=[container("i", cpu="4")]), True, id="init, one at a time"
        ),
        pytest.param(pod(cpu="1", init_containers=[container("i", cpu="5")]), False, id="init"),
        pytest.param(
            pod(cpu="3", init_containers=[container("s", cpu="2", sidecar=True)]),
            False,
            id="a sidecar runs beside",
        ),
        pytest.param(pod(cpu="4", overhead={"cpu": "1m"}), False, id="overhead"),
        pytest.param(pod(cpu="1", pod_level={"cpu": "5"}), False, id="the pod as a whole"),
        pytest.param(pod(cpu="3", resized_to={"cpu": "5"}), True, id="status does not matter"),
    ],
)
def test_what_a_pod_requests(asking: Pod, fits: bool) -> None:
    lab = Lab(node("n", cpu="4"))
    assert (lab.rejections("NodeResourcesFit", asking) == {}) is fits


def test_what_pods_on_the_node_take_includes_resizes() -> None:
    lab = Lab(node("n", cpu="4"), pod("there", node="n", cpu="1", resized_to={"cpu": "3"}))
    assert lab.feasible(pod(cpu="1")) == ["n"]
    assert lab.feasible(pod(cpu="1001m")) == []


@pytest.mark.parametrize(
    ("args", "asked", "fits"),
    [
        pytest.param(NodeResourcesFitArgs(ignored_resources=(GPU,)), GPU, True, id="by name"),
        pytest.param(
            NodeResourcesFitArgs(ignored_resource_groups=("example.com",)), GPU, True, id="by group"
        ),
        pytest.param(
            NodeResourcesFitArgs(ignored_resource_groups=("example",)), GPU, False, id="other group"
        ),
        pytest.param(
            NodeResourcesFitArgs(ignored_resources=("hugepages-2Mi",)),
            "hugepages-2Mi",
            False,
            id="only extended resources can be ignored",
        ),
    ],
)
def test_ignored_resources(args: NodeResourcesFitArgs, asked: str, fits: bool) -> None:
    lab = Lab(node("n"), args={"NodeResourcesFit": args})
    assert (lab.rejections("NodeResourcesFit", pod(requests={asked: "1"})) == {}) is fits


# --- scores -----------------------------------------------------------------------------------


def _scores(lab: Lab, asking: Pod) -> dict[str, int]:
    return lab.raw_scores("NodeResourcesFit", asking)


def _lab(strategy: ScoringStrategy, *objects: Node | Pod) -> Lab:
    args = NodeResourcesFitArgs(scoring_strategy=strategy)
    return Lab(*objects, args={"NodeResourcesFit": args})


@pytest.mark.parametrize(
    ("there", "asking", "want"),
    [
        # of cpu, 3000 of 4000 stay free, of memory 6Gi of 8Gi
        pytest.param(None, pod(cpu="1", memory="2Gi"), 75, id="empty node"),
        # cpu 75, memory 50: 62.5 is cut
        pytest.param(None, pod(cpu="1", memory="4Gi"), 62, id="mean of both"),
        # cpu (4000 - 1000 - 100) / 4000 = 72.5, memory (8192 - 2048 - 200) / 8192 = 72.55…
        pytest.param(
            pod("there", node="n"), pod(cpu="1", memory="2Gi"), 72, id="others count a little"
        ),
        # cpu (4000 - 100) / 4000 = 97.5, memory (8192 - 200) / 8192 = 97.55…
        pytest.param(None, pod(), 97, id="a pod without requests counts a little"),
        # cpu 0: 5000 is more than 4000; memory 75
        pytest.param(
            pod("there", node="n", cpu="4", memory="1"), pod(cpu="1", memory="2Gi"), 37, id="over"
        ),
        # as with cpu 1: what the pod requests as a whole is not scored; memory 97
        pytest.param(
            None, pod(cpu="1", pod_level={"cpu": "4"}), 86, id="pod-level requests are not scored"
        ),
    ],
)
def test_least_allocated(there: Pod | None, asking: Pod, want: int) -> None:
    lab = Lab(node("n"), there) if there else Lab(node("n"))
    assert _scores(lab, asking) == {"n": want}


def test_most_allocated() -> None:
    lab = _lab(
        ScoringStrategy(type=MOST_ALLOCATED),
        node("n"),
        node("busy"),
        pod("there", node="busy", cpu="4", memory="1Gi"),
    )
    # n: 1000 / 4000, 2 / 8; busy: more than all is all, 3 / 8 = 37.5 -> (100 + 37) / 2
    assert _scores(lab, pod(cpu="1", memory="2Gi")) == {"n": 25, "busy": 68}


def test_weights() -> None:
    resources = (ResourceSpec(name="cpu", weight=3), ResourceSpec(name="memory", weight=1))
    lab = _lab(ScoringStrategy(resources=resources), node("n"))
    # (75 * 3 + 50 * 1) / 4 = 68.75
    assert _scores(lab, pod(cpu="1", memory="4Gi")) == {"n": 68}


def test_an_extended_resource_counts_only_where_it_is_offered_and_for_pods_that_want_it() -> None:
    resources = (ResourceSpec(name="cpu"), ResourceSpec(name=GPU, weight=3))
    lab = _lab(
        ScoringStrategy(resources=resources), node("with", resources={GPU: "4"}), node("without")
    )
    # with: (75 + 3 * 25) / 4 = 37.5; without: 75
    assert _scores(lab, pod(cpu="1", requests={GPU: "3"})) == {"with": 37, "without": 75}
    assert _scores(lab, pod(cpu="1")) == {"with": 75, "without": 75}


def test_a_node_that_offers_nothing_that_counts_scores_nothing() -> None:
    lab = _lab(ScoringStrategy(resources=(ResourceSpec(name=GPU),)), node("n"))
    assert _scores(lab, pod(requests={GPU: "1"})) == {"n": 0}


def _ratio(
    *points: tuple[int, int], resources: tuple[str, ...] = ("cpu", "memory")
) -> ScoringStrategy:
    return ScoringStrategy(
        type=REQUESTED_TO_CAPACITY_RATIO,
        resources=tuple(ResourceSpec(name=name) for name in resources),
        requested_to_capacity_ratio=RequestedToCapacityRatioParam(
            shape=tuple(
                UtilizationShapePoint(utilization=utilization, score=score)
                for utilization, score in points
            )
        ),
    )


@pytest.mark.parametrize(
    ("strategy", "asking", "want"),
    [
        pytest.param(_ratio((0, 0), (100, 10)), pod(cpu="1", memory="2Gi"), 25, id="rising"),
        pytest.param(_ratio((0, 10), (100, 0)), pod(cpu="1", memory="2Gi"), 75, id="falling"),
        # 100 + trunc(-100 * 25 / 70) = 100 - 35
        pytest.param(_ratio((0, 10), (70, 0)), pod(cpu="1", memory="2Gi"), 65, id="towards zero"),
        pytest.param(_ratio((30, 4), (100, 10)), pod(cpu="1", memory="2Gi"), 40, id="before it"),
        pytest.param(_ratio((0, 0), (20, 7)), pod(cpu="1", memory="2Gi"), 70, id="beyond it"),
        # 25 and 50: 37.5 is rounded up
        pytest.param(_ratio((0, 0), (100, 10)), pod(cpu="1", memory="4Gi"), 38, id="rounded"),
        pytest.param(_ratio((0, 0), (100, 10)), pod(cpu="5", memory="9Gi"), 100, id="too much"),
        # ephemeral storage scores 0 and does not count
        pytest.param(
            _ratio((0, 0), (100, 10), resources=("cpu", "ephemeral-storage")),
            pod(cpu="1"),
            25,
            id="only what scores at all counts",
        ),
        pytest.param(_ratio((0, 0), (100, 0)), pod(cpu="1"), 0, id="nothing scores"),
    ],
)
def test_requested_to_capacity_ratio(strategy: ScoringStrategy, asking: Pod, want: int) -> None:
    lab = _lab(strategy, node("n", resources={"ephemeral-storage": "1Gi"}))
    assert _scores(lab, asking) == {"n": want}


# --- no nodes to speak of ---------------------------------------------------------------------


def test_a_resource_that_nobody_knows_in_a_cluster_without_nodes() -> None:
    assert Lab().message(pod(requests={GPU: "1"})) == "no nodes available to schedule pods"


def test_a_resource_that_nobody_knows_on_a_node_that_is_gone() -> None:
    asking = pod(requests={GPU: "1"}, node_affinity=requires(named("gone")))
    assert Lab(node("a")).message(asking) == (
        "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


# --- more than usual --------------------------------------------------------------------------


def test_any_number_of_resources_may_be_lacking() -> None:
    wanted: ResourceList = {f"x.io/r{number}": "1" for number in range(70)}
    last = "x.io/r69"
    most: ResourceList = {name: amount for name, amount in wanted.items() if name != last}
    lab = Lab(
        node("nothing"), node("all-but-last", resources=most), node("last", resources={last: "1"})
    )
    rejected = lab.rejections("NodeResourcesFit", pod(requests=wanted))
    assert rejected["all-but-last"] == unresolvable(f"Insufficient {last}")
    assert rejected["nothing"] == unresolvable(*(f"Insufficient {name}" for name in wanted))


def test_a_score_that_leaves_its_range_is_an_error_not_a_bad_score() -> None:
    """More memory than can be multiplied by 100 in 64 bits."""
    lab = Lab(
        node("a", memory="90Pi"),
        node("b", memory="90Pi"),
        node("c", memory="84Pi", cpu="1000000T"),
    )
    with pytest.raises(
        AttemptError, match=r'plugin "NodeResourcesFit" returns an invalid score -[0-9]+, '
    ):
        lab.totals(pod())
