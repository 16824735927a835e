"""What a watch says about pods: when each was bound, and how many are where.

    API server ──watch──> PodTracker ──> counts by namespace · moments for whoever collects

Only the few fields that matter are decoded. A pod is bound when the watch says so, and asked for
when the request that created it was sent: of the two, the creation must not be seen too late.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from kubesched.bench.operations import Labels


class _Wire(Struct, frozen=True, gc=False, rename="camel"):
    pass


class SeenMeta(_Wire, frozen=True):
    """Who a pod is."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None


class SeenSpec(_Wire, frozen=True):
    """Where a pod is, and whether it may be anywhere."""

    node_name: str = ""
    scheduling_gates: tuple[dict[str, str], ...] = ()


class SeenCondition(_Wire, frozen=True):
    """One condition."""

    type: str


class SeenStatus(_Wire, frozen=True):
    """What is known about a pod."""

    conditions: tuple[SeenCondition, ...] = ()


class SeenPod(_Wire, frozen=True):
    """A pod, as far as it matters here."""

    metadata: SeenMeta
    spec: SeenSpec = SeenSpec()
    status: SeenStatus = SeenStatus()

    @property
    def is_bound(self) -> bool:
        """Whether it has its node."""
        return bool(self.spec.node_name)

    @property
    def is_attempted(self) -> bool:
        """Whether a scheduler has said something about it."""
        return any(each.type == "PodScheduled" for each in self.status.conditions)

    def has(self, labels: Labels) -> bool:
        """Whether it has these labels."""
        have = self.metadata.labels or {}
        return all(have.get(key) == value for key, value in labels.items())


class Bound(Struct, frozen=True, gc=False):
    """A pod that got its node, and when the watch said so."""

    uid: str
    at_s: float


class Watcher:
    """Hears of pods that are bound, in some namespaces and with some labels."""

    def __init__(
        self, namespaces: frozenset[str], labels: Labels, on_first: Callable[[], None]
    ) -> None:
        self._namespaces = namespaces
        self._labels = labels
        self._on_first = on_first
        self.bound: list[Bound] = []

    def hear(self, pod: SeenPod, bound: Bound) -> None:
        """Note a pod, if it is one of these."""
        if pod.metadata.namespace not in self._namespaces or not pod.has(self._labels):
            return
        if not self.bound:
            self._on_first()
        self.bound.append(bound)


class PodTracker:
    """A handler of an informer of pods."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._pods: dict[str, SeenPod] = {}
        self._asked_at_s: dict[str, float] = {}
        self._bound: Counter[str] = Counter()
        self._watchers: list[Watcher] = []
        self._changed = asyncio.Event()

    # ------------------------------------------------------------ an informer's handler

    def on_add(self, obj: SeenPod, initial: bool) -> None:  # noqa: ARG002  a handler's signature
        """A pod appeared."""
        self._pods[obj.metadata.uid] = obj
        if obj.is_bound:
            self._note_bound(obj)
        self._changed.set()

    def on_update(self, old: SeenPod, new: SeenPod) -> None:
        """A pod changed."""
        self._pods[new.metadata.uid] = new
        if new.is_bound and not old.is_bound:
            self._note_bound(new)
        self._changed.set()

    def on_delete(self, obj: SeenPod) -> None:
        """A pod is gone."""
        known = self._pods.pop(obj.metadata.uid, None)
        if known is not None and known.is_bound:
            self._bound[known.metadata.namespace] -= 1
        self._changed.set()

    def _note_bound(self, pod: SeenPod) -> None:
        self._bound[pod.metadata.namespace] += 1
        bound = Bound(pod.metadata.uid, self._clock())
        for watcher in self._watchers:
            watcher.hear(pod, bound)

    def note_created(self, uid: str, asked_at_s: float) -> None:
        """Note when a pod was asked for; the answer may come after the news that it is bound."""
        self._asked_at_s[uid] = asked_at_s

    def latencies(self, bound: Iterable[Bound]) -> list[float]:
        """Seconds from asking for a pod to seeing it bound, of those that we asked for."""
        return [
            each.at_s - self._asked_at_s[each.uid] for each in bound if each.uid in self._asked_at_s
        ]

    # ------------------------------------------------------------ questions

    def pods(self, namespace: str, labels: Labels) -> Iterator[SeenPod]:
        """The pods of a namespace with some labels."""
        for pod in self._pods.values():
            if pod.metadata.namespace == namespace and pod.has(labels):
                yield pod

    def bound_count(self, namespace: str, labels: Labels) -> int:
        """How many pods have their node."""
        if not labels:
            return self._bound[namespace]
        return sum(pod.is_bound for pod in self.pods(namespace, labels))

    def attempted_count(self, namespace: str, labels: Labels) -> int:
        """How many pods a scheduler has looked at, those with a node included."""
        return sum(pod.is_bound or pod.is_attempted for pod in self.pods(namespace, labels))

    async def changed(self) -> None:
        """Return when something has changed since the last call."""
        await self._changed.wait()
        self._changed.clear()

    @contextmanager
    def watching(
        self, namespaces: frozenset[str], labels: Labels, on_first: Callable[[], None]
    ) -> Iterator[Watcher]:
        """Hear of pods that are bound from now on; ``on_first`` is called before the first one."""
        watcher = Watcher(namespaces, labels, on_first)
        self._watchers.append(watcher)
        try:
            yield watcher
        finally:
            self._watchers.remove(watcher)
