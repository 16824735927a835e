"""What the null scheduler writes about victims."""

from __future__ import annotations

import asyncio
from typing import Any

from kubesched.bench import objects
from kubesched.bench.objects import same
from kubesched.bench.operations import CreateAny, CreateNodes, CreatePods

from .test_executor import world

HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}
LOW_POD = same(objects.pod(terminationGracePeriodSeconds=0))
HIGH_POD = same(objects.pod(priorityClassName="high"))


def test_a_pod_of_a_priority_takes_the_place_of_all_pods_of_lower_priority() -> None:
    async def scenario() -> None:
        async with world() as w:
            await w.run(
                CreateAny(template=same(HIGH)),
                CreateNodes(count=3, template=objects.base_node),
                CreatePods(count=6, template=LOW_POD, namespace="low"),
                CreatePods(count=2, template=HIGH_POD, namespace="high"),
                CreatePods(count=2, template=HIGH_POD, namespace="late"),
            )
            placed: list[Any] = [each["spec"]["nodeName"] for each in await w.pods("high")]
            assert len(set(placed)) == 2
            left = await w.pods("low")
            assert {each["spec"]["nodeName"] for each in left}.isdisjoint(placed)
            assert len(await w.pods("high")) == 2, "pods of the same priority stay"

    asyncio.run(scenario())
