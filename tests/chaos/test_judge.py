"""What the judge finds in a history, and what it lets pass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.control_plane import JsonObject

from .judge import NEVER_FITS, STALE_SECONDS, Judge, two_writers
from .plane import Change


def pod(name: str, node: str = "", *, cpu: str = "1", gang: str = "", **more: Any) -> JsonObject:
    spec: JsonObject = {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    if node:
        spec["nodeName"] = node
    if gang:
        spec["schedulingGroup"] = {"podGroupName": gang}
    labels = more.pop("labels", {})
    meta = {"name": name, "uid": f"uid-{name}", "labels": labels}
    return {"metadata": meta, "spec": spec, "status": more}


def node(cpu: str) -> JsonObject:
    return {"status": {"allocatable": {"cpu": cpu}}}


def claim(*devices: str, reserved_for: str = "") -> JsonObject:
    results = [{"driver": "d", "pool": "p", "device": each} for each in devices]
    users = [{"name": reserved_for, "uid": f"uid-{reserved_for}"}] if reserved_for else []
    return {"status": {"allocation": {"devices": {"results": results}}, "reservedFor": users}}


def found(*changes: tuple[str, str, JsonObject | None], seconds_each: float = 1.0) -> list[str]:
    """Judge states that follow each other; return the rules that were broken."""
    history = [Change(at, *change) for at, change in enumerate(changes, start=1)]
    judge = Judge([(each.revision, each.revision * seconds_each) for each in history])
    judge.read(history)
    judge.finish()
    return [each.rule for each in judge.findings]


def test_pods_that_fit_and_stay_are_fine() -> None:
    assert not found(
        ("minions", "n", node("2")),
        ("pods", "a", pod("a")),
        ("pods", "a", pod("a", "n")),
        ("pods", "b", pod("b", "n")),
    )


def test_a_pod_that_moves_was_bound_twice() -> None:
    assert "bound twice" in found(
        ("minions", "n", node("2")),
        ("minions", "m", node("2")),
        ("pods", "a", pod("a", "n")),
        ("pods", "a", pod("a", "m")),
    )


def test_a_pod_of_the_same_name_may_go_elsewhere() -> None:
    again = pod("a", "m")
    again["metadata"]["uid"] = "another"
    assert not found(
        ("minions", "n", node("1")),
        ("minions", "m", node("1")),
        ("pods", "a", pod("a", "n")),
        ("pods", "a", None),
        ("pods", "a", again),
    )


def test_one_pod_too_many_overcommits_a_node() -> None:
    assert found(
        ("minions", "n", node("1500m")),
        ("pods", "a", pod("a", "n")),
        ("pods", "b", pod("b", "n")),
    ) == ["overcommitted"]


@pytest.mark.parametrize("left", [None, pod("a", "n", phase="Succeeded")])
def test_pods_that_are_gone_or_have_ended_leave_their_room(left: JsonObject | None) -> None:
    assert not found(
        ("minions", "n", node("1")),
        ("pods", "a", pod("a", "n")),
        ("pods", "a", left),
        ("pods", "b", pod("b", "n")),
    )


def test_a_node_that_shrank_just_now_may_be_filled_as_it_was() -> None:
    shrinking = (
        ("minions", "n", node("2")),
        ("minions", "n", node("1")),
        ("pods", "a", pod("a", "n", cpu="2")),
    )
    assert not found(*shrinking, seconds_each=1)
    assert found(*shrinking, seconds_each=2 * STALE_SECONDS) == ["overcommitted"]


def test_a_device_of_two_claims_was_allocated_twice() -> None:
    assert found(
        ("resourceclaims", "a", claim("gpu-0", "gpu-1")),
        ("resourceclaims", "b", claim("gpu-1")),
    ) == ["allocated twice"]


def test_a_device_that_was_given_back_may_be_allocated_again() -> None:
    assert not found(
        ("resourceclaims", "a", claim("gpu-0")),
        ("resourceclaims", "a", {"status": {}}),
        ("resourceclaims", "b", claim("gpu-0")),
        ("resourceclaims", "b", None),
        ("resourceclaims", "c", claim("gpu-0")),
    )


def test_a_claim_must_not_stay_reserved_for_a_pod_that_is_gone_or_waits() -> None:
    placed = (("minions", "n", node("1")), ("pods", "a", pod("a", "n")))
    assert not found(*placed, ("resourceclaims", "c", claim("x", reserved_for="a")))
    assert found(*placed, ("resourceclaims", "c", claim("x", reserved_for="b"))) == [
        "reserved in vain"
    ]
    assert "reserved in vain" in found(
        ("pods", "a", pod("a")), ("resourceclaims", "c", claim("x", reserved_for="a"))
    )


def test_what_fits_must_not_wait_and_what_does_not_must_not_be_placed() -> None:
    never = {NEVER_FITS: "true"}
    assert found(("pods", "a", pod("a"))) == ["waits although it fits"]
    assert not found(("pods", "a", pod("a", phase="Failed")))
    assert not found(("pods", "a", pod("a", labels=never)))
    assert found(("minions", "n", node("9")), ("pods", "a", pod("a", "n", labels=never))) == [
        "placed although it does not fit"
    ]


def test_a_gang_ends_whole_or_not_at_all() -> None:
    one, other = pod("a", "n", gang="g"), pod("b", gang="g")
    never = {NEVER_FITS: "true"}
    other["metadata"]["labels"] = never
    assert found(("minions", "n", node("2")), ("pods", "a", one), ("pods", "b", other)) == [
        "gang in part"
    ]


def test_the_time_in_which_a_gang_was_bound_in_part_is_measured() -> None:
    changes: list[tuple[str, str, JsonObject | None]] = [
        ("minions", "n", node("2")),
        ("pods", "a", pod("a", gang="g")),
        ("pods", "b", pod("b", gang="g")),
        ("pods", "a", pod("a", "n", gang="g")),
        ("pods", "b", pod("b", "n", gang="g")),
    ]
    history = [Change(at, *change) for at, change in enumerate(changes, start=1)]
    judge = Judge([(each.revision, each.revision * 3.0) for each in history])
    judge.read(history)
    judge.finish()
    assert judge.longest_in_part == 3.0
    assert not judge.findings


def writers(*writes: list[float], released: float | None = None) -> list[str]:
    """Judge the writes of replicas, of which the first one may give its lease back."""
    releases = [[] if released is None else [released], *([] for _ in writes[1:])]
    return [each.rule for each in two_writers(writes, releases, apart_s=2)]


def test_replicas_write_one_at_a_time() -> None:
    assert not writers([1.0, 2.0, 9.0], [5.0, 6.0])
    assert writers([1.0, 2.0], [3.5]) == ["two writers"]
    assert len(writers([1.0, 3.0], [2.0])) == 2


def test_a_lease_that_was_given_back_may_be_taken_at_once() -> None:
    assert not writers([1.0, 2.0], [3.0], released=2.5)
    assert writers([1.0, 2.6], [3.0], released=2.5) == ["two writers"], "it went on writing"
    assert writers([1.0, 2.0], [2.4], released=2.5) == ["two writers"], "the other one began before"
