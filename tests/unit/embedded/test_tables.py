"""Tables, where the contract tests have no object to show it with."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.clock import VirtualClock
from kubesched.embedded.resources import BINDINGS, RESOURCES, ServedResource
from kubesched.embedded.tables import Tables
from kubesched.embedded.tables.columns import COLUMNS, NAME_AND_AGE
from kubesched.embedded.tables.pods import pod_cells
from kubesched.embedded.tables.text import format_labels, format_selector, human_duration
from kubesched.embedded.times import Timestamps

JsonObject = dict[str, Any]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (605, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 120, "3h2m"),
        (8 * 3600 + 120, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (9 * 86400 + 3600, "9d"),
        (729 * 86400, "729d"),
        (731 * 86400, "2y1d"),
        (9 * 365 * 86400 + 86400, "9y"),
    ],
)
def test_durations_are_short(seconds: float, shown: str) -> None:
    assert human_duration(seconds) == shown


def test_labels_and_selectors_in_a_cell() -> None:
    expressions = [
        {"key": "c", "operator": "In", "values": ["y", "x"]},
        {"key": "b", "operator": "DoesNotExist"},
        {"key": "d", "operator": "Exists"},
        {"key": "e", "operator": "NotIn", "values": ["z"]},
    ]
    selector = {"matchLabels": {"a": "1"}, "matchExpressions": expressions}

    assert format_labels({"b": "2", "a": "1"}) == "a=1,b=2"
    assert format_labels(None) == format_selector({}) == format_selector(None) == "<none>"
    assert format_selector(selector) == "a=1,!b,c in (x,y),d,e notin (z)"


@pytest.mark.parametrize(
    "resource", [r for r in RESOURCES if r is not BINDINGS], ids=lambda r: r.plural
)
def test_an_object_with_nothing_in_it_still_has_a_row(resource: ServedResource) -> None:
    tables = Tables(resource, Timestamps(VirtualClock()), include="")
    obj: JsonObject = {"metadata": {"name": "x"}, "spec": {}, "status": {}}

    table = tables.table([obj], {})

    (row,) = table["rows"]
    assert len(row["cells"]) == len(COLUMNS.get(resource.rules, NAME_AND_AGE))
    assert "x" in row["cells"]


def shown(status: JsonObject, **spec: Any) -> tuple[str, str, str]:
    pod = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c"}], **spec},
        "status": status,
    }
    _, ready, state, restarts, *_ = pod_cells(pod, lambda text: f"since {text}")
    return ready, state, restarts


SIDECAR = [{"name": "s", "restartPolicy": "Always"}]


def test_sidecars_count_as_containers() -> None:
    sidecar = {"name": "s", "started": True, "ready": True, "restartCount": 1, "state": {}}
    container = {"name": "c", "ready": True, "state": {"running": {}}}
    status = {
        "phase": "Running",
        "initContainerStatuses": [sidecar],
        "containerStatuses": [container],
    }

    assert shown(status, initContainers=SIDECAR) == ("2/2", "Running", "1")


def test_the_last_restart_is_told() -> None:
    last = {"terminated": {"finishedAt": "2026-01-01T00:00:00Z"}}
    container = {"name": "c", "restartCount": 3, "lastState": last, "state": {"running": {}}}

    _, _, restarts = shown({"phase": "Running", "containerStatuses": [container]})

    assert restarts == "3 (since 2026-01-01T00:00:00Z ago)"


@pytest.mark.parametrize(
    ("containers", "conditions", "state"),
    [
        ([{"terminated": {"exitCode": 0, "reason": "Completed"}}], [], "Completed"),
        (
            [{"terminated": {"exitCode": 0, "reason": "Completed"}}, {"running": {}}],
            [{"type": "Ready", "status": "True"}],
            "Running",
        ),
        (
            [{"terminated": {"exitCode": 0, "reason": "Completed"}}, {"running": {}}],
            [],
            "NotReady",
        ),
        ([{"terminated": {"exitCode": 1, "signal": 9}}], [], "Signal:9"),
        ([{"terminated": {"exitCode": 2}}], [], "ExitCode:2"),
        ([{"waiting": {"reason": "CrashLoopBackOff"}}], [], "CrashLoopBackOff"),
    ],
)
def test_containers_decide_the_state(
    containers: list[JsonObject], conditions: list[JsonObject], state: str
) -> None:
    statuses = [
        {"name": str(i), "state": each, "ready": "running" in each}
        for i, each in enumerate(containers)
    ]

    status = {"phase": "Running", "containerStatuses": statuses, "conditions": conditions}

    assert shown(status)[1] == state
