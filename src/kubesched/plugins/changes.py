"""Values that hints derive from a change alone, computed once for all pods.

A hint is called for one change and thousands of pods. What it derives from the change alone
(amounts, compiled terms) is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kubesched.api.core import Pod
from kubesched.queue.hints import Change

T = TypeVar("T")
P = TypeVar("P")


def has_place(pod: Pod) -> bool:
    """Return whether a pod is on a node, or nominated to one."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


class Prepared(Generic[T, P]):
    """Caches a function of a change, for the latest change."""

    def __init__(self, prepare: Callable[[Change[T]], P]) -> None:
        self._prepare = prepare
        self._latest: tuple[Change[T], P] | None = None

    def __call__(self, change: Change[T]) -> P:
        """Return the function's value for a change."""
        latest = self._latest
        if latest is None or latest[0] is not change:
            latest = self._latest = (change, self._prepare(change))
        return latest[1]
