"""QuietAfterRestart, at a time that the test decides."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

from kubesched.testing import Workbench, make_node, make_pod, plugin_checks

from .plugin import ANNOTATION, QuietAfterRestart

RESTART = "2026-11-16T08:00:00Z"


@pytest.fixture
def minutes_later(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How many minutes after the restart it is: a list of one, for the test to change."""
    minutes = [0.0]
    restart_s = datetime.fromisoformat(RESTART).timestamp()
    now = staticmethod(lambda: restart_s + 60 * minutes[0])
    monkeypatch.setattr(QuietAfterRestart, "now", now)
    return minutes


@pytest.fixture
def one_restarted(cluster: Workbench) -> Workbench:
    cluster.use(QuietAfterRestart)
    cluster.node("steady", cpu=2)
    cluster.node("shaky", cpu=64, annotations={ANNOTATION: RESTART})
    return cluster


def test_a_node_is_left_alone_for_an_hour(
    one_restarted: Workbench, minutes_later: list[float]
) -> None:
    minutes_later[0] = 59

    placement = one_restarted.pod(cpu=1).lands_on("steady")

    assert placement.refused == {"shaky": "node(s) restarted recently"}


def test_after_an_hour_it_is_a_node_as_any_other(
    one_restarted: Workbench, minutes_later: list[float]
) -> None:
    minutes_later[0] = 60

    one_restarted.pod(cpu=1).lands_on("shaky")


def test_a_pod_that_fits_nowhere_else_waits(
    one_restarted: Workbench, minutes_later: list[float]
) -> None:
    one_restarted.pod(cpu=8).stays_pending_because("1 node(s) restarted recently")


def test_urgent_pods_go_there_all_the_same(
    one_restarted: Workbench, minutes_later: list[float]
) -> None:
    one_restarted.pod(cpu=8, priority=2_000_000_000).lands_on("shaky")


def test_the_time_can_be_another_one(cluster: Workbench, minutes_later: list[float]) -> None:
    cluster.use(QuietAfterRestart, args={"quietMinutes": 5})
    cluster.node("shaky", annotations={ANNOTATION: RESTART})
    minutes_later[0] = 6

    cluster.pod().lands_on("shaky")


CHECKS = plugin_checks(
    QuietAfterRestart,
    nodes=[
        make_node("old", annotations={ANNOTATION: "2020-01-01T00:00:00Z"}),
        make_node("new", annotations={ANNOTATION: "2999-01-01T00:00:00Z"}),
    ],
    pods=[make_pod("urgent", priority=1_000_000_000)],
)


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in CHECKS])
def test_it_keeps_its_promises(check: Callable[[], None]) -> None:
    check()
