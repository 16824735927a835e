"""Which CSI volumes each node has, and how many more of each driver it can take.

    pods of the row ── claims ── volumes, classes ──> ids of volumes ┐
    VolumeAttachments of the node ───────────────────────────────────┼──> free[driver][row]
    CSINode: limits of the drivers ──────────────────────────────────┘

Rows are worked out again only when something they depend on changed: their pods, one of the claims
that these use, the volume behind it, the node's attachments, its CSINode. What claims stand for is
remembered as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from kubesched.api.storage import CSINode
from kubesched.cluster.arrays import BoolArray, Int64Array, grown
from kubesched.cluster.cluster import Cluster
from kubesched.errors import ObjectError, require
from kubesched.plugins.claim_volumes import ClaimVolumes, VolumeId

#: More than any node has.
NO_LIMIT: Final = 1 << 40


class RowVolumes(NamedTuple):
    """The CSI volumes of a row."""

    #: of its pods; each once, however many pods use it
    ids: frozenset[VolumeId] = frozenset()
    #: driver → number of volumes, those included that are attached and used by no pod
    counts: Counter[str] = Counter()  # noqa: RUF012 (nobody changes it)
    #: why the volumes of the pods cannot be told
    error: str = ""


def limits_of(csi_node: CSINode | None) -> dict[str, int]:
    """Return driver → how many volumes a node can have; drivers without a limit are left out."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


class AttachedVolumes:
    """The CSI volumes of all rows, kept up to date."""

    def __init__(self, cluster: Cluster, *, prefix: str = "") -> None:
        self._cluster = cluster
        self._table = cluster.table
        self._storage = cluster.storage
        self.claims = ClaimVolumes(cluster.storage, prefix=prefix)
        #: driver → row → how many volumes more; only drivers that some node has a limit for
        self.free: dict[str, Int64Array] = {}
        #: row → whether there is a CSINode, and whether it has a limit for some driver
        self.has_csi_node: BoolArray = np.zeros(0, dtype=np.bool_)
        self.has_limits: BoolArray = np.zeros(0, dtype=np.bool_)
        #: row → its volumes, where there are any
        self.rows: dict[int, RowVolumes] = {}
        #: volume → rows that have it; the inverse of the ids in `rows`
        self.rows_with: dict[VolumeId, set[int]] = {}
        #: rows whose volumes cannot be told; those of `rows` that have an error
        self.errors: set[int] = set()
        #: attachment → the node that it was to when it was last looked at
        self._attached_to: dict[str, str] = {}
        #: versions up to which changes were looked at: rows, then stores
        self._position = -1
        self._versions: tuple[int, ...] = ()

    def at(self, row: int) -> RowVolumes:
        """Work out the volumes of a row as it is now, be it in a trial."""
        node = self._table.nodes[row]
        if node is None:
            return RowVolumes()
        ids: set[VolumeId] = set()
        try:
            for pod in self._table.pods[row].values():
                if pod.volumes.attachable:
                    ids |= self.claims.of_pod(pod, has_csi_node=True)
        except ObjectError as failed:
            return RowVolumes(error=str(failed))
        counts = Counter(each.driver for each in ids)
        counts.update(each.driver for each in self._attached(node.metadata.name) - ids)
        return RowVolumes(frozenset(ids), counts)

    def _attached(self, node_name: str) -> set[VolumeId]:
        """Return the volumes that are attached to a node."""
        found = set()
        for attachment in self._storage.attachments.of_node(node_name):
            name = attachment.spec.source.persistent_volume_name
            volume = None if name is None else self._storage.volumes.observed(name)
            if volume is not None and volume.spec.csi is not None and attachment.spec.attacher:
                handle = volume.spec.csi.volume_handle
                found.add(VolumeId(attachment.spec.attacher, handle))
        return found

    # --- keeping up -------------------------------------------------------------------------

    def refresh(self) -> None:
        """Work out all rows again that depend on something that changed; not in a trial."""
        changed = self._changed_rows()
        size = self._table.size
        if len(self.has_limits) < size:
            self.has_csi_node = grown(self.has_csi_node, (size,))
            self.has_limits = grown(self.has_limits, (size,))
            for driver, column in self.free.items():
                self.free[driver] = grown(column, (size,), fill=NO_LIMIT)
        for row in changed:
            self._work_out(row)

    def _changed_rows(self) -> Iterable[int]:
        storage = self._storage
        stores = (
            storage.classes,
            storage.claims,
            storage.volumes,
            storage.csi_nodes,
            storage.attachments,
        )
        versions = tuple(store.version for store in stores)
        position = self._table.row_changes.position
        if versions == self._versions and position == self._position:
            return ()
        rows: set[int] | None = set()
        if versions != self._versions:
            rows = self._rows_behind(self._versions) if self._versions else None
        changed = None
        if rows is not None:
            changed = self._table.row_changes.rows_since(self._position)
        self._versions, self._position = versions, position
        if rows is None or changed is None:
            return self._begin_again()
        rows.update(changed.tolist())
        return rows

    def _begin_again(self) -> range:
        self.claims.forget_all()
        attachments = self._storage.attachments
        self._attached_to = {each.metadata.name: each.spec.node_name for each in attachments}
        return range(self._table.size)

    def _rows_behind(self, versions: tuple[int, ...]) -> set[int] | None:
        """Return the rows that changed objects matter to; None means all."""
        storage = self._storage
        classes = storage.classes.changed_since(versions[0])
        claims = storage.claims.changed_since(versions[1])
        volumes = storage.volumes.changed_since(versions[2])
        csi_nodes = storage.csi_nodes.changed_since(versions[3])
        attachments = storage.attachments.changed_since(versions[4])
        if classes is None or classes:
            # Of an unbound claim the class is all that there is. Classes hardly ever change.
            return None
        if claims is None or volumes is None or csi_nodes is None or attachments is None:
            return None
        node_names = set(csi_nodes)
        for volume in volumes:
            claims.update(storage.claims.keys_of_volume(volume))
            node_names.update(each.spec.node_name for each in storage.attachments.of_volume(volume))
        for name in attachments:
            node_names.update(self._follow(name))
        self.claims.forget(claims)
        rows = {row for name in node_names if (row := self._table.row_of(name)) is not None}
        for key in claims:
            rows |= self._table.volume_uses.rows_using(key)
        return rows

    def _follow(self, attachment_name: str) -> list[str]:
        """Return the nodes that an attachment was to, and is to."""
        before = self._attached_to.pop(attachment_name, None)
        attachment = self._storage.attachments.get(attachment_name)
        if attachment is None:
            return [] if before is None else [before]
        now = self._attached_to[attachment_name] = attachment.spec.node_name
        return [now] if before is None else [before, now]

    def _work_out(self, row: int) -> None:
        old = self.rows.pop(row, RowVolumes())
        new = self.at(row)
        if new.counts or new.error:
            self.rows[row] = new
        for gone in old.ids - new.ids:
            self.rows_with[gone].discard(row)
            if not self.rows_with[gone]:
                del self.rows_with[gone]
        for come in new.ids - old.ids:
            self.rows_with.setdefault(come, set()).add(row)
        (self.errors.add if new.error else self.errors.discard)(row)
        self._set_limits(row, new)

    def _set_limits(self, row: int, volumes: RowVolumes) -> None:
        node = self._table.nodes[row]
        csi_node = None if node is None else self._storage.csi_nodes.get(node.metadata.name)
        limits = limits_of(csi_node)
        self.has_csi_node[row] = csi_node is not None
        self.has_limits[row] = bool(limits)
        for driver in limits:
            if driver not in self.free:
                self.free[driver] = np.full(len(self.has_limits), NO_LIMIT, dtype=np.int64)
        for driver, column in self.free.items():
            limit = limits.get(driver)
            column[row] = NO_LIMIT if limit is None else limit - volumes.counts[driver]

    def validate(self) -> None:
        """Work everything out anew and compare; to be called when it is up to date."""
        fresh = AttachedVolumes(self._cluster, prefix=self.claims.prefix)
        fresh.refresh()
        require(self.rows == fresh.rows, "volumes of rows")
        require(self.rows_with == fresh.rows_with, "rows with volumes")
        require(self.errors == fresh.errors, "rows with an error")
        require(np.array_equal(self.has_csi_node, fresh.has_csi_node), "rows with a CSINode")
        require(np.array_equal(self.has_limits, fresh.has_limits), "rows with limits")
        nothing = np.full(len(self.has_limits), NO_LIMIT, dtype=np.int64)
        for driver in self.free.keys() | fresh.free.keys():
            # Drivers that no node has a limit for any more may still have a column.
            expected = fresh.free.get(driver, nothing)
            same = np.array_equal(self.free.get(driver, nothing), expected)
            require(same, f"free places of {driver}")
