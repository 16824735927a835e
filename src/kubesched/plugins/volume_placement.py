"""The rows on which a pod's volumes can be used, bound or provisioned, and the chosen volumes.

    bound claims ── node affinity of their volumes ──────────────┐
    unbound claims ── existing volumes, the smallest first ──────┼──> VolumePlacement: reasons and
                 └── where none is left: provisionable? ─────────┘      volumes of each row

Reasons are bits, since several may hold for one row. Errors on a row are separate: they end the
attempt if no plugin before has rejected the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kubesched.api.core import NodeSelector
from kubesched.api.storage import (
    ANNOTATION_SELECTED_NODE,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.cluster.arrays import BoolArray, IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.incremental import Memo
from kubesched.cluster.node_rows import NodeRows
from kubesched.errors import ObjectError
from kubesched.framework.status import Status, error, unresolvable
from kubesched.framework.verdict import ALL_PASS, Verdict
from kubesched.plugins import csi_migration
from kubesched.plugins.volume_claims import PodClaims
from kubesched.plugins.volume_index import VolumeIndex
from kubesched.plugins.volume_matching import VolumeChoice, choose, requested_nano, required_nodes
from kubesched.plugins.volume_provisioning import NO_SPACE, Provisioner, Provisioning
from kubesched.plugins.volume_topology import Topologies, TopologyRows

#: Reasons as bits, in the order in which they are listed.
REASONS: Final = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)
NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, NO_SUCH_VOLUME = (1 << n for n in range(4))

#: Bits → status; the first one means no reason.
_STATUSES: Final = tuple(
    unresolvable(*(reason for n, reason in enumerate(REASONS) if bits >> n & 1))
    for bits in range(1 << len(REASONS))
)

Bits = npt.NDArray[np.uint8]


class NodeVolumes(Struct):
    """The volumes of a pod on one node."""

    #: existing volumes with their claims
    bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]]
    #: claims to provision volumes for, with the storage capacity used
    provisions: list[tuple[PersistentVolumeClaim, CSIStorageCapacity | None]]


class VolumePlacement:
    """The result for each row."""

    def __init__(self, position: int, size: int) -> None:
        #: position in the log of node changes that the rows are valid for
        self.position = position
        self.reasons: Bits = np.zeros(size, dtype=np.uint8)
        #: row → 1 + index into `errors`, 0 without an error
        self.failed: Bits = np.zeros(size, dtype=np.uint8)
        self.errors: list[str] = []
        #: in the order in which claims were matched
        self.choices: list[VolumeChoice] = []
        #: claims with the rows on which a volume would be provisioned, in order
        self.provisions: list[tuple[Provisioning, BoolArray]] = []

    def fail(self, rows: BoolArray, text: str) -> None:
        """Record an error on some rows."""
        if not rows.any():
            return
        if text not in self.errors:
            self.errors.append(text)
        self.failed[rows & (self.failed == 0)] = self.errors.index(text) + 1

    def verdict(self, nodes: NodeRows) -> Verdict:
        """Return the verdict on rows."""
        reasons = self.reasons[nodes.rows]
        counts = np.bincount(reasons, minlength=len(_STATUSES))
        found = np.flatnonzero(counts[1:]) + 1
        if not len(found) and not self.errors:
            return ALL_PASS
        number_of = np.zeros(len(_STATUSES), dtype=np.int32)
        number_of[found] = np.arange(1, len(found) + 1)
        answers = number_of[reasons]
        statuses: list[Status] = [_STATUSES[bits] for bits in found.tolist()]
        if self.errors:
            failed = self.failed[nodes.rows].astype(np.int32)
            answers = np.where(failed > 0, failed + len(statuses), answers)
            statuses += [error(text) for text in self.errors]
        return Verdict(answers, tuple(statuses))

    def fits(self, row: int) -> bool:
        """Return whether the pod's volumes can be used on a row."""
        return not self.reasons[row] and not self.failed[row]

    def at(self, row: int) -> NodeVolumes:
        """Return the pod's volumes on a feasible row."""
        bindings = []
        for choice in self.choices:
            volume = choice.at(row)
            if volume is not None:
                bindings.append((volume, choice.claim))
        provisions = [
            (each.claim, each.space.at(row) if each.space is not None else None)
            for each, needed in self.provisions
            if needed[row]
        ]
        return NodeVolumes(bindings, provisions)

    def patterns(self, rows: IndexArray) -> tuple[IndexArray, IndexArray]:
        """Return one row for each distinct set of volumes, and the set of each row."""
        columns = [choice.numbers[rows] for choice in self.choices]
        for each, needed in self.provisions:
            space = each.space.numbers[rows] if each.space is not None else NO_SPACE
            columns.append(np.where(needed[rows], space, NO_SPACE - 1).astype(np.int32))
        if not columns:
            return rows[:1], np.zeros(len(rows), dtype=np.intp)
        _, first, inverse = np.unique(
            np.stack(columns), axis=1, return_index=True, return_inverse=True
        )
        return rows[first], inverse.reshape(-1)


class Placer:
    """Evaluates the rows on which a pod's volumes can be used."""

    def __init__(self, cluster: Cluster, *, attributes_classes: bool = True) -> None:
        self._table = cluster.table
        self._storage = cluster.storage
        self._index = VolumeIndex(cluster.storage.volumes, attributes_classes=attributes_classes)
        self._topologies = Topologies()
        self._places = TopologyRows(cluster.table)
        self._provisioner = Provisioner(cluster.storage, cluster.table, self._places)
        #: in-tree plugin → rows on which it is migrated to a CSI driver
        self._migrated: Memo[str, BoolArray] = Memo(
            self._rows_migrated_from, cluster.storage.csi_nodes.changes, cluster.table.node_changes
        )

    def place(self, claims: PodClaims) -> VolumePlacement:
        """Evaluate all rows."""
        placement = VolumePlacement(self._table.node_changes.position, self._table.size)
        self._place_bound(placement, claims.bound)
        if claims.delayed:
            self._place_unbound(placement, claims.delayed)
        return placement

    # --- bound claims ---------------------------------------------------------------------------

    def _place_bound(
        self, placement: VolumePlacement, claims: Sequence[PersistentVolumeClaim]
    ) -> None:
        #: rows that pass all claims so far; None means all
        fine: BoolArray | None = None
        for claim in claims:
            volume = self._storage.volumes.get(claim.spec.volume_name)
            if volume is None:
                placement.reasons[slice(None) if fine is None else fine] |= NO_SUCH_VOLUME
                return
            reachable = self._reachable(placement, volume, fine)
            if reachable is not None:
                here = reachable if fine is None else fine & reachable
                missed = ~reachable if fine is None else fine & ~reachable
                placement.reasons[missed] |= NODE_CONFLICT
                fine = here

    def _reachable(
        self, placement: VolumePlacement, volume: PersistentVolume, fine: BoolArray | None
    ) -> BoolArray | None:
        """Return the rows from which a volume can be reached, None for all."""
        reachable = self._matching(required_nodes(volume))
        plugin = csi_migration.plugin_of(volume)
        if plugin is None or not csi_migration.is_counted(plugin, has_csi_node=True):
            return reachable
        migrated = self._migrated.of(plugin)
        if not migrated.any():
            return reachable
        everywhere = np.ones(self._table.size, dtype=np.bool_)
        try:
            translated = self._matching(required_nodes(csi_migration.translated(volume)))
        except ObjectError as impossible:
            there = migrated if fine is None else migrated & fine
            placement.fail(there, f"could not translate pv: {impossible}")
            translated = None
        return np.where(
            migrated,
            everywhere if translated is None else translated,
            everywhere if reachable is None else reachable,
        )

    def _matching(self, selector: NodeSelector | None) -> BoolArray | None:
        if selector is None:
            return None
        return self._topologies.of(selector)(NodeRows.all_of(self._table))

    def _rows_migrated_from(self, plugin: str) -> BoolArray:
        rows = np.zeros(self._table.size, dtype=np.bool_)
        for csi_node in self._storage.csi_nodes:
            row = self._table.row_of(csi_node.metadata.name)
            if row is not None:
                rows[row] = csi_migration.is_migrated_on(plugin, csi_node)
        return rows

    # --- unbound claims ---------------------------------------------------------------------------

    def _place_unbound(
        self, placement: VolumePlacement, claims: Sequence[PersistentVolumeClaim]
    ) -> None:
        everywhere = np.ones(self._table.size, dtype=np.bool_)
        selected = [claim for claim in claims if selected_node(claim) is not None]
        rows = self._rows_selected(selected)
        if rows is not None:
            placement.reasons[~rows] |= BIND_CONFLICT
        #: rows that pass so far
        fine = everywhere if rows is None else rows
        needs = [(claim, everywhere) for claim in selected]
        to_match = [claim for claim in claims if selected_node(claim) is None]
        try:
            placement.choices = self._match(to_match)
        except ObjectError as unreadable:
            placement.fail(fine, str(unreadable))
            return
        needs += [(choice.claim, choice.numbers < 0) for choice in placement.choices]
        for claim, needed in needs:
            if not fine.any():
                return
            fine = self._provision(placement, claim, needed=needed, fine=fine)

    def _rows_selected(self, claims: Sequence[PersistentVolumeClaim]) -> BoolArray | None:
        """Return the rows of the selected nodes of claims, if there are any; None means all."""
        selected = {selected_node(claim) for claim in claims}
        if not selected:
            return None
        rows = np.zeros(self._table.size, dtype=np.bool_)
        row = self._table.row_of(selected.pop() or "")
        if row is not None and not selected:
            rows[row] = True
        return rows

    def _match(self, claims: Sequence[PersistentVolumeClaim]) -> list[VolumeChoice]:
        """Choose existing volumes for claims, the smallest claim first."""
        choices: list[VolumeChoice] = []
        rows_of, size = self._places.rows, self._table.size
        for claim in sorted(claims, key=requested_nano):
            # The shortcut is for the first claim; later ones must exclude its choices.
            choice = None if choices else self._index.smallest(claim, self._places, table_size=size)
            if choice is None:
                found = self._index.candidates(claim)
                choice = choose(claim, found, rows_of, size=size, taken=choices)
            choices.append(choice)
        return choices

    def _provision(
        self,
        placement: VolumePlacement,
        claim: PersistentVolumeClaim,
        *,
        needed: BoolArray,
        fine: BoolArray,
    ) -> BoolArray:
        """Provision a volume for a claim on rows that need one; return the rows that still pass."""
        here = needed & fine
        if not here.any():
            return fine
        try:
            where = self._provisioner.where(claim)
        except ObjectError as impossible:
            placement.fail(here, str(impossible))
            return fine & ~here
        placement.provisions.append((where, needed))
        lost = np.zeros(len(here), dtype=np.bool_)
        if where.allowed is not None:
            lost = here & ~where.allowed
            placement.reasons[lost] |= BIND_CONFLICT
        if where.space is not None:
            full = here & ~lost & (where.space.numbers == NO_SPACE)
            placement.reasons[full] |= NOT_ENOUGH_SPACE
            lost |= full
        return fine & ~lost


def selected_node(claim: PersistentVolumeClaim) -> str | None:
    """Return the selected node of a claim, None if there is none."""
    return (claim.metadata.annotations or {}).get(ANNOTATION_SELECTED_NODE)
