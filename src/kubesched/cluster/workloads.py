"""Services and pod owners: they select the pods that default spread constraints apply to.

Pods without spread constraints get those of their profile; the pod's services and its owner then
define the selector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kubesched.api import labels
from kubesched.api.labels import EVERYTHING, Selector
from kubesched.api.meta import LabelSelector, OwnerReference
from kubesched.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubesched.cluster.incremental import NAMES_LENGTH, Log
from kubesched.cluster.label_sets import LabelSet
from kubesched.cluster.object_store import HasMeta, NamespacedStore
from kubesched.errors import SelectorError, require

OwnerT = TypeVar("OwnerT", bound=ReplicationController | ReplicaSet | StatefulSet)


class Services(NamespacedStore[Service]):
    """Services, by namespace."""

    def __init__(self, changes: Log[tuple[str, str]]) -> None:
        super().__init__(changes)
        self._by_namespace = self._indexed(lambda service: service.metadata.namespace)

    def selectors(self, namespace: str) -> Iterator[Mapping[str, str]]:
        """Return the selectors of a namespace's services; skip services without one."""
        for key in self._by_namespace.keys(namespace):
            selector = self._objects[key].spec.selector
            if selector:
                yield selector


class Owners(NamespacedStore[OwnerT]):
    """Owners of pods of one kind, with their compiled selectors."""

    def __init__(self, changes: Log[tuple[str, str]]) -> None:
        super().__init__(changes)
        self._selectors: dict[tuple[str, str], Selector] = {}

    def put(self, obj: OwnerT) -> None:
        """Add or update an owner."""
        self._selectors[self.key_of(obj)] = _compiled(obj.spec.selector)
        super().put(obj)

    def remove(self, obj: HasMeta) -> None:
        """Remove an owner."""
        self._selectors.pop(self.key_of(obj), None)
        super().remove(obj)

    def selector(self, namespace: str, name: str) -> Selector:
        """Return the selector of an owner; everything if it is unknown."""
        return self._selectors.get((namespace, name), EVERYTHING)

    def validate(self) -> None:
        """Check that each selector is its owner's."""
        super().validate()
        fresh = {key: _compiled(obj.spec.selector) for key, obj in self._objects.items()}
        require(self._selectors == fresh, "selectors of owners")


class Workloads:
    """Services and owners of pods."""

    def __init__(self) -> None:
        #: log of all stores
        self.changes: Log[tuple[str, str]] = Log(NAMES_LENGTH)
        self.services = Services(self.changes)
        self.replication_controllers: Owners[ReplicationController] = Owners(self.changes)
        self.replica_sets: Owners[ReplicaSet] = Owners(self.changes)
        self.stateful_sets: Owners[StatefulSet] = Owners(self.changes)
        #: (apiVersion, kind) of an owner reference → owners
        self._owners: Mapping[tuple[str, str], Owners[Any]] = {
            ("v1", "ReplicationController"): self.replication_controllers,
            ("apps/v1", "ReplicaSet"): self.replica_sets,
            ("apps/v1", "StatefulSet"): self.stateful_sets,
        }

    def validate(self) -> None:
        """Check each store."""
        for store in (self.services, *self._owners.values()):
            store.validate()

    def selector_of(self, pods: LabelSet, owners: Sequence[OwnerReference]) -> Selector:
        """Return the selector of the services and the owner of a pod.

        Without requirements if there are none.
        """
        merged: dict[str, str] = {}
        for selector in self.services.selectors(pods.namespace):
            if all(pods.labels.get(key) == value for key, value in selector.items()):
                merged.update(selector)
        result = labels.from_match_labels(merged)
        owner = next((each for each in owners if each.controller), None)
        if owner is None:
            return result
        kind = self._owners.get((owner.api_version, owner.kind))
        if kind is None:
            return result
        # A selector that selects nothing adds no requirements.
        return result.plus(*kind.selector(pods.namespace, owner.name).requirements)


def _compiled(selector: LabelSelector | Mapping[str, str] | None) -> Selector:
    """Compile an owner's selector; a malformed one adds nothing."""
    if not isinstance(selector, LabelSelector):
        return labels.from_match_labels(selector)
    try:
        return labels.from_label_selector(selector)
    except SelectorError:
        return EVERYTHING
