"""Which pods belong together, as services and the owners of pods tell it.

Pods that bring no spread constraints are spread by the defaults of their profile, and then it is
the pod's services and its owner that say which other pods are its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesched.api import labels
from kubesched.api.core import Pod
from kubesched.api.labels import EVERYTHING, Selector
from kubesched.api.meta import LabelSelector
from kubesched.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubesched.errors import SelectorError

Workload = Service | ReplicationController | ReplicaSet | StatefulSet

#: (apiVersion, kind) of an owner, as its pods refer to it
OwnerKind = tuple[str, str]
_OWNER_KINDS: Final[Mapping[type, OwnerKind]] = {
    ReplicationController: ("v1", "ReplicationController"),
    ReplicaSet: ("apps/v1", "ReplicaSet"),
    StatefulSet: ("apps/v1", "StatefulSet"),
}


class Workloads:
    """Selectors of services and owners."""

    def __init__(self) -> None:
        #: namespace → name → selector
        self._services: dict[str, dict[str, Mapping[str, str]]] = {}
        #: (kind, namespace, name) → selector
        self._owners: dict[tuple[OwnerKind, str, str], Selector] = {}
        #: changes with every service and owner
        self.version = 0

    def put(self, workload: Workload) -> None:
        """Take over a service, or an owner of pods."""
        self.version += 1
        meta = workload.metadata
        if isinstance(workload, Service):
            services = self._services.setdefault(meta.namespace, {})
            # A service without a selector selects nothing.
            services[meta.name] = workload.spec.selector or {}
        else:
            key = (_OWNER_KINDS[type(workload)], meta.namespace, meta.name)
            self._owners[key] = _compiled(workload.spec.selector)

    def remove(self, workload: Workload) -> None:
        """Forget a service, or an owner of pods."""
        self.version += 1
        meta = workload.metadata
        if isinstance(workload, Service):
            services = self._services.get(meta.namespace, {})
            services.pop(meta.name, None)
            if not services:
                self._services.pop(meta.namespace, None)
        else:
            self._owners.pop((_OWNER_KINDS[type(workload)], meta.namespace, meta.name), None)

    def selector_of(self, pod: Pod) -> Selector:
        """Return what selects a pod's kind; a selector without requirements if nothing does."""
        meta = pod.metadata
        pod_labels = meta.labels or {}
        merged: dict[str, str] = {}
        for selector in self._services.get(meta.namespace, {}).values():
            if selector and all(pod_labels.get(key) == value for key, value in selector.items()):
                merged.update(selector)
        result = labels.from_match_labels(merged)
        owner = next((each for each in meta.owner_references if each.controller), None)
        if owner is None:
            return result
        kind = (owner.api_version, owner.kind)
        of_owner = self._owners.get((kind, meta.namespace, owner.name), EVERYTHING)
        # A selector that selects nothing has no requirements to add.
        return result.plus(*of_owner.requirements)


def _compiled(selector: LabelSelector | Mapping[str, str] | None) -> Selector:
    """Compile an owner's selector; a malformed one adds nothing."""
    if not isinstance(selector, LabelSelector):
        return labels.from_match_labels(selector)
    try:
        return labels.from_label_selector(selector)
    except SelectorError:
        return EVERYTHING
