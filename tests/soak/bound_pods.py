"""Which pods have a node, and how long that took."""

from __future__ import annotations

import asyncio
import time

from kubesched.bench.pod_tracker import SeenPod


class Life:
    """One pod from the request to create it until its end."""

    def __init__(self, *, timed: bool) -> None:
        #: whether its latency counts: it waits for nothing but the scheduler
        self.timed = timed
        self.asked_at = time.monotonic()
        self.bound = asyncio.Event()
        #: it is to end before its time, or has ended
        self.over = asyncio.Event()
        self.node = ""


class BoundPods:
    """A handler of an informer of pods that have a node."""

    def __init__(self) -> None:
        self.lives: dict[str, Life] = {}
        #: seconds from the request to create a pod until the watch showed its node
        self.latencies: list[float] = []
        self.count = 0
        self._bound = asyncio.Event()

    def on_add(self, obj: SeenPod, initial: bool) -> None:
        """Note the node of a pod."""
        life = self.lives.get(obj.metadata.name)
        if life is not None and not life.bound.is_set():
            life.node = obj.spec.node_name
            life.bound.set()
            self.count += 1
            self._bound.set()
            if life.timed:
                self.latencies.append(time.monotonic() - life.asked_at)

    def on_update(self, old: SeenPod, new: SeenPod) -> None:
        """Nothing of interest changes in a pod that has a node."""

    def on_delete(self, obj: SeenPod) -> None:
        """End the life of a pod: it may be a victim."""
        if life := self.lives.get(obj.metadata.name):
            life.over.set()

    async def another(self) -> None:
        """Return when a pod has got a node since the last call."""
        await self._bound.wait()
        self._bound.clear()

    def on_node(self, name: str) -> list[Life]:
        """The pods of a node."""
        return [each for each in self.lives.values() if each.node == name]

    def take_latencies(self) -> list[float]:
        """The latencies since the last call."""
        taken, self.latencies = self.latencies, []
        return taken
