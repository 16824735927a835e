"""What a watch says about pods."""

from __future__ import annotations

import asyncio

import msgspec

from kubesched.bench.pod_tracker import BoundPod, PodTracker, SeenPod


def pod(name: str, *, node: str = "", namespace: str = "a", attempted: bool = False) -> SeenPod:
    tree = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "labels": {"app": name[0]},
        },
        "spec": {"nodeName": node, "containers": []},
        "status": {"conditions": [{"type": "PodScheduled", "status": "False"}] * attempted},
    }
    return msgspec.json.decode(msgspec.json.encode(tree), type=SeenPod)


class Clock:
    """Time as the test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_pods_are_counted_by_namespace_and_label() -> None:
    tracker = PodTracker()
    tracker.on_add(pod("x1", node="n"), initial=False)
    tracker.on_add(pod("x2", attempted=True), initial=False)
    tracker.on_add(pod("y1", node="n"), initial=False)
    tracker.on_add(pod("z1", node="n", namespace="b"), initial=False)

    assert tracker.bound_count("a", {}) == 2
    assert tracker.bound_count("a", {"app": "x"}) == 1
    assert tracker.attempted_count("a", {}) == 3
    assert tracker.bound_count("b", {}) == 1
    assert tracker.bound_count("c", {}) == 0


def test_a_pod_counts_from_its_binding_to_its_end() -> None:
    tracker = PodTracker()
    tracker.on_add(pod("x"), initial=False)
    assert tracker.bound_count("a", {}) == 0

    tracker.on_update(pod("x"), pod("x", node="n"))
    tracker.on_update(pod("x", node="n"), pod("x", node="n", attempted=True))
    assert tracker.bound_count("a", {}) == 1

    tracker.on_delete(pod("x", node="n"))
    assert tracker.bound_count("a", {}) == 0
    assert list(tracker.pods("a", {})) == []


def test_a_watcher_hears_of_its_own_pods_only_and_while_it_listens() -> None:
    clock, firsts = Clock(), []
    tracker = PodTracker(clock)
    tracker.on_add(pod("x0", node="n"), initial=False)
    with tracker.watching(
        frozenset({"a"}), {"app": "x"}, lambda: firsts.append(clock.now)
    ) as heard:
        clock.now = 1.0
        tracker.on_add(pod("y1", node="n"), initial=False)
        tracker.on_add(pod("x1", node="n", namespace="b"), initial=False)
        clock.now = 2.0
        tracker.on_add(pod("x2", node="n"), initial=False)
        clock.now = 3.0
        tracker.on_add(pod("x3"), initial=False)
        tracker.on_update(pod("x3"), pod("x3", node="n"))
    tracker.on_add(pod("x4", node="n"), initial=False)

    assert heard.bound == [BoundPod("uid-x2", 2.0), BoundPod("uid-x3", 3.0)]
    assert firsts == [2.0]


def test_latency_is_from_the_request_even_if_its_answer_comes_last() -> None:
    tracker = PodTracker()
    bound = [BoundPod("early", 5.0), BoundPod("late", 6.0), BoundPod("somebody else's", 7.0)]
    tracker.note_created("early", 4.5)
    tracker.note_created("late", 3.0)

    assert tracker.latencies(bound) == [0.5, 3.0]


def test_waiting_ends_with_the_next_change() -> None:
    async def scenario() -> None:
        tracker = PodTracker()
        waiting = asyncio.create_task(tracker.changed())
        await asyncio.sleep(0)
        assert not waiting.done()
        tracker.on_add(pod("x"), initial=False)
        await asyncio.wait_for(waiting, 1)

    asyncio.run(scenario())
