"""Tracks pods by a watch: when each was bound, and counts by namespace.

    API server ──watch──> PodTracker ──> counts by namespace · times for collections

Only the needed fields are decoded. A pod's binding counts when the watch delivers it, its creation
when the request was sent.
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
    """Metadata of a pod."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None


class SeenClaim(_Wire, frozen=True):
    """A claim that a pod refers to; in its status, one that was made for it."""

    name: str
    resource_claim_name: str = ""


class SeenSpec(_Wire, frozen=True):
    """Spec of a pod: its node, its priority, its gates and its claims."""

    node_name: str = ""
    priority: int = 0
    scheduling_gates: tuple[dict[str, str], ...] = ()
    resource_claims: tuple[SeenClaim, ...] = ()


class SeenCondition(_Wire, frozen=True):
    """One condition."""

    type: str


class SeenStatus(_Wire, frozen=True):
    """Status of a pod."""

    conditions: tuple[SeenCondition, ...] = ()
    resource_claim_statuses: tuple[SeenClaim, ...] = ()


class SeenPod(_Wire, frozen=True):
    """A pod, with the needed fields."""

    metadata: SeenMeta
    spec: SeenSpec = SeenSpec()
    status: SeenStatus = SeenStatus()

    @property
    def claims(self) -> list[str]:
        """The names of its claims, as far as they are known."""
        every = (*self.spec.resource_claims, *self.status.resource_claim_statuses)
        return [each.resource_claim_name for each in every if each.resource_claim_name]

    @property
    def is_ready(self) -> bool:
        """Whether a scheduler may try it: it has no gates, and all its claims are made."""
        return not self.spec.scheduling_gates and len(self.claims) >= len(self.spec.resource_claims)

    @property
    def is_bound(self) -> bool:
        """Whether it has a node."""
        return bool(self.spec.node_name)

    @property
    def is_attempted(self) -> bool:
        """Whether a scheduler has tried it."""
        return any(each.type == "PodScheduled" for each in self.status.conditions)

    def has(self, labels: Labels) -> bool:
        """Whether it has these labels."""
        have = self.metadata.labels or {}
        return all(have.get(key) == value for key, value in labels.items())


class BoundPod(Struct, frozen=True, gc=False):
    """A bound pod, and when the watch delivered it."""

    uid: str
    at_s: float


class BindingWatcher:
    """Receives bound pods of some namespaces with some labels."""

    def __init__(
        self, namespaces: frozenset[str], labels: Labels, on_first: Callable[[], None]
    ) -> None:
        self._namespaces = namespaces
        self._labels = labels
        self._on_first = on_first
        self.bound: list[BoundPod] = []

    def hear(self, pod: SeenPod, bound: BoundPod) -> None:
        """Record a pod, if it matches."""
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
        self._watchers: list[BindingWatcher] = []
        self._listeners: list[Callable[[SeenPod], None]] = []
        self._changed = asyncio.Event()

    # ------------------------------------------------------------ an informer's handler

    def on_add(self, obj: SeenPod, initial: bool) -> None:  # noqa: ARG002  a handler's signature
        """Handle a new pod."""
        self._pods[obj.metadata.uid] = obj
        if obj.is_bound:
            self._note_bound(obj)
        self._changed.set()

    def on_update(self, old: SeenPod, new: SeenPod) -> None:
        """Handle a changed pod."""
        self._pods[new.metadata.uid] = new
        if new.is_bound and not old.is_bound:
            self._note_bound(new)
        self._changed.set()

    def on_delete(self, obj: SeenPod) -> None:
        """Handle a deleted pod."""
        known = self._pods.pop(obj.metadata.uid, None)
        if known is not None and known.is_bound:
            self._bound[known.metadata.namespace] -= 1
        self._changed.set()

    def _note_bound(self, pod: SeenPod) -> None:
        self._bound[pod.metadata.namespace] += 1
        bound = BoundPod(pod.metadata.uid, self._clock())
        for watcher in self._watchers:
            watcher.hear(pod, bound)
        for listener in self._listeners:
            listener(pod)

    def note_created(self, uid: str, asked_at_s: float) -> None:
        """Record when a pod's creation was requested; its binding may have been seen before."""
        self._asked_at_s[uid] = asked_at_s

    def latencies(self, bound: Iterable[BoundPod]) -> list[float]:
        """Return seconds from request to binding, of the pods that we created."""
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
        """The number of pods with a node."""
        if not labels:
            return self._bound[namespace]
        return sum(pod.is_bound for pod in self.pods(namespace, labels))

    def attempted_count(self, namespace: str, labels: Labels) -> int:
        """The number of pods that a scheduler has tried, bound ones included."""
        return sum(pod.is_bound or pod.is_attempted for pod in self.pods(namespace, labels))

    async def changed(self) -> None:
        """Return when something has changed since the last call."""
        await self._changed.wait()
        self._changed.clear()

    @contextmanager
    def watching(
        self, namespaces: frozenset[str], labels: Labels, on_first: Callable[[], None]
    ) -> Iterator[BindingWatcher]:
        """Receive pods bound from now on; ``on_first`` is called before the first one."""
        watcher = BindingWatcher(namespaces, labels, on_first)
        self._watchers.append(watcher)
        try:
            yield watcher
        finally:
            self._watchers.remove(watcher)

    @contextmanager
    def listening(self, listener: Callable[[SeenPod], None]) -> Iterator[None]:
        """Tell a listener of each pod that is bound from now on."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)
