"""Pods that wait for an event, indexed by the plugins that rejected them.

An event concerns few of the parked pods. Without the index, each event in a busy cluster would cost
time in proportion to the number of unschedulable pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import require
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod
from kubesched.queue.waking import Subscriber


class ParkedPods:
    """Parked pods and groups by key, in order of arrival, gated ones included."""

    def __init__(self) -> None:
        self._pods: dict[str, QueuedEntity] = {}
        #: plugin → keys of the pods and groups that it rejected; the inverse of `_subscribers_of`
        self._by_subscriber: dict[Subscriber, dict[str, None]] = {}
        self._subscribers_of: dict[str, tuple[Subscriber, ...]] = {}
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
        self._subscribers_of[key] = tuple(
            (entity.scheduler_name, each) for each in entity.waits_for
        )
        for subscriber in self._subscribers_of[key]:
            self._by_subscriber.setdefault(subscriber, {})[key] = None
        self.pod_count += entity.size
        self.gated_count += entity.size if entity.gated_by else 0

    def replace(self, pod: QueuedPod, info: PodInfo) -> None:
        """Update a parked pod to its new version."""
        pod.info = info

    def remove(self, uid: str) -> QueuedEntity | None:
        """Remove a pod and return it, or None if it is not parked."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return None
        for subscriber in self._subscribers_of.pop(uid):
            uids = self._by_subscriber[subscriber]
            del uids[uid]
            if not uids:
                del self._by_subscriber[subscriber]
        self.pod_count -= pod.size
        self.gated_count -= pod.size if pod.gated_by else 0
        return pod

    def of(self, subscribers: Iterable[Subscriber]) -> list[QueuedEntity]:
        """Return the pods that at least one of the plugins rejected or gates, each once."""
        uids: dict[str, None] = {}
        for subscriber in subscribers:
            uids.update(self._by_subscriber.get(subscriber, {}))
        return [self._pods[uid] for uid in uids]

    def validate(self) -> None:
        """Check that the index and the counts agree with the pods."""
        for uid, pod in self._pods.items():
            require(pod.waits_for, f"{pod} is parked although no plugin rejected it")
            named = {plugin for _, plugin in self._subscribers_of[uid]}
            require(named == pod.waits_for, f"{pod} is indexed by {named}")
        indexed = {uid for uids in self._by_subscriber.values() for uid in uids}
        require(indexed == self._pods.keys(), "the index holds exactly the parked pods")
        gated = sum(pod.size for pod in self._pods.values() if pod.gated_by)
        total = sum(pod.size for pod in self._pods.values())
        require(total == self.pod_count, "number of pods")
        require(gated == self.gated_count, "number of gated pods")
