"""What several hints ask of a change, and a way to work it out once for all pods in question.

A hint is shown one change and thousands of pods, one after the other. What it needs to know of the
change alone (amounts, compiled terms) is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kubesched.api.core import Pod
from kubesched.queue.hints import Change

T = TypeVar("T")
P = TypeVar("P")


def has_place(pod: Pod) -> bool:
    """Tell whether a pod is on a node, or holds room on one that it is nominated to."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


class Prepared(Generic[T, P]):
    """What was worked out for the latest change: its answers depend on nothing but the change."""

    def __init__(self, prepare: Callable[[Change[T]], P]) -> None:
        self._prepare = prepare
        self._latest: tuple[Change[T], P] | None = None

    def __call__(self, change: Change[T]) -> P:
        """Return what there is to know of a change."""
        latest = self._latest
        if latest is None or latest[0] is not change:
            latest = self._latest = (change, self._prepare(change))
        return latest[1]
