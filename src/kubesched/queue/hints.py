"""A plugin's registrations: the events that may help a pod it rejected, with queueing hints.

A *hint* is a function of the pod and the change that returns whether the change may help. A
*signature hint* depends on nothing of the pod but its signature, and is called once per signature.
A *pre-hint* is a function of the change alone, and returns the pods that the hint is called for.
A *screen* is asked about one of the pods that are alike (`PodInfo.alike`), of which there may be
thousands: where it says no, the hint is not called for any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.queue.events import Action, ClusterEvent, Resource

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


def _none_apart(change: Change[Any]) -> Collection[str]:  # noqa: ARG001
    return ()


class Registration(Struct, frozen=True):
    """Events that may help a pod; with a hint, only those for which it returns true.

    At most one of the two hints is given. A hint that raises counts as true: it is better to retry
    a pod in vain than to miss it.
    """

    event: ClusterEvent
    hint: Callable[[PodInfo, Change[Any]], bool] | None = None
    signature_hint: Callable[[PodSignature, Change[Any]], bool] | None = None
    #: returns the only pods that hints are called for, as namespace/name; None means all
    pre_hint: Callable[[Change[Any]], Collection[str] | None] | None = None
    #: returns False only if the hint does so for every pod that is alike, but for those `apart`
    screen: Callable[[PodInfo, Change[Any]], bool] | None = None
    #: returns the uids of pods that the screen says nothing about
    apart: Callable[[Change[Any]], Collection[str]] = _none_apart


#: A plugin's registrations; None means every event, for plugins without registrations.
Registrations = Sequence[Registration] | None

#: Extenders register for nothing. As in kube-scheduler, any event may help a pod that they
#: rejected, but for those of attached volumes, device slices and composite groups.
EXTENDER_EVENTS: Final = tuple(
    Registration(ClusterEvent(each, Action.ALL))
    for each in (
        Resource.POD,
        Resource.NODE,
        Resource.PERSISTENT_VOLUME,
        Resource.PERSISTENT_VOLUME_CLAIM,
        Resource.CSI_NODE,
        Resource.CSI_DRIVER,
        Resource.CSI_STORAGE_CAPACITY,
        Resource.STORAGE_CLASS,
        Resource.RESOURCE_CLAIM,
        Resource.DEVICE_CLASS,
        Resource.POD_GROUP,
    )
)
