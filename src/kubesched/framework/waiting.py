"""Pods between placement and binding, while they can still be rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.status import SUCCESS, Status, error, unschedulable


class WaitingPod:
    """A pod that waits until every plugin which delayed it allows it, or one rejects it."""

    def __init__(
        self, pod: PodInfo, plugins: set[str], on_decided: Callable[[Status], None]
    ) -> None:
        self.pod = pod
        self._pending = set(plugins)
        self._on_decided = on_decided
        self._decided = False

    @property
    def pending_plugins(self) -> list[str]:
        """The plugins that have not allowed it yet."""
        return sorted(self._pending)

    def allow(self, plugin: str) -> None:
        """Allow the pod on behalf of a plugin; the last one releases it."""
        self._pending.discard(plugin)
        if not self._pending:
            self._decide(SUCCESS)

    def reject(self, plugin: str, reason: str) -> bool:
        """Reject the pod on behalf of a plugin; False if it is too late."""
        return self._decide(unschedulable(reason).by(plugin))

    def preempt(self) -> bool:
        """Preempt the pod; False if it is too late."""
        return self._decide(error("waiting on permit for pod: preempted"))

    def _decide(self, status: Status) -> bool:
        if self._decided:
            return False
        self._decided = True
        self._on_decided(status)
        return True


class WaitingPods:
    """All waiting pods, by uid; plugins may look them up, allow and reject them."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        """Return a waiting pod."""
        return self._pods.get(uid)

    def add(self, waiting: WaitingPod) -> None:
        """Add a waiting pod."""
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        """Remove a pod that no longer waits."""
        self._pods.pop(uid, None)


class PreBindingPods:
    """Pods whose PreBind plugins run, by uid, with a function that cancels them."""

    def __init__(self) -> None:
        self._cancels: dict[str, Callable[[str], bool]] = {}

    def __len__(self) -> int:
        return len(self._cancels)

    def add(self, uid: str, cancel: Callable[[str], bool]) -> None:
        """Add a pod; `cancel` takes a reason and returns whether it stopped the work."""
        self._cancels[uid] = cancel

    def remove(self, uid: str) -> None:
        """Remove a pod: it will be bound, or has failed."""
        self._cancels.pop(uid, None)

    def cancel(self, uid: str, reason: str) -> bool:
        """Cancel a pod; False if its PreBind plugins do not run."""
        cancel = self._cancels.get(uid)
        return cancel is not None and cancel(reason)
