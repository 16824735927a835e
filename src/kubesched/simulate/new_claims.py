"""Claims to volumes that come with new pods, as controllers make and bind them.

    StatefulSet's template, ordinal ──┐
    pod's ephemeral volume ───────────┼──> claim, with the default class ──> snapshot
    claim of a file ──────────────────┘        └── class that binds at once ──> a volume for it

A class that binds at once takes a volume that is there, or provisions one where its driver likes:
here, each node can use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.api.core import PersistentVolumeClaimVolumeSource, Pod, Volume
from kubesched.api.meta import OwnerReference
from kubesched.api.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubesched.embedded import volume_forms as forms
from kubesched.errors import ObjectError
from kubesched.simulate.volumes import object_tree
from kubesched.snapshot.contents import Snapshot

JsonObject = dict[str, Any]


class NewClaims:
    """Adds claims to a snapshot; those that it has now are left as they are."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._claims: list[PersistentVolumeClaim] = snapshot.objects["PersistentVolumeClaim"]
        self._volumes: list[PersistentVolume] = snapshot.objects["PersistentVolume"]
        self._classes: list[StorageClass] = snapshot.objects["StorageClass"]
        self._known = {_key(each) for each in self._claims}

    def settle(self) -> None:
        """Give claims that others have added since their class, and their volume."""
        for place, claim in enumerate(self._claims):
            if _key(claim) not in self._known:
                self._known.add(_key(claim))
                self._claims[place] = self._settled(claim)

    def add_for_ordinal(
        self, templates: Iterable[object], pod: Pod, name: str, at: str
    ) -> tuple[Volume, ...]:
        """Add the claims of a StatefulSet's pod; return the volumes that refer to them.

        A claim that is there, from a pod of this ordinal that went, is used again.
        """
        volumes = []
        for template in templates:
            claim = _converted(template, f"{at}: spec.volumeClaimTemplates")
            claim_name = f"{claim.metadata.name}-{name}"
            self._add(claim, pod.metadata.namespace, claim_name)
            source = PersistentVolumeClaimVolumeSource(claim_name=claim_name)
            volumes.append(Volume(name=claim.metadata.name, persistent_volume_claim=source))
        return tuple(volumes)

    def add_ephemeral(self, pod: Pod, spec: JsonObject, at: str) -> None:
        """Add the claims of a pod's ephemeral volumes."""
        for volume in spec.get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            if template is None:
                continue
            claim = _converted(template, f"{at}: volume {volume.get('name')}")
            meta = pod.metadata
            owner = OwnerReference(kind="Pod", name=meta.name, uid=meta.uid, controller=True)
            claim = replace(claim, metadata=replace(claim.metadata, owner_references=(owner,)))
            self._add(claim, meta.namespace, f"{meta.name}-{volume['name']}")

    def _add(self, claim: PersistentVolumeClaim, namespace: str, name: str) -> None:
        meta = replace(claim.metadata, name=name, namespace=namespace, uid=f"{namespace}/{name}")
        made = replace(claim, metadata=meta)
        if _key(made) not in self._known:
            self._known.add(_key(made))
            self._claims.append(self._settled(made))

    def _settled(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Return a new claim with its class, bound if that does not wait for a pod."""
        if claim.spec.storage_class_name is None and not claim.storage_class:
            default = self._default_class()
            claim = replace(claim, spec=replace(claim.spec, storage_class_name=default))
        found = next((e for e in self._classes if e.metadata.name == claim.storage_class), None)
        if found is None or found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return claim
        volume = self._volume_for(claim, found)
        if volume is None:
            return claim
        bound = forms.bound_claim({"status": {}, **object_tree(claim)}, object_tree(volume))
        return msgspec.convert(bound, PersistentVolumeClaim)

    def _volume_for(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass
    ) -> PersistentVolume | None:
        """Return a volume for a claim, None if nothing provisions one; it is then the claim's."""
        tree = object_tree(claim)
        for place, volume in enumerate(self._volumes):
            is_free = volume.spec.claim_ref is None and volume.storage_class == claim.storage_class
            if is_free and forms.serves(volume, claim):
                bound = forms.bound_volume(object_tree(volume), tree, now="")
                self._volumes[place] = msgspec.convert(bound, PersistentVolume)
                return self._volumes[place]
        if storage_class.provisioner == forms.NO_PROVISIONER:
            return None
        made = forms.provisioned_volume(tree, object_tree(storage_class), None)
        self._volumes.append(msgspec.convert(made, PersistentVolume))
        return self._volumes[-1]

    def _default_class(self) -> str | None:
        """Return the newest class that is marked as the default, None if there is none."""
        marked = [
            each.metadata
            for each in self._classes
            if (each.metadata.annotations or {}).get(forms.DEFAULT_CLASS) == "true"
        ]
        newest = max(marked, key=lambda each: each.creation_timestamp or "", default=None)
        return None if newest is None else newest.name


def _converted(template: object, at: str) -> PersistentVolumeClaim:
    try:
        return msgspec.convert(template, PersistentVolumeClaim)
    except msgspec.ValidationError as wrong:
        raise ObjectError(f"{at}: {wrong}") from None


def _key(claim: PersistentVolumeClaim) -> tuple[str, str]:
    return claim.metadata.namespace, claim.metadata.name
