"""Pods that wait for an event, indexed by the plugins that rejected them.

An event concerns few of the parked pods. Without the index, each event in a busy cluster would cost
time in proportion to the number of unschedulable pods. Those that are alike, and were rejected by
the same plugins, are of one kind, which the plugins are asked about once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import require
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod
from kubesched.queue.waking import Subscriber

#: Returns those of several pods of one kind that may be woken.
Screening = Callable[[Mapping[str, QueuedEntity]], Iterable[QueuedEntity]]


class _Kind:
    """Parked pods that are alike, by uid; or a single group."""

    __slots__ = ("entities", "key", "subscribers")

    def __init__(self, key: Hashable, subscribers: tuple[Subscriber, ...]) -> None:
        self.key = key
        #: the plugins that rejected each of them, or that gate it
        self.subscribers = subscribers
        self.entities: dict[str, QueuedEntity] = {}


class ParkedPods:
    """Parked pods and groups by key, in order of arrival, gated ones included."""

    def __init__(self) -> None:
        self._pods: dict[str, QueuedEntity] = {}
        #: key → its place in the order of arrival
        self._arrivals: dict[str, int] = {}
        self._next = 0
        #: key of a kind → the kind; key of a pod or a group → its kind
        self._kinds: dict[Hashable, _Kind] = {}
        self._kind_of: dict[str, _Kind] = {}
        #: plugin → the kinds that it rejected, by their keys
        self._by_subscriber: dict[Subscriber, dict[Hashable, _Kind]] = {}
        #: number of pods, members of groups included; and how many of them are gated
        self.pod_count = 0
        self.gated_count = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedEntity]:
        return iter(list(self._pods.values()))

    def get(self, uid: str) -> QueuedEntity | None:
        """Return a pod without removing it."""
        return self._pods.get(uid)

    def add(self, entity: QueuedEntity) -> None:
        """Park a pod or a group under the plugins that rejected it, or that gates it."""
        key = entity.key
        require(key not in self._pods, f"{entity} is parked already")
        self._pods[key] = entity
        self._arrivals[key], self._next = self._next, self._next + 1
        self._join_kind(entity)
        self.pod_count += entity.size
        self.gated_count += entity.size if entity.gated_by else 0

    def replace(self, pod: QueuedPod, info: PodInfo) -> None:
        """Update a parked pod to its new version."""
        self._leave_kind(pod.key)
        pod.info = info
        self._join_kind(pod)

    def remove(self, uid: str) -> QueuedEntity | None:
        """Remove a pod and return it, or None if it is not parked."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return None
        del self._arrivals[uid]
        self._leave_kind(uid)
        self.pod_count -= pod.size
        self.gated_count -= pod.size if pod.gated_by else 0
        return pod

    def concerns(self, subscribers: Iterable[Subscriber]) -> bool:
        """Return whether at least one of the plugins rejected or gates a pod."""
        return any(each in self._by_subscriber for each in subscribers)

    def of(self, subscribers: Iterable[Subscriber], screen: Screening) -> list[QueuedEntity]:
        """Return the pods that at least one of the plugins rejected or gates, each once.

        Of several that are of one kind, only those that `screen` returns.
        """
        kinds: dict[Hashable, _Kind] = {}
        for subscriber in subscribers:
            kinds.update(self._by_subscriber.get(subscriber, {}))
        found = [
            entity
            for kind in kinds.values()
            for entity in (
                screen(kind.entities) if len(kind.entities) > 1 else kind.entities.values()
            )
        ]
        found.sort(key=lambda entity: self._arrivals[entity.key])
        return found

    def _join_kind(self, entity: QueuedEntity) -> None:
        key = _kind_key(entity)
        kind = self._kinds.get(key)
        if kind is None:
            subscribers = tuple((entity.scheduler_name, each) for each in entity.waits_for)
            kind = self._kinds[key] = _Kind(key, subscribers)
            for subscriber in subscribers:
                self._by_subscriber.setdefault(subscriber, {})[key] = kind
        kind.entities[entity.key] = entity
        self._kind_of[entity.key] = kind

    def _leave_kind(self, uid: str) -> None:
        kind = self._kind_of.pop(uid)
        del kind.entities[uid]
        if kind.entities:
            return
        del self._kinds[kind.key]
        for subscriber in kind.subscribers:
            kinds = self._by_subscriber[subscriber]
            del kinds[kind.key]
            if not kinds:
                del self._by_subscriber[subscriber]

    def validate(self) -> None:
        """Check that the index and the counts agree with the pods."""
        for uid, pod in self._pods.items():
            require(pod.waits_for, f"{pod} is parked although no plugin rejected it")
            kind = self._kind_of[uid]
            named = {plugin for _, plugin in kind.subscribers}
            require(named == pod.waits_for, f"{pod} is indexed by {named}")
            require(kind.key == _kind_key(pod), f"{pod} is among those that are like it")
            require(kind.entities.get(uid) is pod, f"{pod} is in its kind")
        require(self._kind_of.keys() == self._pods.keys(), "each parked pod has a kind")
        require(self._arrivals.keys() == self._pods.keys(), "each parked pod has its place")
        kinds = {id(kind) for kinds in self._by_subscriber.values() for kind in kinds.values()}
        require(kinds == set(map(id, self._kinds.values())), "the index holds exactly the kinds")
        count = sum(len(kind.entities) for kind in self._kinds.values())
        require(count == len(self._pods), "no kind has a pod that is not parked")
        gated = sum(pod.size for pod in self._pods.values() if pod.gated_by)
        total = sum(pod.size for pod in self._pods.values())
        require(total == self.pod_count, "number of pods")
        require(gated == self.gated_count, "number of gated pods")


def _kind_key(entity: QueuedEntity) -> Hashable:
    """Return what tells apart pods that plugins may answer differently about."""
    if not isinstance(entity, QueuedPod):
        return entity.key
    unschedulable, pending = entity.unschedulable_plugins, entity.pending_plugins
    rejections = frozenset(unschedulable), frozenset(pending)
    return entity.scheduler_name, entity.gated_by, rejections, entity.info.alike
