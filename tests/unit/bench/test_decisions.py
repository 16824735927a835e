"""The engine alone, measured."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.bench import decisions, decisions_report
from kubesched.bench.decisions import WORKLOADS, Point
from kubesched.bench.runner import this_machine
from kubesched.errors import KubeschedError, UsageError


@pytest.fixture(scope="module")
def points() -> dict[str, Point]:
    """Every workload once, on a small cluster."""
    found = decisions.measure(list(WORKLOADS), nodes=40, existing=100, pods=60, rounds=1)
    return {point.workload: point for point in found}


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_pod_is_decided_but_those_that_fit_nowhere(
    points: dict[str, Point], name: str
) -> None:
    point = points[name]

    # A node has room for one that preempts: what it frees is promised to that one.
    expected = {"unschedulable": 0, "preemption": point.nodes}
    assert point.decided == expected.get(name, point.pods)
    assert point.per_second > 0
    assert 0 < point.p50_us <= point.p99_us
    assert point.peak_mib > 1


def test_existing_pods_are_there(points: dict[str, Point]) -> None:
    assert points["basic"].existing == 100
    assert points["preemption"].existing == 4 * 40


def test_a_round_leaves_the_cluster_as_it_was() -> None:
    cluster = decisions.roomy_cluster(5, 7)

    first = decisions.decide(cluster, WORKLOADS["zone-affinity"], 20)
    second = decisions.decide(cluster, WORKLOADS["zone-affinity"], 20)

    assert (first.decided, second.decided) == (20, 20)
    assert (cluster.pod_count, cluster.assumed_count) == (7, 0)
    cluster.validate()


def test_a_size_is_measured_in_a_process_of_its_own() -> None:
    found = list(decisions_report.measure(["basic"], nodes=10, existing=0, pods=5, rounds=2))

    assert [(each.workload, each.nodes, each.decided) for each in found] == [("basic", 10, 5)]


def test_a_process_that_fails_is_an_error() -> None:
    with pytest.raises(KubeschedError, match="measuring 10 nodes ended with status 1"):
        list(decisions_report.measure(["fly"], nodes=10, existing=0, pods=5, rounds=1))


def test_a_workload_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no workload 'fly'; there are basic"):
        decisions_report.run(
            nodes=10,
            existing=0,
            pods=1,
            rounds=1,
            full=False,
            names=["fly"],
            as_json=False,
            results=None,
        )


def test_the_report_can_be_read_again(points: dict[str, Point]) -> None:
    made = decisions_report.DecisionReport(
        started="now", machine=this_machine(), points=tuple(points.values())
    )

    assert msgspec.json.decode(made.to_json(), type=decisions_report.DecisionReport) == made
