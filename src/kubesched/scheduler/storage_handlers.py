"""What informers report about storage, applied: first to the state, then to the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.client import resources
from kubesched.client.informer import Informer
from kubesched.client.resources import ResourcePath
from kubesched.client.rest import ApiClient
from kubesched.cluster.object_store import HasMeta
from kubesched.cluster.storage import Storage
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change
from kubesched.queue.scheduling_queue import SchedulingQueue

T = TypeVar("T", bound=HasMeta)
StoredT_contra = TypeVar("StoredT_contra", bound=HasMeta, contravariant=True)

StorageInformer = (
    Informer[PersistentVolume]
    | Informer[PersistentVolumeClaim]
    | Informer[StorageClass]
    | Informer[CSINode]
    | Informer[CSIDriver]
    | Informer[CSIStorageCapacity]
    | Informer[VolumeAttachment]
)


class Store(Protocol[StoredT_contra]):
    """Where objects of a kind are kept."""

    def put(self, obj: StoredT_contra) -> None:
        """Take over an object, or its new version."""

    def remove(self, obj: StoredT_contra) -> None:
        """Forget an object."""


class Stopwatch(NamedTuple):
    """How long it takes to apply an event is told by its label."""

    timer: Callable[[], float]
    observe: Callable[[str, float], None]


UNTIMED: Final = Stopwatch(lambda: 0.0, lambda _label, _seconds: None)


class StorageHandler(Generic[T]):
    """Applies what happens to storage objects of one kind."""

    def __init__(
        self,
        store: Store[T],
        queue: SchedulingQueue,
        resource: Resource,
        watch: Stopwatch = UNTIMED,
    ) -> None:
        self._store = store
        self._queue = queue
        self._watch = watch
        self._added = ClusterEvent(resource, Action.ADD)
        self._updated = ClusterEvent(resource, Action.UPDATE)
        self._deleted = ClusterEvent(resource, Action.DELETE)

    def on_add(self, obj: T, initial: bool) -> None:  # noqa: ARG002 (the protocol's)
        """One came."""
        started = self._watch.timer()
        self._store.put(obj)
        self._tell(Change(self._added, new=obj), started)

    def on_update(self, old: T, new: T) -> None:
        """One changed."""
        started = self._watch.timer()
        self._store.put(new)
        self._tell(Change(self._updated, old, new), started)

    def on_delete(self, obj: T) -> None:
        """One went."""
        started = self._watch.timer()
        self._store.remove(obj)
        self._tell(Change(self._deleted, old=obj), started)

    def _tell(self, change: Change[T], started: float) -> None:
        self._queue.move(change)
        # What no plugin wants to hear of is not handled in kube-scheduler, and not timed.
        if self._queue.hears_of(change.event):
            self._watch.observe(change.event.label, self._watch.timer() - started)


def storage_informers(
    client: ApiClient, storage: Storage, queue: SchedulingQueue, watch: Stopwatch = UNTIMED
) -> list[StorageInformer]:
    """Return the informers of all storage objects."""

    def informer(
        path: ResourcePath, kind: type[T], store: Store[T], resource: Resource
    ) -> Informer[T]:
        handler = StorageHandler(store, queue, resource, watch)
        return Informer(client, path, kind, handler=handler)

    return [
        informer(resources.STORAGE_CLASSES, StorageClass, storage.classes, Resource.STORAGE_CLASS),
        informer(resources.CSI_NODES, CSINode, storage.csi_nodes, Resource.CSI_NODE),
        informer(resources.CSI_DRIVERS, CSIDriver, storage.drivers, Resource.CSI_DRIVER),
        informer(
            resources.CSI_STORAGE_CAPACITIES,
            CSIStorageCapacity,
            storage.capacities,
            Resource.CSI_STORAGE_CAPACITY,
        ),
        informer(
            resources.VOLUME_ATTACHMENTS,
            VolumeAttachment,
            storage.attachments,
            Resource.VOLUME_ATTACHMENT,
        ),
        informer(
            resources.PERSISTENT_VOLUMES,
            PersistentVolume,
            storage.volumes,
            Resource.PERSISTENT_VOLUME,
        ),
        informer(
            resources.PERSISTENT_VOLUME_CLAIMS,
            PersistentVolumeClaim,
            storage.claims,
            Resource.PERSISTENT_VOLUME_CLAIM,
        ),
    ]
