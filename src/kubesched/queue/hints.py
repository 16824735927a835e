"""What a plugin wants to hear of, and how it tells whether that helps a pod it turned away.

A *registration* names events and, where looking at the objects pays, a *hint*: a function that is
shown the pod and the change. A hint that needs to know no more about the pod than its signature
says so, and is asked once for all pods of the signature. A *pre-hint* is shown the change alone,
and names the pods that the hint need be asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.queue.events import ClusterEvent

T = TypeVar("T")


class Change(Struct, Generic[T], frozen=True):
    """An event with the object it happened to, before and after."""

    event: ClusterEvent
    #: None if the object was added
    old: T | None = None
    #: None if it was deleted
    new: T | None = None

    @property
    def newest(self) -> T | None:
        """The object as it is, or as it was before it was deleted; None for custom events."""
        return self.old if self.new is None else self.new


class Registration(Struct, frozen=True):
    """Events that may help a pod; with a hint, only those of which it says so.

    At most one of the two hints is given. A hint that raises counts as one that says yes: it is
    better to try a pod in vain than to forget it.
    """

    event: ClusterEvent
    hint: Callable[[PodInfo, Change[Any]], bool] | None = None
    signature_hint: Callable[[PodSignature, Change[Any]], bool] | None = None
    #: names the only pods to be asked about, as namespace/name; None stands for all
    pre_hint: Callable[[Change[Any]], Collection[str] | None] | None = None


#: What a plugin registers; None means anything, which is right for plugins that cannot say.
Registrations = Sequence[Registration] | None
