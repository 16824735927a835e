"""The workloads that are built in."""

from __future__ import annotations

from collections import Counter

import pytest

from kubesched.bench import workloads
from kubesched.bench.creation import node_of
from kubesched.bench.operations import BenchWorkload, Churn, CreateAny, CreateNodes, CreatePods
from kubesched.errors import UsageError

NAMES = sorted(workloads.BUILT_IN)


def measured(workload: BenchWorkload) -> CreatePods:
    (found,) = [
        each
        for each in workload.operations
        if isinstance(each, CreatePods) and each.collect_metrics
    ]
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ["published", "quick"])
def test_each_measures_its_pods_once_at_every_size(name: str, size: str) -> None:
    built_in = workloads.BUILT_IN[name]
    built = built_in.workload() if size == "published" else built_in.quick(None, None)

    pods = measured(built)

    assert built.name == name
    assert pods.count >= 100
    if size == "published":
        assert pods.count == built_in.pods
    else:
        # One node of its own, or tainted ones, may come on top.
        assert built.node_count <= workloads.QUICK_NODES * 5 // 4
        assert pods.count <= workloads.QUICK_PODS


@pytest.mark.parametrize("name", NAMES)
def test_each_makes_objects_that_an_api_server_can_take(name: str) -> None:
    for operation in workloads.BUILT_IN[name].quick(20, None).operations:
        if isinstance(operation, CreateNodes):
            node = node_of(operation, 1, number=1)
            assert node["kind"] == "Node"
            assert node["metadata"]["labels"]["kubernetes.io/hostname"] == node["metadata"]["name"]
        if isinstance(operation, CreatePods):
            pod = operation.template(1, operation.count)
            assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
            assert pod["metadata"]["generateName"].endswith("-")
            assert pod["spec"]["containers"][0]["image"]


@pytest.mark.parametrize(
    ("name", "nodes", "pods", "all_pods", "threshold"),
    [
        ("SchedulingBasic", 5000, 10_000, 11_000, 270),
        ("SchedulingNodeAffinity", 5000, 10_000, 15_000, 220),
        ("TopologySpreading", 5000, 5000, 10_000, 85),
        ("SchedulingPodAffinity", 5000, 5000, 10_000, 35),
        ("SchedulingPodAntiAffinity", 5000, 2000, 3000, 60),
        ("SchedulingRequiredPodAntiAffinityWithNSSelector", 6000, 2000, 6000, 24),
        ("MixedSchedulingBasePod", 5000, 5000, 15_000, 140),
        ("SchedulingDaemonset", 15_001, 30_000, 30_000, 390),
        ("PreemptionAsync", 5000, 5000, 25_000, 160),
        ("SchedulingWhileGated", 1, 20_000, 50_000, 130),
        ("SchedulingCSIPVs", 5000, 5000, 10_000, 48),
        ("SchedulingWithNodeInclusionPolicy", 5000, 4000, 4000, 68),
    ],
)
def test_the_published_sizes_are_scheduler_perfs(
    name: str, nodes: int, pods: int, all_pods: int, threshold: float
) -> None:
    built = workloads.BUILT_IN[name].workload()

    assert (built.node_count, built.pod_count) == (nodes, all_pods)
    assert measured(built).count == pods
    assert built.threshold == threshold


def test_at_another_size_there_is_no_threshold_and_the_rest_is_scaled() -> None:
    built = workloads.BUILT_IN["SchedulingBasic"].workload(nodes=500, pods=700)

    assert built.threshold == 0
    assert (built.node_count, built.pod_count) == (500, 100 + 700)


def test_more_pods_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(UsageError, match="50 pods do not fit 20 nodes, at most 16 do"):
        workloads.BUILT_IN["SchedulingPodAntiAffinity"].workload(nodes=20, pods=50)


def test_every_pod_of_its_own_size_differs() -> None:
    pods = measured(workloads.BUILT_IN["PendingOwnSizes"].workload())

    requests = {
        str(pods.template(index, pods.count)["spec"]["containers"][0]["resources"])
        for index in range(pods.count)
    }

    assert len(requests) == pods.count


def test_fifty_applications_spread_each_by_itself() -> None:
    pods = measured(workloads.BUILT_IN["PendingHardSpread"].workload())

    made = [pods.template(index, pods.count) for index in range(100)]

    assert len({pod["metadata"]["labels"]["app"] for pod in made}) == 50
    for pod in made:
        (constraint,) = pod["spec"]["topologySpreadConstraints"]
        assert constraint["labelSelector"]["matchLabels"] == pod["metadata"]["labels"]


def test_pods_that_fit_nowhere_come_five_times_a_second() -> None:
    operations = workloads.BUILT_IN["Unschedulable"].workload().operations

    (churn,) = [each for each in operations if isinstance(each, Churn)]

    (template,) = churn.templates
    assert churn.interval_s == 0.2
    assert template(0, 1)["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "9"


def test_names_may_be_groups_in_any_case_and_each_counts_once() -> None:
    found = [each.name for each in workloads.named(["schedulingbasic", "PENDING", "PendingBasic"])]

    assert found[0] == "SchedulingBasic"
    assert set(found[1:]) == set(workloads.GROUPS["pending"])
    assert len(found) == 1 + len(workloads.GROUPS["pending"])


def test_a_name_that_is_none_says_where_they_are() -> None:
    with pytest.raises(UsageError, match="--list"):
        workloads.named(["SchedulingMagic"])


def test_every_workload_says_what_it_is_about() -> None:
    assert all(each.summary.endswith((".", "?")) for each in workloads.BUILT_IN.values())


@pytest.mark.parametrize(
    ("name", "pods", "minimums"),
    [("GangsOf8", 20, [8, 8, 4]), ("GangsOf256", 600, [256, 256, 88]), ("GangsOf8", 16, [8, 8])],
)
def test_gangs_have_all_pods_between_them(name: str, pods: int, minimums: list[int]) -> None:
    built = workloads.BUILT_IN[name].workload(100, pods)
    _, groups, members = built.operations
    assert isinstance(groups, CreateAny)
    assert isinstance(members, CreatePods)
    made = [groups.template(index, groups.count) for index in range(groups.count)]
    needs = {
        each["metadata"]["name"]: each["spec"]["schedulingPolicy"]["gang"]["minCount"]
        for each in made
    }
    assert list(needs.values()) == minimums
    of = Counter(
        members.template(index, pods)["spec"]["schedulingGroup"]["podGroupName"]
        for index in range(pods)
    )
    assert of == needs
    assert built.feature_gates == {"GenericWorkload": True}
