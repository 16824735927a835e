"""What informers report about storage, applied: first to the state, then to the queue."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

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


class StorageHandler(Generic[T]):
    """Applies what happens to storage objects of one kind."""

    def __init__(self, store: Store[T], queue: SchedulingQueue, resource: Resource) -> None:
        self._store = store
        self._queue = queue
        self._added = ClusterEvent(resource, Action.ADD)
        self._updated = ClusterEvent(resource, Action.UPDATE)
        self._deleted = ClusterEvent(resource, Action.DELETE)

    def on_add(self, obj: T, initial: bool) -> None:  # noqa: ARG002 (the protocol's)
        """One came."""
        self._store.put(obj)
        self._queue.move(Change(self._added, new=obj))

    def on_update(self, old: T, new: T) -> None:
        """One changed."""
        self._store.put(new)
        self._queue.move(Change(self._updated, old, new))

    def on_delete(self, obj: T) -> None:
        """One went."""
        self._store.remove(obj)
        self._queue.move(Change(self._deleted, old=obj))


def storage_informers(
    client: ApiClient, storage: Storage, queue: SchedulingQueue
) -> list[StorageInformer]:
    """Return the informers of all storage objects."""

    def informer(
        path: ResourcePath, kind: type[T], store: Store[T], resource: Resource
    ) -> Informer[T]:
        return Informer(client, path, kind, handler=StorageHandler(store, queue, resource))

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
