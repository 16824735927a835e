"""Objects of dynamic resource allocation: device classes, resource slices, resource claims."""

from __future__ import annotations

from kubesched.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from kubesched.cluster.object_store import NamedStore, NamespacedStore


class Devices:
    """All objects of ``resource.k8s.io``."""

    def __init__(self) -> None:
        self.classes: NamedStore[DeviceClass] = NamedStore()
        self.slices: NamedStore[ResourceSlice] = NamedStore()
        self.claims: NamespacedStore[ResourceClaim] = NamespacedStore()
        self._all = (self.classes, self.slices, self.claims)

    @property
    def version(self) -> tuple[int, ...]:
        """A value that changes with every change of the objects."""
        return tuple([store.changes.position for store in self._all])

    def validate(self) -> None:
        """Check each store."""
        for store in self._all:
            store.validate()
