"""``--tracing-config-file``: a scheduler of its own process, a real API server and a collector."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.otlp_collector import Collector
from tests.support.waiting import until

from .control_plane import ControlPlane
from .scheduler_process import (
    node,
    pod,
    pods_path,
    run_scheduler,
    run_to_its_end,
    wait_until_bound,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"


def tracing(folder: Path, endpoint: str) -> str:
    path = folder / "tracing.yaml"
    path.write_text(f"{HEAD}endpoint: {endpoint}\nsamplingRatePerMillion: 1000000\n")
    return f"--tracing-config-file={path}"


def test_attempts_reach_the_collector(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [node(f"n{number}") for number in range(3)])
    with Collector() as collector:
        flag = tracing(tmp_path, collector.endpoint)
        with run_scheduler(plane, None, flag) as scheduler:
            scheduler.wait_until_scheduling()
            plane.create_many(pods_path(namespace), [pod(f"p{number}") for number in range(20)])
            wait_until_bound(plane, namespace)
        # The rest is sent when the scheduler ends.
        spans = collector.spans()

    attempts = [each for each in spans if each.name == "Attempt"]
    names = {
        value.value.string_value
        for each in attempts
        for value in each.attributes
        if value.key == "k8s.pod.name"
    }
    assert names == {f"p{number}" for number in range(20)}
    for attempt in attempts:
        mine = [each for each in spans if each.trace_id == attempt.trace_id]
        (binding,) = [each for each in mine if each.name == "BindingCycle"]
        assert binding.parent_span_id == attempt.span_id
        (request,) = [each for each in mine if each.name == "HTTP POST"]
        assert request.parent_span_id == binding.span_id
        assert attempt.start_time_unix_nano <= request.start_time_unix_nano
        assert request.end_time_unix_nano <= attempt.end_time_unix_nano


def test_a_collector_that_is_down_changes_nothing(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [node("n1")])
    with Collector() as collector:
        endpoint = collector.endpoint
    with run_scheduler(plane, None, tracing(tmp_path, endpoint)) as scheduler:
        scheduler.wait_until_scheduling()
        plane.create_many(pods_path(namespace), [pod(f"p{number}") for number in range(5)])
        wait_until_bound(plane, namespace)
        until(lambda: "Spans cannot be sent" in scheduler.log(), seconds=20)
        plane.create_many(pods_path(namespace), [pod(f"q{number}") for number in range(5)])
        wait_until_bound(plane, namespace)
        log = scheduler.log()

    assert log.count("Spans cannot be sent") == 1
    assert f'endpoint="{endpoint}"' in log
    assert "Traceback" not in log


def test_a_file_that_is_refused_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "tracing.yaml"
    path.write_text(f"{HEAD}samplingRatePerMillion: -5\n")

    done = run_to_its_end(f"--tracing-config-file={path}")

    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert (
        "failed to validate tracing configuration: samplingRatePerMillion: Invalid value: -5: "
        "sampling rate must be positive"
    ) in done.stderr
