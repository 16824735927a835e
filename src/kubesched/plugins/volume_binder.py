"""Assumes, writes and awaits the bindings of volumes.

    decide ──> assume ──> write to the API server ──> wait for the volume controller ──> bound
                  └──────────────┴─ failed ──> restore what was assumed and not written

Later pods see assumed volumes and claims as if they had been written already. Written decisions are
not reverted: the next attempt finds them and continues from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from kubesched.api import labels
from kubesched.api.core import Node
from kubesched.api.storage import (
    ANNOTATION_SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ClientError, ObjectError
from kubesched.framework.registry import VolumeWriter
from kubesched.plugins import csi_migration
from kubesched.plugins.volume_claims import is_fully_bound
from kubesched.plugins.volume_matching import bound_to_claim, required_nodes
from kubesched.plugins.volume_placement import NodeVolumes, selected_node

T = TypeVar("T")

#: Stages whose failures are counted.
PREDICATE, ASSUME, BIND = "predicate", "assume", "bind"


class Reservation:
    """The volumes of a pod on its node, and the assumed copies of them."""

    def __init__(self) -> None:
        #: as decided, and later as written
        self.volumes = NodeVolumes([], [])
        #: assumed copies that hide objects until they are written
        self.assumed_volumes: list[PersistentVolume] = []
        self.assumed_claims: list[PersistentVolumeClaim] = []


class VolumeBinder:
    """Assumes and binds the volumes of pods."""

    def __init__(
        self,
        cluster: Cluster,
        writer: VolumeWriter,
        *,
        timeout_s: float,
        on_failure: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._volumes = cluster.storage.volumes
        self._claims = cluster.storage.claims
        self._writer = writer
        self._timeout_s = timeout_s
        #: called with the stage that failed
        self._on_failure = on_failure

    # --- in the scheduling cycle ------------------------------------------------------------------

    def assume(self, volumes: NodeVolumes, node_name: str) -> Reservation:
        """Assume that volumes are bound and nodes selected.

        Raises ObjectError, and assumes nothing, if one of them has changed meanwhile.
        """
        reservation = Reservation()
        try:
            for volume, claim in volumes.bindings:
                bound, changed = bound_to_claim(volume, claim)
                if changed:
                    self._assume_volume(bound)
                    reservation.assumed_volumes.append(bound)
                reservation.volumes.bindings.append((bound, claim))
            for claim, space in volumes.provisions:
                chosen = claim
                if selected_node(claim) != node_name:
                    chosen = with_selected_node(claim, node_name)
                    self._assume_claim(chosen)
                    reservation.assumed_claims.append(chosen)
                reservation.volumes.provisions.append((chosen, space))
        except ObjectError:
            self._on_failure(ASSUME)
            self.revert(reservation)
            raise
        return reservation

    def _assume_volume(self, volume: PersistentVolume) -> None:
        name = volume.metadata.name
        if self._volumes.observed(name) is None:
            raise ObjectError(f'persistentvolumes "{name}" not found')
        self._volumes.assume(volume)

    def _assume_claim(self, claim: PersistentVolumeClaim) -> None:
        meta = claim.metadata
        if self._claims.observed(meta.namespace, meta.name) is None:
            raise ObjectError(f'persistentvolumeclaims "{meta.namespace}/{meta.name}" not found')
        self._claims.assume(claim)

    def revert(self, reservation: Reservation) -> None:
        """Discard the assumed copies that are still in use."""
        for volume in reservation.assumed_volumes:
            if self._volumes.get(volume.metadata.name) is volume:
                self._volumes.restore(volume.metadata.name)
        for claim in reservation.assumed_claims:
            key = (claim.metadata.namespace, claim.metadata.name)
            if self._claims.get(*key) is claim:
                self._claims.restore(key)

    # --- in the binding cycle ---------------------------------------------------------------------

    async def bind(self, pod: PodInfo, node_name: str, reservation: Reservation) -> None:
        """Write the assumed changes, and wait until all claims are bound.

        Raises ObjectError or ClientError, with Kubernetes' messages, on failure or timeout.
        """
        try:
            await self._write(reservation)
            await self._wait(pod, node_name, reservation.volumes)
        except (ObjectError, ClientError):
            self._on_failure(BIND)
            raise

    async def _write(self, reservation: Reservation) -> None:
        """Write changes; what was written stays assumed until the watch confirms it."""
        volumes = reservation.volumes
        for index, (volume, claim) in enumerate(volumes.bindings):
            if _is_among(reservation.assumed_volumes, volume):
                volumes.bindings[index] = (await self._writer.write_volume(volume), claim)
                _forget(reservation.assumed_volumes, volume)
        for index, (claim, space) in enumerate(volumes.provisions):
            if _is_among(reservation.assumed_claims, claim):
                volumes.provisions[index] = (await self._writer.write_claim(claim), space)
                _forget(reservation.assumed_claims, claim)

    async def _wait(self, pod: PodInfo, node_name: str, written: NodeVolumes) -> None:
        claims = [*(claim for _, claim in written.bindings), *(c for c, _ in written.provisions)]
        keys = {(claim.metadata.namespace, claim.metadata.name) for claim in claims}
        try:
            bound = await self._writer.poll(
                lambda: self.all_bound(pod, node_name, written),
                claims=keys,
                timeout_s=self._timeout_s,
            )
        except ObjectError as failed:
            raise ObjectError(f"binding volumes: {failed}") from None
        if not bound:
            raise ObjectError("binding volumes: context deadline exceeded")

    def all_bound(self, pod: PodInfo, node_name: str, written: NodeVolumes) -> bool:
        """Return whether all claims are bound; raises ObjectError if they cannot be any more.

        This reads the observed objects: assumed copies may be of a later attempt.
        """
        row = self._cluster.table.row_of(node_name)
        if row is None:
            raise ObjectError(f'failed to get node "{node_name}": node "{node_name}" not found')
        node = self._cluster.table.node_at(row)
        if self._cluster.pod(pod.uid) is None:
            name = pod.pod.metadata.name
            raise ObjectError(f'pod does not exist any more: pod "{name}" not found')
        return all(
            self._is_volume_bound(volume, claim, node) for volume, claim in written.bindings
        ) and all(self._is_provisioned(claim, node) for claim, _ in written.provisions)

    def _is_volume_bound(
        self, written: PersistentVolume, claim: PersistentVolumeClaim, node: Node
    ) -> bool:
        name = written.metadata.name
        volume = self._volumes.observed(name)
        if volume is None:
            raise ObjectError(f'failed to check binding: persistentvolumes "{name}" not found')
        newest = self._observed(claim, doing="check binding")
        if _is_older(volume, written):
            return False
        try:
            self._check_reachable(volume, node)
        except _TranslationError as impossible:
            raise ObjectError(f"failed to translate pv to csi: {impossible}") from None
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise ObjectError(f'ClaimRef got reset for pv "{name}"')
        return is_fully_bound(newest)

    def _is_provisioned(self, written: PersistentVolumeClaim, node: Node) -> bool:
        claim = self._observed(written, doing="check provisioning pvc")
        if _is_older(claim, written):
            return False
        name = claim.metadata.name
        if not claim.metadata.annotations:
            raise ObjectError(f'selectedNode annotation reset for PVC "{name}"')
        if claim.metadata.annotations.get(ANNOTATION_SELECTED_NODE, "") != node.metadata.name:
            # A provisioner that fails removes the annotation.
            raise ObjectError(f'provisioning failed for PVC "{name}"')
        if claim.spec.volume_name:
            volume = self._volumes.observed(claim.spec.volume_name)
            if volume is None:
                return False  # not seen yet, or gone: then the claim will be unbound in the end
            self._check_reachable(volume, node)
        return is_fully_bound(claim)

    def _observed(self, claim: PersistentVolumeClaim, *, doing: str) -> PersistentVolumeClaim:
        namespace, name = claim.metadata.namespace, claim.metadata.name
        found = self._claims.observed(namespace, name)
        if found is None:
            key = f"{namespace}/{name}"
            raise ObjectError(f'failed to {doing}: persistentvolumeclaims "{key}" not found')
        return found

    def _check_reachable(self, volume: PersistentVolume, node: Node) -> None:
        """Raise ObjectError if a volume's affinity does not match the node's current labels."""
        name, node_name = volume.metadata.name, node.metadata.name
        plugin = csi_migration.plugin_of(volume)
        if plugin is not None and csi_migration.is_counted(plugin, has_csi_node=True):
            csi_node = self._cluster.storage.csi_nodes.get(node_name)
            if csi_migration.is_migrated_on(plugin, csi_node):
                try:
                    volume = csi_migration.translated(volume)
                except ObjectError as impossible:
                    raise _TranslationError(f"could not translate pv: {impossible}") from None
        selector = required_nodes(volume)
        if selector is None:
            return
        terms = labels.node_selector_terms(selector)
        if any(term.matches(node.metadata.labels or {}, {}) for term in terms):
            return
        problems = [problem for term in terms for problem in term.errors]
        why = "no matching NodeSelectorTerms"
        if problems:
            why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise ObjectError(f'pv "{name}" node affinity doesn\'t match node "{node_name}": {why}')


class _TranslationError(ObjectError):
    """A volume that cannot be translated to a CSI driver."""


def with_selected_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """Return a claim with the selected node of its volume."""
    annotations = {**(claim.metadata.annotations or {}), ANNOTATION_SELECTED_NODE: node_name}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))


def _is_among(assumed: list[T], obj: T) -> bool:
    return any(each is obj for each in assumed)


def _forget(assumed: list[T], written: T) -> None:
    assumed[:] = [each for each in assumed if each is not written]


def _is_older(
    seen: PersistentVolume | PersistentVolumeClaim,
    written: PersistentVolume | PersistentVolumeClaim,
) -> bool:
    """Return whether the informer has not received our write yet."""
    mine, theirs = written.metadata.resource_version, seen.metadata.resource_version
    return mine.isdecimal() and theirs.isdecimal() and int(theirs) < int(mine)
