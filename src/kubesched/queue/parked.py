"""Pods that wait for an event, findable by the plugins that turned them away.

An event concerns few of the pods that are parked; looking at all of them for each event would make
a busy cluster pay for every pod that fits nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import require
from kubesched.queue.queued_pod import QueuedPod
from kubesched.queue.waking import Subscriber


class ParkedPods:
    """Parked pods by uid, in order of arrival, gated ones included."""

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPod] = {}
        #: plugin → uids of the pods it turned away; the inverse of `_subscribers_of`
        self._by_subscriber: dict[Subscriber, dict[str, None]] = {}
        self._subscribers_of: dict[str, tuple[Subscriber, ...]] = {}
        self.gated_count = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(list(self._pods.values()))

    def get(self, uid: str) -> QueuedPod | None:
        """Return a pod without removing it."""
        return self._pods.get(uid)

    def add(self, pod: QueuedPod) -> None:
        """Park a pod under the plugins that turned it away, or that gates it."""
        uid = pod.info.uid
        require(uid not in self._pods, f"{pod} is parked already")
        scheduler_name = pod.info.pod.spec.scheduler_name
        self._pods[uid] = pod
        self._subscribers_of[uid] = tuple((scheduler_name, each) for each in pod.waits_for)
        for subscriber in self._subscribers_of[uid]:
            self._by_subscriber.setdefault(subscriber, {})[uid] = None
        self.gated_count += bool(pod.gated_by)

    def replace(self, pod: QueuedPod, info: PodInfo) -> None:
        """Give a parked pod its new version."""
        pod.info = info

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod and return it, or None if it is not parked."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return None
        for subscriber in self._subscribers_of.pop(uid):
            uids = self._by_subscriber[subscriber]
            del uids[uid]
            if not uids:
                del self._by_subscriber[subscriber]
        self.gated_count -= bool(pod.gated_by)
        return pod

    def of(self, subscribers: Iterable[Subscriber]) -> list[QueuedPod]:
        """Return the pods that one of some plugins turned away, each once."""
        uids: dict[str, None] = {}
        for subscriber in subscribers:
            uids.update(self._by_subscriber.get(subscriber, {}))
        return [self._pods[uid] for uid in uids]

    def validate(self) -> None:
        """Check that the index says what the pods say."""
        for uid, pod in self._pods.items():
            require(pod.waits_for, f"{pod} is parked although nobody turned it away")
            named = {plugin for _, plugin in self._subscribers_of[uid]}
            require(named == pod.waits_for, f"{pod} is indexed by {named}")
        indexed = {uid for uids in self._by_subscriber.values() for uid in uids}
        require(indexed == self._pods.keys(), "pods in the index are the parked ones")
        gated = sum(bool(pod.gated_by) for pod in self._pods.values())
        require(gated == self.gated_count, "number of gated pods")
