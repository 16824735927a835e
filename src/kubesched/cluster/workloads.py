"""Services and pod owners: they select the pods that default spread constraints apply to.

Pods without spread constraints get those of their profile; the pod's services and its owner then
define the selector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from kubesched.api import labels
from kubesched.api.labels import EVERYTHING, Selector
from kubesched.api.meta import LabelSelector, OwnerReference
from kubesched.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubesched.cluster.incremental import NAMES_LENGTH, Log, Memo
from kubesched.cluster.label_sets import LabelSet
from kubesched.cluster.object_store import HasMeta, NamespacedStore
from kubesched.cluster.selector_index import SelectorIndex
from kubesched.errors import SelectorError, require

OwnerT = TypeVar("OwnerT", bound=ReplicationController | ReplicaSet | StatefulSet)


class Services(NamespacedStore[Service]):
    """Services, found by the labels that they select."""

    def __init__(self, changes: Log[tuple[str, str]]) -> None:
        super().__init__(changes)
        self._index: SelectorIndex[tuple[str, str]] = SelectorIndex()

    def put(self, obj: Service) -> None:
        """Add or update a service."""
        key, selector = self.key_of(obj), obj.spec.selector
        known = self._objects.get(key)
        if known is None or known.spec.selector != selector:
            if known is not None and known.spec.selector:
                self._index.remove(key)
            if selector:
                namespaces = frozenset((obj.metadata.namespace,))
                self._index.put(key, labels.from_match_labels(selector), namespaces)
        super().put(obj)

    def remove(self, obj: HasMeta) -> None:
        """Remove a service."""
        known = self._objects.get(self.key_of(obj))
        if known is not None and known.spec.selector:
            self._index.remove(self.key_of(obj))
        super().remove(obj)

    def selecting(self, pods: LabelSet) -> tuple[tuple[str, str], ...]:
        """Return the keys of the services that select pods; those without a selector do not."""
        return tuple(self._index.matching(pods))

    def selector(self, key: tuple[str, str]) -> Mapping[str, str]:
        """Return the selector of a service."""
        return self._objects[key].spec.selector or {}

    def validate(self) -> None:
        """Check that the index has each service with a selector."""
        super().validate()
        self._index.validate(())
        placed = {key: labels.from_match_labels(self.selector(key)) for key in self._objects}
        require(
            self._index.selectors()
            == {key: each for key, each in placed.items() if each.requirements},
            "selectors of services",
        )


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


#: The namespace of pods, the services that select them, and their owner.
_Workload = tuple[str, tuple[tuple[str, str], ...], OwnerReference | None]


class Workloads:
    """Services and owners of pods."""

    def __init__(self) -> None:
        #: log of all stores
        self.changes: Log[tuple[str, str]] = Log(NAMES_LENGTH)
        self.services = Services(self.changes)
        self.replication_controllers: Owners[ReplicationController] = Owners(self.changes)
        self.replica_sets: Owners[ReplicaSet] = Owners(self.changes)
        self.stateful_sets: Owners[StatefulSet] = Owners(self.changes)
        self._selectors: Memo[_Workload, Selector] = Memo(self._merged, self.changes)
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
        services = self.services.selecting(pods)
        owner = next((each for each in owners if each.controller), None)
        if not services and (owner is None or (owner.api_version, owner.kind) not in self._owners):
            return EVERYTHING
        return self._selectors.of((pods.namespace, services, owner))

    def _merged(self, key: _Workload) -> Selector:
        namespace, services, owner = key
        merged: dict[str, str] = {}
        for each in services:
            merged.update(self.services.selector(each))
        result = labels.from_match_labels(merged)
        kind = None if owner is None else self._owners.get((owner.api_version, owner.kind))
        if owner is None or kind is None:
            return result
        # A selector that selects nothing adds no requirements.
        return result.plus(*kind.selector(namespace, owner.name).requirements)


def _compiled(selector: LabelSelector | Mapping[str, str] | None) -> Selector:
    """Compile an owner's selector; a malformed one adds nothing."""
    if not isinstance(selector, LabelSelector):
        return labels.from_match_labels(selector)
    try:
        return labels.from_label_selector(selector)
    except SelectorError:
        return EVERYTHING
