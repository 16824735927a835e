"""Writes decisions about volumes: the claim of a volume, and the selected node of a claim.

    PersistentVolume        spec.claimRef, and that a controller has set it
    PersistentVolumeClaim   the node that was selected

Only changed fields are sent, as a merge patch with the resource version of the decision, so a
volume or claim that another client has changed meanwhile is not overwritten: the response is 409.

The PV controller and provisioners do the binding. A pod that waits for it is woken by a change of
its claims, or of a volume that names one of them, and checks every second in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from kubesched.api.storage import (
    ANNOTATION_BOUND_BY_CONTROLLER,
    ANNOTATION_SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.client import resources
from kubesched.client.rest import ApiClient
from kubesched.cluster.storage import ClaimKey, Storage
from kubesched.scheduler.claim_waiting import ClaimWaiting

#: Longest time between two checks.
POLL_INTERVAL_S = 1.0


class VolumeWrites:
    """Writes decisions about volumes, and waits until claims are bound."""

    def __init__(self, client: ApiClient, storage: Storage) -> None:
        self._client = client
        self._volumes = storage.volumes
        #: bindings that wait for a change of a claim
        self._waiting = ClaimWaiting()
        storage.claims.listeners.append(self._waiting.changed)
        storage.volumes.listeners.append(self._volume_changed)

    async def write_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write the claim that a volume is bound to; return the updated volume."""
        meta, reference = volume.metadata, volume.spec.claim_ref
        metadata: dict[str, object] = {"resourceVersion": meta.resource_version}
        bound_by = (meta.annotations or {}).get(ANNOTATION_BOUND_BY_CONTROLLER)
        if bound_by is not None:
            metadata["annotations"] = {ANNOTATION_BOUND_BY_CONTROLLER: bound_by}
        body: dict[str, object] = {"metadata": metadata}
        if reference is not None:
            # Replace the whole reference: a merge would leave fields of the previous one.
            claim_ref = {
                "kind": reference.kind,
                "apiVersion": reference.api_version,
                "namespace": reference.namespace,
                "name": reference.name,
                "uid": reference.uid,
                "resourceVersion": reference.resource_version or None,
                "fieldPath": None,
            }
            body["spec"] = {"claimRef": claim_ref}
        path = resources.PERSISTENT_VOLUMES.item(meta.name)
        return await self._client.patch(path, body, type=PersistentVolume)

    async def write_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Write the selected node of a claim; return the updated claim."""
        meta = claim.metadata
        node_name = (meta.annotations or {}).get(ANNOTATION_SELECTED_NODE)
        body = {
            "metadata": {
                "resourceVersion": meta.resource_version,
                "annotations": {ANNOTATION_SELECTED_NODE: node_name},
            }
        }
        path = resources.PERSISTENT_VOLUME_CLAIMS.item(meta.name, namespace=meta.namespace)
        return await self._client.patch(path, body, type=PersistentVolumeClaim)

    async def poll(
        self, check: Callable[[], bool], *, claims: Collection[ClaimKey], timeout_s: float
    ) -> bool:
        """Wait until `check` returns true; False if the time is over first."""
        return await self._waiting.until(
            check, claims=claims, timeout_s=timeout_s, interval_s=POLL_INTERVAL_S
        )

    def _volume_changed(self, name: str) -> None:
        volume = self._volumes.observed(name)
        reference = volume.spec.claim_ref if volume is not None else None
        if reference is not None:
            self._waiting.changed((reference.namespace, reference.name))
