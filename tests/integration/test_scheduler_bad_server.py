"""A server that misbehaves costs the scheduler what it spoiled, and nothing else.

scheduler <── http ──> proxy <── https ──> kube-apiserver

The proxy is on loopback, passes everything on, and lets a test spoil what comes back: objects in
watches and lists, whole answers, or the connection itself. The API server is a real one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.waiting import until

from .control_plane import MERGE_PATCH, ControlPlane, JsonObject
from .exposition import parse
from .faulty_server import Proxy, SpoilEvent, serving
from .replicas import free_port, page
from .replicas import serving as serving_flags
from .scheduler_process import (
    SchedulerProcess,
    configuration,
    delete_pod,
    node,
    node_of,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[Proxy]:
    with serving(control_plane) as each:
        yield each


@contextmanager
def scheduler_behind(proxy: Proxy, plane: ControlPlane) -> Iterator[SchedulerProcess]:
    with run_scheduler(plane, configuration(proxy.kubeconfig())) as scheduler:
        scheduler.wait_until_scheduling()
        until(lambda: proxy.watched >= {"/api/v1/nodes", "/api/v1/pods"})
        yield scheduler


# ---------------------------------------------------------------------- spoiled objects

POISONED = "poisoned"
WRONG = ("quantity", "type")
HUGE_EXPONENT = "1e999999999"


def put(path: str, value: object) -> Callable[[JsonObject], JsonObject]:
    """Set one field of an object, named as in spec.containers.0.image."""

    def change(of: JsonObject) -> JsonObject:
        *parents, last = path.split(".")
        place: Any = of
        for key in parents:
            place = place[int(key)] if key.isdigit() else place.setdefault(key, {})
        place[last] = value
        return of

    return change


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


CPU = "spec.containers.0.resources.requests"
POD_CHANGES = {
    "a list that is a text": put("spec.containers", "many"),
    "a map that is a list": put("metadata.labels", ["a"]),
    "a number that is a text": put("spec.priority", "high"),
    "a spec that is a list": put("spec", []),
    "an exponent beyond reason": put(CPU, {"cpu": HUGE_EXPONENT}),
    "a quantity that is none": put(CPU, {"memory": "lots"}),
    "a quantity of a megabyte": put(CPU, {"cpu": "1" * (1 << 20)}),
}

NODE_CHANGES = {
    "taints that are a text": put("spec.taints", "none"),
    "a quantity that is none": put("status.allocatable", {"pods": "many"}),
    "labels that are numbers": put("metadata.labels", {"size": 5}),
}


def spoiling(change: Callable[[JsonObject], JsonObject]) -> SpoilEvent:
    """Change the object named "poisoned" wherever it comes along."""

    def spoil(event: JsonObject) -> JsonObject:
        if event["object"].get("metadata", {}).get("name") == POISONED:
            event["object"] = change(event["object"])
        return event

    return spoil


def replacing(raw: bytes) -> SpoilEvent:
    """Send something else instead of the event of the object named "poisoned"."""
    return lambda event: (
        raw if event["object"].get("metadata", {}).get("name") == POISONED else event
    )


def complaints(scheduler: SchedulerProcess) -> list[str]:
    """Lines of trouble, without a bulky end."""
    return [line[:1000] for line in scheduler.log_lines()]


def assert_pods_are_still_scheduled(plane: ControlPlane, namespace: str) -> None:
    plane.request("POST", pods_path(namespace), pod("healthy"))
    assert wait_until_bound(plane, namespace, "healthy", seconds=5) == {"healthy": "n1"}


@pytest.mark.parametrize("change", POD_CHANGES.values(), ids=POD_CHANGES.keys())
def test_a_pod_that_cannot_be_read_is_named_and_left_out(
    control_plane: ControlPlane,
    namespace: str,
    proxy: Proxy,
    change: Callable[[JsonObject], JsonObject],
) -> None:
    proxy.spoil_event = spoiling(change)
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with scheduler_behind(proxy, control_plane) as scheduler:
        control_plane.request("POST", pods_path(namespace), pod(POISONED))
        assert_pods_are_still_scheduled(control_plane, namespace)
        [line] = complaints(scheduler)
    assert f"{namespace}/{POISONED}" in line
    assert node_of(control_plane, namespace, POISONED) == ""


@pytest.mark.parametrize("change", NODE_CHANGES.values(), ids=NODE_CHANGES.keys())
def test_a_node_that_cannot_be_read_is_named_and_left_out(
    control_plane: ControlPlane,
    namespace: str,
    proxy: Proxy,
    change: Callable[[JsonObject], JsonObject],
) -> None:
    proxy.spoil_event = spoiling(change)
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with scheduler_behind(proxy, control_plane) as scheduler:
        control_plane.request("POST", "/api/v1/nodes", node(POISONED, allocatable={"pods": "999"}))
        until(lambda: complaints(scheduler))
        assert_pods_are_still_scheduled(control_plane, namespace)
        [line] = complaints(scheduler)
    assert "node" in line
    assert POISONED in line


RAW_EVENTS = {
    "cut off in the middle": b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"pois',
    "not JSON": b"\x00\xff\xfe<html>",
    "not UTF-8": b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"\xff"}}}',
    "of an unknown type": b'{"type":"REPLACED","object":{"kind":"Pod","metadata":{}}}',
    "without an object": b'{"type":"ADDED"}',
    "with half a surrogate pair": b'{"type":"ADDED","object":{"metadata":{"name":"\\ud800"}}}',
    "nested deeper than a stack": (
        b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"poisoned"},"spec":'
        + b'{"unknown":' * 100_000
    ),
}


@pytest.mark.parametrize("raw", [pytest.param(raw, id=name) for name, raw in RAW_EVENTS.items()])
def test_an_event_that_cannot_be_read_is_told_and_left_out(
    control_plane: ControlPlane, namespace: str, proxy: Proxy, raw: bytes
) -> None:
    proxy.spoil_event = replacing(raw)
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with scheduler_behind(proxy, control_plane) as scheduler:
        control_plane.request("POST", pods_path(namespace), pod(POISONED))
        assert_pods_are_still_scheduled(control_plane, namespace)
        [line] = complaints(scheduler)
    assert "pods: left out, because it cannot be read" in line


@pytest.mark.parametrize(
    "change",
    [
        put("metadata.labels", {"bulky": "x" * (1 << 20)}),
        put("spec.priority", 10**30),
        put("spec.unknown", nested(200)),
    ],
    ids=["a label of a megabyte", "a priority without bounds", "an unknown field of many levels"],
)
def test_what_is_only_odd_is_no_obstacle(
    control_plane: ControlPlane,
    namespace: str,
    proxy: Proxy,
    change: Callable[[JsonObject], JsonObject],
) -> None:
    proxy.spoil_event = spoiling(change)
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with scheduler_behind(proxy, control_plane) as scheduler:
        control_plane.request("POST", pods_path(namespace), pod(POISONED))
        wait_until_bound(control_plane, namespace, POISONED, seconds=5)
        assert_pods_are_still_scheduled(control_plane, namespace)
        assert complaints(scheduler) == []


def test_a_selector_with_an_unknown_operator_matches_nothing(
    control_plane: ControlPlane, namespace: str, proxy: Proxy
) -> None:
    term = {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    proxy.spoil_event = spoiling(put("spec.affinity", {"nodeAffinity": required}))
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with scheduler_behind(proxy, control_plane):
        control_plane.request("POST", pods_path(namespace), pod(POISONED))
        said = wait_until_refused(control_plane, namespace, POISONED)
        assert_pods_are_still_scheduled(control_plane, namespace)
    assert "1 node(s) didn't match Pod's node affinity/selector" in said


def test_a_node_that_has_more_than_can_be_counted_has_nothing(
    control_plane: ControlPlane, namespace: str, proxy: Proxy
) -> None:
    proxy.spoil_event = spoiling(put("status.allocatable.cpu", HUGE_EXPONENT))
    control_plane.request("POST", "/api/v1/nodes", node("n1", unschedulable=True))
    with scheduler_behind(proxy, control_plane):
        control_plane.request("POST", "/api/v1/nodes", node(POISONED))
        control_plane.request("POST", pods_path(namespace), pod("p", requests={"cpu": "1m"}))
        wanted = (
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. "
            "preemption: 0/2 nodes are available: "
            "2 Preemption is not helpful for scheduling."
        )
        until(lambda: wait_until_refused(control_plane, namespace, "p") == wanted)


def test_unreadable_objects_in_a_list_are_named_and_left_out(
    control_plane: ControlPlane, namespace: str, proxy: Proxy
) -> None:
    changes = {
        "bad-type": put("spec", {"containers": "many", "taints": "many"}),
        "bad-quantity": put("spec.containers", [{"resources": {"requests": {"cpu": "lots"}}}]),
    }

    def spoil(item: JsonObject) -> JsonObject:
        change = changes.get(item["metadata"]["name"])
        return change(item) if change else item

    proxy.spoil_item = spoil
    control_plane.create_many("/api/v1/nodes", [node("bad-type"), node("n1")])
    pods = [pod("bad-type"), pod("bad-quantity"), pod("good")]
    control_plane.create_many(pods_path(namespace), pods)
    with scheduler_behind(proxy, control_plane) as scheduler:
        wait_until_bound(control_plane, namespace, "good")
        assert_pods_are_still_scheduled(control_plane, namespace)
        told = complaints(scheduler)
    assert len(told) == 3
    named = ("nodes: left out", f"{namespace}/bad-type", f"{namespace}/bad-quantity")
    assert [sum(name in line for line in told) for name in named] == [1, 1, 1]


def test_unreadable_objects_are_counted_and_named_until_they_can_be_read(
    control_plane: ControlPlane, namespace: str, proxy: Proxy
) -> None:
    spoiled = {"bad-type", "bad-quantity", POISONED}
    changes = {
        "bad-type": put("spec.containers", "many"),
        "bad-quantity": put("spec.containers", [{"resources": {"requests": {"cpu": "lots"}}}]),
        POISONED: put("status.allocatable.cpu", "lots"),
    }

    def spoil(item: JsonObject) -> JsonObject:
        name = item.get("metadata", {}).get("name")
        return changes[name](item) if name in spoiled else item

    proxy.spoil_item = spoil
    proxy.spoil_event = lambda event: {**event, "object": spoil(event["object"])}
    control_plane.create_many("/api/v1/nodes", [node(POISONED), node("n1")])
    port = free_port()
    settings = configuration(proxy.kubeconfig())
    with run_scheduler(control_plane, settings, *serving_flags(control_plane, port)) as scheduler:
        scheduler.wait_until_scheduling()
        pods = [pod("bad-type"), pod("bad-quantity"), pod("good")]
        control_plane.create_many(pods_path(namespace), pods)
        wait_until_bound(control_plane, namespace, "good")

        def shown() -> tuple[list[str], dict[str, float]]:
            status = page(control_plane, port, "/statusz").body
            counted = parse(page(control_plane, port, "/metrics").body)
            counts = counted["kubesched_unreadable_objects"].counts
            lines = status.partition("Objects that cannot be read")[2].splitlines()[1:]
            return lines, {labels[0][1]: count for labels, count in counts.items() if count}

        until(lambda: shown()[1] == {"Node": 1, "Pod": 2})
        named, _ = shown()
        starts = [f"  Node {POISONED}: ", *(f"  Pod {namespace}/bad-{n}: " for n in WRONG)]
        assert [line[: len(start)] for line, start in zip(named, starts, strict=True)] == starts

        # They are changed, and can be read now; one is deleted.
        spoiled.clear()
        patch = {"metadata": {"labels": {"readable": "now"}}}
        for path in (f"/api/v1/nodes/{POISONED}", pods_path(namespace, "bad-type")):
            control_plane.request("PATCH", path, patch, content_type=MERGE_PATCH)
        delete_pod(control_plane, namespace, "bad-quantity")
        until(lambda: shown() == ([], {}))
        wait_until_bound(control_plane, namespace, "bad-type")


# ---------------------------------------------------------------------- spoiled service


def test_a_server_that_is_not_there_yet_is_waited_for(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with serving(control_plane) as absent:
        kubeconfig, port = absent.kubeconfig(), absent.server_port
    with run_scheduler(control_plane, configuration(kubeconfig)) as scheduler:
        scheduler.wait_for_log(
            f'"Waiting for the API server" err="GET /version: 127.0.0.1:{port}: '
        )
        with serving(control_plane, port):
            scheduler.wait_until_scheduling()
            assert_pods_are_still_scheduled(control_plane, namespace)
            assert scheduler.terminate() == 0


def test_broken_connections_are_made_again(
    control_plane: ControlPlane, namespace: str, proxy: Proxy
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with scheduler_behind(proxy, control_plane) as scheduler:
        proxy.break_connections()
        control_plane.request("POST", pods_path(namespace), pod("meanwhile"))
        wait_until_bound(control_plane, namespace, "meanwhile", seconds=10)
        assert_pods_are_still_scheduled(control_plane, namespace)
        assert scheduler.is_running


@pytest.mark.parametrize("code", [401, 403, 429, 500, 503])
def test_a_binding_that_is_refused_for_a_while_is_tried_again(
    control_plane: ControlPlane, namespace: str, proxy: Proxy, code: int
) -> None:
    refused = threading.Event()

    def refuse_first(_method: str, path: str) -> int | None:
        if path.endswith("/binding") and not refused.is_set():
            refused.set()
            return code
        return None

    proxy.refuse = refuse_first
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with scheduler_behind(proxy, control_plane):
        control_plane.request("POST", pods_path(namespace), pod("p"))
        wait_until_bound(control_plane, namespace, "p", seconds=5)
    assert refused.is_set()


def test_lost_rights_are_told_and_waited_out(
    control_plane: ControlPlane, namespace: str, proxy: Proxy
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with scheduler_behind(proxy, control_plane) as scheduler:
        proxy.refuse = lambda _method, _path: 401
        proxy.break_connections()
        until(lambda: complaints_about(scheduler, "pods", "spoiled"))
        until(lambda: complaints_about(scheduler, "nodes", "spoiled"))
        time.sleep(2)  # several more tries
        # The watch that was refused first, and the list instead of it: not every try.
        assert len(complaints_about(scheduler, "pods", "spoiled")) <= 2
        assert scheduler.is_running
        proxy.refuse = lambda _method, _path: None
        control_plane.request("POST", pods_path(namespace), pod("meanwhile"))
        wait_until_bound(control_plane, namespace, "meanwhile", seconds=10)


def complaints_about(scheduler: SchedulerProcess, resource: str, text: str) -> list[str]:
    start = f"cannot list and watch {resource}: "
    return [line for line in complaints(scheduler) if start in line and text in line]


def test_a_second_signal_ends_a_scheduler_that_waits_for_an_answer(
    control_plane: ControlPlane, namespace: str, proxy: Proxy
) -> None:
    answer = threading.Event()
    asked = threading.Event()

    def hold(_method: str, path: str) -> int | None:
        if path.endswith("/binding"):
            asked.set()
            answer.wait(20)
        return None

    proxy.refuse = hold
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    try:
        with scheduler_behind(proxy, control_plane) as scheduler:
            control_plane.request("POST", pods_path(namespace), pod("p"))
            assert asked.wait(10)
            scheduler.interrupt()
            time.sleep(0.5)  # time in which it could end
            assert scheduler.is_running, "it did not wait for the binding under way"
            assert scheduler.terminate(seconds=2) == 1
    finally:
        answer.set()
