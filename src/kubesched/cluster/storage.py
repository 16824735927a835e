"""Storage objects: volumes, claims, classes, and the CSI objects about nodes and capacity.

Informers put objects in; volume plugins read them. `get` returns volumes and claims as assumed by
the scheduler; `observed` returns them as the API server has them.
"""

from __future__ import annotations

from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.cluster.incremental import Log
from kubesched.cluster.object_store import Assumptions, NamedStore, NamespacedStore

#: Namespace and name of a claim.
ClaimKey = tuple[str, str]


class Volumes(Assumptions[PersistentVolume, str], NamedStore[PersistentVolume]):
    """Persistent volumes."""

    def __init__(self, changes: Log[str] | None = None) -> None:
        super().__init__(changes)
        self._by_class = self._indexed(lambda volume: volume.storage_class)

    def get(self, name: str) -> PersistentVolume | None:
        """Return a volume, as assumed."""
        return self._shown(name)

    def observed(self, name: str) -> PersistentVolume | None:
        """Return a volume as the API server has it."""
        return self._objects.get(name)

    def of_class(self, class_name: str) -> list[PersistentVolume]:
        """Return the volumes of a class, as assumed; "" means without a class."""
        return self._shown_at(self._by_class.keys(class_name))


class Claims(Assumptions[PersistentVolumeClaim, ClaimKey], NamespacedStore[PersistentVolumeClaim]):
    """Persistent volume claims."""

    def __init__(self, changes: Log[ClaimKey] | None = None) -> None:
        super().__init__(changes)
        self._by_volume = self._indexed(lambda claim: claim.spec.volume_name)

    def get(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return a claim, as assumed."""
        return self._shown((namespace, name))

    def observed(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return a claim as the API server has it."""
        return self._objects.get((namespace, name))

    def keys_of_volume(self, volume_name: str) -> list[ClaimKey]:
        """Return the keys of the claims that name a volume."""
        return list(self._by_volume.keys(volume_name))


class Attachments(NamedStore[VolumeAttachment]):
    """Volume attachments, by node and by volume."""

    def __init__(self, changes: Log[str] | None = None) -> None:
        super().__init__(changes)
        self._by_node = self._indexed(lambda attachment: attachment.spec.node_name)
        self._by_volume = self._indexed(
            lambda attachment: attachment.spec.source.persistent_volume_name or ""
        )

    def of_node(self, node_name: str) -> list[VolumeAttachment]:
        """Return the attachments to a node."""
        return [self._objects[key] for key in self._by_node.keys(node_name)]

    def of_volume(self, volume_name: str) -> list[VolumeAttachment]:
        """Return the attachments of a volume."""
        return [self._objects[key] for key in self._by_volume.keys(volume_name)]


class Capacities(NamespacedStore[CSIStorageCapacity]):
    """CSI storage capacities, by class."""

    def __init__(self, changes: Log[tuple[str, str]] | None = None) -> None:
        super().__init__(changes)
        self._by_class = self._indexed(lambda capacity: capacity.storage_class_name)

    def of_class(self, class_name: str) -> list[CSIStorageCapacity]:
        """Return the capacities of a class."""
        return [self._objects[key] for key in self._by_class.keys(class_name)]


class Storage:
    """All storage objects."""

    def __init__(self) -> None:
        self.classes: NamedStore[StorageClass] = NamedStore()
        self.csi_nodes: NamedStore[CSINode] = NamedStore()
        self.drivers: NamedStore[CSIDriver] = NamedStore()
        self.capacities = Capacities()
        self.attachments = Attachments()
        self.volumes = Volumes()
        self.claims = Claims()

        self._all = (
            self.classes,
            self.csi_nodes,
            self.drivers,
            self.capacities,
            self.attachments,
            self.volumes,
            self.claims,
        )

    @property
    def version(self) -> tuple[int, ...]:
        """A value that changes with every change of the objects."""
        return tuple([store.changes.position for store in self._all])

    def validate(self) -> None:
        """Check each store."""
        for store in self._all:
            store.validate()
