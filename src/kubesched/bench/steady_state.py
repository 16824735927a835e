"""Pods of which there is always the same number: once all of a batch are bound, the next one comes.

    create a batch ──> scheduler binds all of it ──> delete it ──> create the next ──> …
                                                         └──> release its claims, meanwhile

So the cluster stays as full as it was, as in scheduler_perf. In a cluster, controllers release the
claims of a pod that is gone; none runs here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from kubesched.bench.api_objects import BenchObjects, each_of
from kubesched.bench.devices import ClaimMaker, release_claims
from kubesched.bench.operations import CreatePods
from kubesched.bench.pod_tracker import PodTracker, SeenPod
from kubesched.client.resources import PODS

#: How often it is looked whether time is over.
_LOOK_S = 0.1


class SteadyState:
    """The pods of one namespace, for a while."""

    def __init__(
        self, objects: BenchObjects, tracker: PodTracker, operation: CreatePods, namespace: str
    ) -> None:
        self._objects = objects
        self._tracker = tracker
        self._operation = operation
        self._namespace = namespace
        self._claims = ClaimMaker(objects, namespace)
        self._number = 0

    async def run(self) -> None:
        """Keep the number of pods until time is over."""
        bound: asyncio.Queue[SeenPod] = asyncio.Queue()
        over_at_s = time.monotonic() + self._operation.steady_for_s
        batch: list[SeenPod] = []
        async with asyncio.TaskGroup() as tasks:
            with self._tracker.listening(bound.put_nowait):
                self._create_batch(tasks)
                while time.monotonic() < over_at_s:
                    try:
                        async with asyncio.timeout(_LOOK_S):
                            pod = await bound.get()
                    except TimeoutError:
                        continue
                    if pod.metadata.namespace == self._namespace:
                        batch.append(pod)
                    if len(batch) == self._operation.count:
                        await self._objects.delete(PODS.collection(self._namespace), at_once=True)
                        tasks.create_task(self._release(batch))
                        self._create_batch(tasks)
                        batch = []

    def _create_batch(self, tasks: asyncio.TaskGroup) -> None:
        for _ in range(self._operation.count):
            tasks.create_task(self._create())

    async def _create(self) -> None:
        self._number += 1
        # The template tells pods apart by their number: none comes twice.
        made = self._operation.template(self._number, self._operation.count)
        await self._claims.create_one(made, asked=self._tracker.note_created)

    async def _release(self, pods: Sequence[SeenPod]) -> None:
        """Release the claims of pods that are gone."""
        names = [name for pod in pods for name in self._claims.taken(pod.metadata.name)]
        await each_of(names, lambda name: release_claims(self._objects, self._namespace, [name]))
