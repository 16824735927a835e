"""Extended resources that device classes stand for.

A container that requests ``example.com/gpu: 1`` gets a device of the class that backs
that name, or of class ``c`` if the name is ``deviceclass.resource.kubernetes.io/c``.
"""

from __future__ import annotations

from kubesched.api.requests import is_extended_resource
from kubesched.api.resource import DeviceClass
from kubesched.cluster.incremental import View
from kubesched.cluster.object_store import NamedStore

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"


class ExtendedResources(View):
    """Name of a resource → the class that backs it."""

    derived = ("_classes",)

    def __init__(self, classes: NamedStore[DeviceClass]) -> None:
        super().__init__(classes.changes)
        self._store = classes
        self._classes: dict[str, DeviceClass] = {}

    def rebuild(self) -> None:
        """Index all classes; of two that back the same resource, the newer one counts."""
        self._classes = {}
        # The last one counts: the newest, and of several equally new the lowest by name.
        by_name = sorted(self._store, key=lambda each: each.metadata.name, reverse=True)
        for each in sorted(by_name, key=lambda each: each.metadata.creation_timestamp or ""):
            self._classes[IMPLICIT_PREFIX + each.metadata.name] = each
            if each.spec.extended_resource_name is not None:
                self._classes[each.spec.extended_resource_name] = each

    def class_of(self, resource: str) -> DeviceClass | None:
        """Return the class that backs a resource."""
        self.refresh()
        return self._classes.get(resource)

    def names(self) -> frozenset[str]:
        """Return the resources that classes stand for."""
        self.refresh()
        return frozenset(self._classes)

    def __bool__(self) -> bool:
        self.refresh()
        return bool(self._classes)


def may_be_devices(resource: str) -> bool:
    """Return whether a class may back a resource of that name."""
    return is_extended_resource(resource) or resource.startswith(IMPLICIT_PREFIX)
