"""Pod groups on a real API server: a gang is bound as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .control_plane import ControlPlane
from .pod_groups import (
    GATES,
    RUNTIME_CONFIG,
    create_group,
    create_members,
    create_priority_class,
    create_single,
    gang,
    group_condition,
    nodes_of,
    wait_for_group,
)
from .scheduler_process import (
    condition_of,
    node,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)

GATE = f"--feature-gates={GATES}"

pytestmark = pytest.mark.usefixtures("clean_cluster")


@pytest.fixture(scope="module")
def control_plane(assets: Path) -> Iterator[ControlPlane]:
    """A control plane that serves pod groups."""
    with ControlPlane(assets, feature_gates=GATES, runtime_config=RUNTIME_CONFIG) as plane:
        yield plane


def test_a_gang_is_bound_once_all_its_pods_are_there(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with run_scheduler(control_plane, None, GATE):
        create_group(control_plane, namespace, gang(3))
        create_members(control_plane, namespace, "a", "b")
        create_single(control_plane, namespace, "single")
        # The single pod came last: when it is bound, the others have had their chance.
        wait_until_bound(control_plane, namespace, "single")
        assert nodes_of(control_plane, namespace) == {"a": "", "b": "", "single": "n1"}
        assert condition_of(control_plane, namespace, "a") is None
        assert group_condition(control_plane, namespace) is None

        create_members(control_plane, namespace, "c")
        bound = wait_until_bound(control_plane, namespace)

        assert set(bound.values()) == {"n1"}
        written = wait_for_group(control_plane, namespace, "True")
        assert (written["reason"], written["message"]) == ("Scheduled", "")


def test_of_a_gang_without_enough_room_no_pod_is_bound(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1", allocatable={"cpu": "2"}))
    create_group(control_plane, namespace, gang(3))
    create_members(control_plane, namespace, "a", "b", "c", cpu="1")
    with run_scheduler(control_plane, None, GATE):
        written = wait_for_group(control_plane, namespace, "False")

        assert written["reason"] == "Unschedulable"
        assert written["message"] == (
            "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, "
            "pod group preemption: No preemption victims found for incoming preemptor"
        )
        refused = wait_until_refused(control_plane, namespace, "c")
        assert refused == "0/1 nodes are available: 1 Insufficient cpu."
        assert wait_until_refused(control_plane, namespace, "a").startswith(
            "pod group is unschedulable, minCount (3) cannot be satisfied"
        )
        assert set(nodes_of(control_plane, namespace).values()) == {""}

        control_plane.request("POST", "/api/v1/nodes", node("n2", allocatable={"cpu": "1"}))
        bound = wait_until_bound(control_plane, namespace)

        assert sorted(bound.values()) == ["n1", "n1", "n2"]
        wait_for_group(control_plane, namespace, "True")


def test_pods_wait_for_their_group_to_be_created(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    create_members(control_plane, namespace, "a", "b")
    create_single(control_plane, namespace, "single")
    with run_scheduler(control_plane, None, GATE):
        wait_until_bound(control_plane, namespace, "single")
        assert nodes_of(control_plane, namespace) == {"a": "", "b": "", "single": "n1"}

        create_group(control_plane, namespace, {"basic": {}})

        wait_until_bound(control_plane, namespace)


def test_a_gang_evicts_what_it_needs_and_no_more(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.create_many(
        "/api/v1/nodes", [node(name, allocatable={"cpu": "2"}) for name in ("n1", "n2")]
    )
    create_priority_class(control_plane, "important", 1000)
    create_single(control_plane, namespace, "low-1", cpu="2")
    create_single(control_plane, namespace, "low-2", cpu="1")
    with run_scheduler(control_plane, None, GATE):
        wait_until_bound(control_plane, namespace, "low-1", "low-2")

        create_group(control_plane, namespace, gang(2), priorityClassName="important")
        create_members(control_plane, namespace, "a", "b", cpu="1", priority_class="important")
        bound = wait_until_bound(control_plane, namespace, "a", "b")

        assert len(bound) == 2
        (left,) = [name for name in nodes_of(control_plane, namespace) if name.startswith("low")]
        assert left == "low-2"


def test_without_the_gate_pods_of_groups_are_scheduled_one_by_one(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    create_group(control_plane, namespace, gang(3))
    create_members(control_plane, namespace, "a")
    with run_scheduler(control_plane):
        assert wait_until_bound(control_plane, namespace) == {"a": "n1"}
    assert group_condition(control_plane, namespace) is None
