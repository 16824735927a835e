"""Volumes in a simulation: the scheduler's decisions about them take effect immediately.

    scheduler: volume for a claim ──> both bound
    scheduler: node for a claim ────> a new volume in the node's zone, both bound

The volume controller and a provisioner do this together; here it takes no time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.api.core import Node
from kubesched.api.storage import (
    ANNOTATION_SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.storage import ClaimKey
from kubesched.embedded import volume_forms as forms
from kubesched.kinds import KINDS
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.store_handler import StoreHandler
from kubesched.simulate import polling

POLL_INTERVAL_S = 1.0
#: Resource versions written here are newer than any in a snapshot.
_FIRST_VERSION = 1 << 60


class SimulatedVolumes:
    """Binds claims to volumes, and provisions volumes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._storage = cluster.storage
        self._version = _FIRST_VERSION
        self._volumes: StoreHandler[PersistentVolume] | None = None
        self._claims: StoreHandler[PersistentVolumeClaim] | None = None

    def attach(self, queue: SchedulingQueue) -> None:
        """Connect the queue, which then gets events of volumes."""
        self._volumes = StoreHandler(KINDS["PersistentVolume"], self._storage.volumes, queue)
        self._claims = StoreHandler(KINDS["PersistentVolumeClaim"], self._storage.claims, queue)

    # --- calls of the scheduler --------------------------------------------------------------

    async def write_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write the claim that a volume is bound to, and bind the claim."""
        written = self._put_volume(volume)
        reference = written.spec.claim_ref
        claim = None
        if reference is not None:
            claim = self._storage.claims.observed(reference.namespace, reference.name)
        if claim is not None:
            self._bind(claim, written)
        return written

    async def write_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Write the node that was selected for a claim, and provision a volume there."""
        written = self._put_claim(claim)
        node_name = (written.metadata.annotations or {}).get(ANNOTATION_SELECTED_NODE, "")
        storage_class = self._storage.classes.get(written.storage_class)
        row = self._cluster.table.row_of(node_name)
        if storage_class is not None and row is not None:
            node: Node = self._cluster.table.node_at(row)
            made = forms.provisioned_volume(
                object_tree(written), object_tree(storage_class), object_tree(node)
            )
            volume = self._put_volume(msgspec.convert(made, PersistentVolume))
            self._bind(written, volume)
        return written

    async def poll(
        self,
        check: Callable[[], bool],
        *,
        claims: Collection[ClaimKey],  # noqa: ARG002 (polls every second in any case)
        timeout_s: float,
    ) -> bool:
        """Poll until `check` returns True; False on timeout."""
        return await polling.poll(check, timeout_s=timeout_s, interval_s=POLL_INTERVAL_S)

    # --- effects ----------------------------------------------------------------------------

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        tree = {"status": {}, **object_tree(claim)}
        bound = forms.bound_claim(tree, {"spec": {}, **object_tree(volume)})
        self._put_claim(msgspec.convert(bound, PersistentVolumeClaim))

    def _put_volume(self, volume: PersistentVolume) -> PersistentVolume:
        volume = replace(volume, metadata=replace(volume.metadata, **self._next_version()))
        old = self._storage.volumes.observed(volume.metadata.name)
        if self._volumes is not None:
            if old is None:
                self._volumes.on_add(volume, initial=False)
            else:
                self._volumes.on_update(old, volume)
        return volume

    def _put_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        claim = replace(claim, metadata=replace(claim.metadata, **self._next_version()))
        meta = claim.metadata
        old = self._storage.claims.observed(meta.namespace, meta.name)
        if self._claims is not None and old is not None:
            self._claims.on_update(old, claim)
        return claim

    def _next_version(self) -> dict[str, str]:
        self._version += 1
        return {"resource_version": str(self._version)}


def object_tree(obj: object) -> dict[str, Any]:
    """Return an object as JSON, with the parts that every stored object has."""
    tree: dict[str, Any] = msgspec.to_builtins(obj)
    meta = tree.setdefault("metadata", {})
    for name in ("namespace", "uid", "resourceVersion"):
        meta.setdefault(name, "")
    tree.setdefault("spec", {})
    return tree
