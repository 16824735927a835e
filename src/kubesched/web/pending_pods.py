"""Pending pods by the scheduler that they name, maintained by pod events."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kubesched.api.core import Pod
from kubesched.explain.unclaimed import is_unclaimed


class PendingPods:
    """A pod handler; a scheduler's queue holds only its own pods."""

    def __init__(self) -> None:
        #: scheduler's name → uid → pod
        self._by_scheduler: dict[str, dict[str, Pod]] = {}

    def unclaimed(self, profiles: Collection[str]) -> Iterator[Pod]:
        """Return the pods that are for none of these profiles, nor for another scheduler."""
        for name, pods in self._by_scheduler.items():
            if name not in profiles:
                yield from (pod for pod in pods.values() if is_unclaimed(pod, profiles))

    def on_add(self, obj: Pod, initial: bool) -> None:  # noqa: ARG002 (the protocol's)
        """Handle a new pod."""
        if not obj.spec.node_name:
            pods = self._by_scheduler.setdefault(obj.spec.scheduler_name, {})
            pods[obj.metadata.uid] = obj

    def on_update(self, old: Pod, new: Pod) -> None:
        """Handle a changed pod."""
        self.on_delete(old)
        self.on_add(new, initial=False)

    def on_delete(self, obj: Pod) -> None:
        """Handle a deleted pod."""
        name = obj.spec.scheduler_name
        pods = self._by_scheduler.get(name, {})
        pods.pop(obj.metadata.uid, None)
        if not pods:
            self._by_scheduler.pop(name, None)
