"""Decisions about pods of many applications, measured."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.api.core import Pod
from kubesched.bench import application_decisions
from kubesched.bench.application_decisions import OWN_LABEL, WORKLOADS, ApplicationPoint


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_pod_is_decided(name: str) -> None:
    (point,) = application_decisions.measure([name], nodes=20, applications=30, pods=60, rounds=2)

    assert (point.workload, point.applications, point.decided) == (name, 30, 60)
    assert 0 < point.mean_us <= point.first_us
    assert 0 < point.p50_us <= point.p99_us


@pytest.mark.parametrize("name", WORKLOADS)
def test_each_application_has_a_pod_already(name: str) -> None:
    def make(number: int) -> Pod:
        return WORKLOADS[name](number, 30)

    cluster = application_decisions.cluster_of(20, 30, make)

    assert cluster.pod_count == 30
    labels = [pod.labels for pods in cluster.table.pods for pod in pods.values()]
    assert {each.labels["app"] for each in labels} == {f"app-{number}" for number in range(30)}
    assert len({each.labels.get(OWN_LABEL) for each in labels}) == (
        30 if name.endswith("own-labels") else 1
    )
    cluster.validate()


def test_results_are_lines_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    application_decisions.main(["20", "10", "20", "1", "host-anti-affinity"])

    point = msgspec.json.decode(capsys.readouterr().out, type=ApplicationPoint)
    assert (point.nodes, point.applications, point.pods) == (20, 10, 20)
