"""Devices as objects: their classes, the slices that list them, and the claims to them."""

from __future__ import annotations

from kubesched.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from kubesched.cluster.object_store import NamedStore, NamespacedStore


class Devices:
    """All objects of ``resource.k8s.io``."""

    def __init__(self) -> None:
        self.classes: NamedStore[DeviceClass] = NamedStore()
        self.slices: NamedStore[ResourceSlice] = NamedStore()
        self.claims: NamespacedStore[ResourceClaim] = NamespacedStore()

    @property
    def version(self) -> int:
        """The number of all changes ever made."""
        return self.classes.version + self.slices.version + self.claims.version

    def validate(self) -> None:
        """Check each store."""
        for store in (self.classes, self.slices, self.claims):
            store.validate()
