"""Binds claims to volumes, and provisions simulated volumes without a disk.

    claim of an Immediate class      ──▶ the smallest volume that fits, or a new one
    claim of a WaitForFirstConsumer  ──▶ nothing, until a node is selected; then a new volume
    volume that names its claim      ──▶ bound to it: that is how the scheduler assigns a volume
    claim deleted                    ──▶ its volume is deleted, or kept as Released

The volume controller and a CSI driver's provisioner do this together. All three kinds are handled
when they change; claims that wait for a class or a volume are handled again when one appears.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kubesched.api.decoding import convert
from kubesched.api.quantity import nano
from kubesched.api.storage import (
    ANNOTATION_BIND_COMPLETED,
    ANNOTATION_BOUND_BY_CONTROLLER,
    ANNOTATION_SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.embedded import volume_forms as forms
from kubesched.embedded.following import follow
from kubesched.embedded.registry import ObjectRegistry, Where
from kubesched.embedded.resources import BY_KIND, NODES, ServedResource
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.versions import Version

JsonObject = dict[str, Any]

VOLUMES: Final = BY_KIND["v1", "PersistentVolume"]
CLAIMS: Final = BY_KIND["v1", "PersistentVolumeClaim"]
CLASSES: Final = BY_KIND["storage.k8s.io/v1", "StorageClass"]


class SimulatedProvisioner:
    """The volume controller and all provisioners of a cluster."""

    def __init__(self, registry: ObjectRegistry) -> None:
        self._registry = registry
        self._store: VersionedStore = registry.store
        #: class → unclaimed volumes
        self._unclaimed: dict[str, set[str]] = {}
        #: volume → its class, while it is unclaimed; the inverse
        self._class_of: dict[str, str] = {}
        #: claim → the volume that names it, and the inverse
        self._kept_for: dict[str, str] = {}
        self._claim_of: dict[str, str] = {}
        #: (resource, name) → claims that wait for that object, or for one of that class
        self._waiting: dict[tuple[ServedResource, str], dict[str, None]] = {}

    # ------------------------------------------------------------ listening

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(follow(self._store, CLASSES, self.look_at_class))
            group.create_task(follow(self._store, VOLUMES, self.look_at_volume))
            group.create_task(follow(self._store, CLAIMS, self.look_at_claim))

    # ------------------------------------------------------------ deciding

    def look_at_class(self, name: str) -> None:
        """Handle claims that waited for a class."""
        if self._store.get(CLASSES, name) is not None:
            self._serve(CLASSES, name)
            self._serve(CLASSES, "")

    def look_at_volume(self, name: str) -> None:
        """Bind a volume to the claim that it names, or make it available."""
        self._forget(name)
        volume = self._store.get(VOLUMES, name)
        if volume is None:
            claim_key = self._claim_of.pop(name, None)
            if claim_key is not None and self._kept_for.get(claim_key) == name:
                del self._kept_for[claim_key]
                self.look_at_claim(claim_key)
            return
        if volume.obj["metadata"].get("deletionTimestamp"):
            return
        reference = volume.obj["spec"].get("claimRef")
        if not reference:
            self._write(VOLUMES, volume, self._in_phase(volume, "Available"))
            self._serve(VOLUMES, name)
            self._offer(name, forms.class_of(volume.obj) or "")
            return
        key = f"{reference.get('namespace')}/{reference.get('name')}"
        claim = self._store.get(CLAIMS, key)
        if claim is not None and forms.refers_to(reference, claim.obj):
            self._keep(name, key)
            self._settle(volume, claim)
        elif reference.get("uid"):
            self._release(volume)
        else:
            self._keep(name, key)
            self._write(VOLUMES, volume, self._in_phase(volume, "Available"))

    def look_at_claim(self, key: str) -> None:
        """Find or provision a volume for a claim, if it does not have to wait."""
        claim = self._store.get(CLAIMS, key)
        if claim is None:
            kept = self._kept_for.pop(key, None)
            if kept is not None:
                self.look_at_volume(kept)
        elif not claim.obj["metadata"].get("deletionTimestamp"):
            if claim.obj["spec"].get("volumeName"):
                self._check_bound(claim)
            else:
                self._find_volume(claim)

    def _check_bound(self, claim: Version) -> None:
        """Complete a binding that the user or the scheduler has started."""
        volume = self._store.get(VOLUMES, claim.obj["spec"]["volumeName"])
        completed = ANNOTATION_BIND_COMPLETED in (claim.obj["metadata"].get("annotations") or {})
        reference = volume.obj["spec"].get("claimRef") if volume is not None else None
        if volume is not None and (not reference or forms.refers_to(reference, claim.obj)):
            self._bind(claim, volume)
            return
        self._wait_for(VOLUMES, claim.obj["spec"]["volumeName"], claim)
        if completed:
            self._write(CLAIMS, claim, self._in_phase(claim, "Lost"))

    def _find_volume(self, claim: Version) -> None:
        kept = self._kept_for.get(claim.key)
        volume = self._store.get(VOLUMES, kept) if kept is not None else None
        if volume is not None and forms.refers_to(volume.obj["spec"]["claimRef"], claim.obj):
            self._bind(claim, volume)
            return
        claim = self._with_default_class(claim)
        class_name = forms.class_of(claim.obj) or ""
        found = self._store.get(CLASSES, class_name) if class_name else None
        storage_class = found.obj if found is not None else {}
        waits = storage_class.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
        if not waits and (best := self._best_match(claim, class_name)) is not None:
            self._bind(claim, best)
        elif storage_class.get("provisioner") in (None, "", forms.NO_PROVISIONER):
            self._wait_for(CLASSES, class_name, claim)
        elif waits:
            self._provision_where_selected(claim, storage_class)
        else:
            self._provision(claim, storage_class, None)

    def _with_default_class(self, claim: Version) -> Version:
        """Give a claim the default class."""
        if forms.class_of(claim.obj) is not None:
            return claim
        for each in self._store.collection(CLASSES).versions():
            annotations = each.obj["metadata"].get("annotations") or {}
            if annotations.get(forms.DEFAULT_CLASS) == "true":
                spec = {**claim.obj["spec"], "storageClassName": each.key}
                return self._write(CLAIMS, claim, {**claim.obj, "spec": spec})
        return claim

    def _best_match(self, claim: Version, class_name: str) -> Version | None:
        """Return the smallest unclaimed volume that satisfies a claim."""
        wanted = convert(claim.obj, PersistentVolumeClaim)
        best: tuple[int, str] | None = None
        for name in self._unclaimed.get(class_name, ()):
            version = self._store.get(VOLUMES, name)
            if version is None:
                continue
            volume = convert(version.obj, PersistentVolume)
            if forms.serves(volume, wanted):
                size = nano((volume.spec.capacity or {}).get("storage", 0))
                best = min(best, (size, name)) if best is not None else (size, name)
        return None if best is None else self._store.get(VOLUMES, best[1])

    # ------------------------------------------------------------ acting

    def _provision_where_selected(self, claim: Version, storage_class: JsonObject) -> None:
        annotations = claim.obj["metadata"].get("annotations") or {}
        selected = annotations.get(ANNOTATION_SELECTED_NODE)
        if not selected:
            return
        node = self._store.get(NODES, selected)
        if node is None:
            # Asking the scheduler for another node is what provisioners do.
            without = forms.without_annotation(claim.obj, ANNOTATION_SELECTED_NODE)
            self._write(CLAIMS, claim, without)
            return
        self._provision(claim, storage_class, node.obj)

    def _provision(
        self, claim: Version, storage_class: JsonObject, node: JsonObject | None
    ) -> None:
        made = forms.provisioned_volume(claim.obj, storage_class, node)
        volume = self._store.get(VOLUMES, made["metadata"]["name"])
        if volume is None:
            volume = self._registry.create(Where(VOLUMES, ""), made)
        self._bind(claim, volume)

    def _settle(self, volume: Version, claim: Version) -> None:
        """Bind a volume to the claim that it names, unless the claim has another."""
        other = claim.obj["spec"].get("volumeName")
        if other in (None, "", volume.key):
            self._bind(claim, volume)
            return
        annotations = volume.obj["metadata"].get("annotations") or {}
        if ANNOTATION_BOUND_BY_CONTROLLER in annotations:
            spec = {**volume.obj["spec"]}
            del spec["claimRef"]
            freed = forms.without_annotation(volume.obj, ANNOTATION_BOUND_BY_CONTROLLER)
            self._write(VOLUMES, volume, {**freed, "spec": spec})

    def _bind(self, claim: Version, volume: Version) -> None:
        self._forget(volume.key)
        self._keep(volume.key, claim.key)
        now = self._registry.times.now()
        volume = self._write(VOLUMES, volume, forms.bound_volume(volume.obj, claim.obj, now))
        self._write(CLAIMS, claim, forms.bound_claim(claim.obj, volume.obj))

    def _release(self, volume: Version) -> None:
        """Apply the reclaim policy to a volume whose claim is gone."""
        if volume.obj["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._store.remove(VOLUMES, volume)
        else:
            self._write(VOLUMES, volume, self._in_phase(volume, "Released"))

    # ------------------------------------------------------------ indexes

    def _wait_for(self, resource: ServedResource, name: str, claim: Version) -> None:
        self._waiting.setdefault((resource, name), {})[claim.key] = None

    def _serve(self, resource: ServedResource, name: str) -> None:
        """Handle claims that wait for something."""
        for key in self._waiting.pop((resource, name), {}):
            self.look_at_claim(key)

    def _keep(self, volume_name: str, claim_key: str) -> None:
        self._kept_for[claim_key] = volume_name
        self._claim_of[volume_name] = claim_key

    def _offer(self, name: str, class_name: str) -> None:
        """Add an unclaimed volume to the index, and handle claims that wait for one."""
        volume = self._store.get(VOLUMES, name)
        if volume is None or volume.obj["spec"].get("claimRef"):
            return
        self._unclaimed.setdefault(class_name, set()).add(name)
        self._class_of[name] = class_name
        waiting = self._waiting.get((CLASSES, class_name), {})
        for key in list(waiting):
            if name not in self._class_of:
                return  # it is taken
            del waiting[key]
            self.look_at_claim(key)

    def _forget(self, name: str) -> None:
        class_name = self._class_of.pop(name, None)
        if class_name is not None:
            self._unclaimed[class_name].discard(name)

    def _in_phase(self, version: Version, phase: str) -> JsonObject:
        return forms.in_phase(version.obj, phase, self._registry.times.now())

    def _write(self, resource: ServedResource, old: Version, obj: JsonObject) -> Version:
        """Write an object, if it changed."""
        if obj == old.obj:
            return old
        return self._store.replace(resource, old, {**obj, "metadata": dict(obj["metadata"])})
