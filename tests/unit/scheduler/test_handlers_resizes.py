"""Pods that wait on their node for room to be resized: in the queue, and counted on the node."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod, PodCondition
from tests.support.objects import node, pod

from .test_handlers import Bench


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.nodes.on_add(node("n", cpu="4"), True)
    return bench


def resizing(each: Pod, reason: str = "Deferred") -> Pod:
    condition = PodCondition(type="PodResizePending", status="True", reason=reason)
    return replace(each, status=replace(each.status, conditions=(condition,)))


PLAIN = pod("p", node="n", cpu="2")


def queued(bench: Bench) -> list[str]:
    assert bench.cluster.node_of("p") in ("n", None)
    return [
        f"{each.info.pod.metadata.name}:{each.info.pod.status.conditions[0].reason}"
        for each in bench.queue.pods()
    ]


def test_a_deferred_pod_is_queued_and_stays_on_its_node(bench: Bench) -> None:
    bench.pods.on_add(resizing(PLAIN), True)
    assert queued(bench) == ["p:Deferred"]
    assert bench.cluster.node_of("p") == "n"
    [waiting] = bench.queue.pods()
    assert waiting.info.signature.is_resize
    assert waiting.info.signature.node_name == "n"


def test_a_pod_is_queued_while_its_resize_is_deferred(bench: Bench) -> None:
    larger = pod("p", node="n", cpu="3")
    versions = [PLAIN, resizing(PLAIN), resizing(larger), resizing(larger, "Infeasible")]
    bench.pods.on_add(PLAIN, True)
    assert queued(bench) == []
    for old, new in pairwise(versions):
        bench.pods.on_update(old, new)
        assert queued(bench) == ([] if new is versions[-1] else ["p:Deferred"])
        if new is versions[2]:
            [waiting] = bench.queue.pods()
            assert waiting.info.signature.requests.amounts == {"cpu": 3000}
    assert bench.cluster.node_of("p") == "n"


def test_a_deferred_pod_that_goes_leaves_the_queue(bench: Bench) -> None:
    bench.pods.on_add(resizing(PLAIN), True)
    bench.pods.on_delete(resizing(PLAIN))
    assert queued(bench) == []
    assert bench.cluster.node_of("p") is None


def test_pods_of_other_schedulers_are_not_queued(bench: Bench) -> None:
    other = replace(PLAIN, spec=replace(PLAIN.spec, scheduler_name="other"))
    bench.pods.on_add(resizing(other), True)
    assert queued(bench) == []
