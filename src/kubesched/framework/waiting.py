"""Pods between their placement and their binding, as long as they can be turned back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.status import SUCCESS, Status, error, unschedulable


class WaitingPod:
    """A pod that waits until every plugin which made it wait allows it, or one rejects it."""

    def __init__(
        self, pod: PodInfo, plugins: set[str], on_decided: Callable[[Status], None]
    ) -> None:
        self.pod = pod
        self._pending = set(plugins)
        self._on_decided = on_decided
        self._decided = False

    @property
    def pending_plugins(self) -> list[str]:
        """Who has not allowed it yet."""
        return sorted(self._pending)

    def allow(self, plugin: str) -> None:
        """Allow the pod on behalf of a plugin; the last one decides."""
        self._pending.discard(plugin)
        if not self._pending:
            self._decide(SUCCESS)

    def reject(self, plugin: str, reason: str) -> bool:
        """Reject the pod on behalf of a plugin; False if it is too late for that."""
        return self._decide(unschedulable(reason).by(plugin))

    def preempt(self) -> bool:
        """Let another pod have its place; False if it is too late for that."""
        return self._decide(error("waiting on permit for pod: preempted"))

    def _decide(self, status: Status) -> bool:
        if self._decided:
            return False
        self._decided = True
        self._on_decided(status)
        return True


class WaitingPods:
    """All pods that wait, by uid; plugins may look them up, allow and reject them."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        """Return a pod that waits."""
        return self._pods.get(uid)

    def add(self, waiting: WaitingPod) -> None:
        """Note that a pod waits."""
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        """Note that a pod waits no longer."""
        self._pods.pop(uid, None)


class PreBindingPods:
    """Pods for which PreBind plugins are at work, by uid, with how to stop that."""

    def __init__(self) -> None:
        self._cancels: dict[str, Callable[[str], bool]] = {}

    def __len__(self) -> int:
        return len(self._cancels)

    def add(self, uid: str, cancel: Callable[[str], bool]) -> None:
        """Note that the work has begun; `cancel` takes a reason and says whether it stops it."""
        self._cancels[uid] = cancel

    def remove(self, uid: str) -> None:
        """Note that the work is over: the pod will be bound, or has failed."""
        self._cancels.pop(uid, None)

    def cancel(self, uid: str, reason: str) -> bool:
        """Turn a pod back; False if it is not, or no longer, at this stage."""
        cancel = self._cancels.get(uid)
        return cancel is not None and cancel(reason)
