"""Objects by their controller: the children of each, and what becomes of them when it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesched.embedded.deletion import ObjectDeletion
from kubesched.embedded.registry import Where
from kubesched.embedded.resources import ServedResource
from kubesched.embedded.schemas import DeleteOptions
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.versions import Version

JsonObject = dict[str, Any]


class Dependents:
    """The objects of one resource, by the uid of their controller."""

    def __init__(
        self, resource: ServedResource, store: VersionedStore, deletion: ObjectDeletion
    ) -> None:
        self._resource = resource
        self._store = store
        self._deletion = deletion
        self._children: dict[str, dict[str, None]] = {}
        #: key → reference to its controller
        self._owner_of: dict[str, JsonObject] = {}

    def look_at(self, key: str) -> JsonObject | None:
        """Note a change of an object; return the reference to the controller it has or had."""
        version = self._store.get(self._resource, key)
        before = self._owner_of.pop(key, None)
        owner = None if version is None else controller_of(version.obj)
        if before is not None and (owner is None or owner["uid"] != before["uid"]):
            children = self._children[before["uid"]]
            del children[key]
            if not children:
                del self._children[before["uid"]]
        if owner is not None:
            self._owner_of[key] = owner
            self._children.setdefault(owner["uid"], {})[key] = None
        return owner or before

    def of(self, uid: str) -> Iterator[Version]:
        """Return the objects of a controller."""
        for key in tuple(self._children.get(uid, ())):
            version = self._store.get(self._resource, key)
            if version is not None:
                yield version

    def delete(self, version: Version) -> None:
        """Delete an object, unless it is on its way."""
        meta = version.obj["metadata"]
        if not meta.get("deletionTimestamp"):
            where = Where(self._resource, meta["namespace"], meta["name"])
            self._deletion.delete(where, DeleteOptions())

    def delete_all(self, uid: str) -> None:
        """Delete the objects of a controller that is gone."""
        for version in self.of(uid):
            self.delete(version)


def controller_of(obj: JsonObject) -> JsonObject | None:
    """Return the reference to an object's controller, None if it has none."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            found: JsonObject = owner
            return found
    return None


def owned_by(resource: ServedResource, owner: JsonObject) -> JsonObject:
    """Return the reference that makes an object the controller of another."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
