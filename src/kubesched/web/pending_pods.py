"""Pods without a node by the scheduler that they name, kept up to date by the news of pods."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kubesched.api.core import Pod
from kubesched.explain.unclaimed import is_unclaimed


class PendingPods:
    """A handler of pods; the queue of a scheduler holds only its own."""

    def __init__(self) -> None:
        #: scheduler's name → uid → pod
        self._by_scheduler: dict[str, dict[str, Pod]] = {}

    def unclaimed(self, profiles: Collection[str]) -> Iterator[Pod]:
        """Return the pods that none of these profiles, and no other scheduler, takes care of."""
        for name, pods in self._by_scheduler.items():
            if name not in profiles:
                yield from (pod for pod in pods.values() if is_unclaimed(pod, profiles))

    def on_add(self, obj: Pod, initial: bool) -> None:  # noqa: ARG002 (the protocol's)
        """A pod came."""
        if not obj.spec.node_name:
            pods = self._by_scheduler.setdefault(obj.spec.scheduler_name, {})
            pods[obj.metadata.uid] = obj

    def on_update(self, old: Pod, new: Pod) -> None:
        """A pod changed."""
        self.on_delete(old)
        self.on_add(new, initial=False)

    def on_delete(self, obj: Pod) -> None:
        """A pod went."""
        name = obj.spec.scheduler_name
        pods = self._by_scheduler.get(name, {})
        pods.pop(obj.metadata.uid, None)
        if not pods:
            self._by_scheduler.pop(name, None)
