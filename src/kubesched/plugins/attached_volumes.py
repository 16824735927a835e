"""The CSI volumes of each node, and the free attachments per driver.

    pods of the row ── claims ── volumes, classes ──> ids of volumes ┐
    VolumeAttachments of the node ───────────────────────────────────┼──> free[driver][row]
    CSINode: limits of the drivers ──────────────────────────────────┘
    CSINode: drivers ──> with_driver[driver][row]

A row is evaluated again only when something that it depends on changed: its pods, one of their
claims, the volume of a claim, the node's attachments, its CSINode. The volumes of claims are
cached, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from kubesched.api.core import Node
from kubesched.api.storage import CSINode, CSINodeDriver
from kubesched.cluster.arrays import BoolArray, Int64Array, grown
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.incremental import View
from kubesched.cluster.storage import ClaimKey
from kubesched.errors import ObjectError
from kubesched.plugins.claim_volumes import ClaimVolumes, VolumeId

#: Means no limit.
NO_LIMIT: Final = 1 << 40


class RowVolumes(NamedTuple):
    """The CSI volumes of a row."""

    #: ids of the volumes of its pods
    ids: frozenset[VolumeId] = frozenset()
    #: driver → number of volumes, attached ones that no pod uses included
    counts: Counter[str] = Counter()  # noqa: RUF012 (never modified)
    #: why the volumes of the pods cannot be determined
    error: str = ""


#: Of rows without volumes.
NONE: Final = RowVolumes()


def limits_of(csi_node: CSINode | None) -> dict[str, int]:
    """Return driver → limit of volumes of a node, for drivers with a limit."""
    return {} if csi_node is None else _limits_of(csi_node.spec.drivers)


def _limits_of(drivers: Iterable[CSINodeDriver]) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


class AttachedVolumes(View):
    """The CSI volumes of all rows."""

    derived = ("rows", "rows_with", "errors", "has_csi_node", "has_limits", "limited", "installed")

    def __init__(self, cluster: Cluster, *, prefix: str = "") -> None:
        storage = self._storage = cluster.storage
        self._table = cluster.table
        super().__init__(
            cluster.table.row_changes,
            storage.claims.changes,
            storage.volumes.changes,
            storage.csi_nodes.changes,
            storage.attachments.changes,
        )
        self.claims = ClaimVolumes(cluster.storage, prefix=prefix)
        #: driver → row → free attachments, for drivers that some node has a limit for
        self.free: dict[str, Int64Array] = {}
        #: driver → row → whether it is installed there, for drivers that some node has or had
        self.with_driver: dict[str, BoolArray] = {}
        #: row → whether there is a CSINode, and whether it has a limit for some driver
        self.has_csi_node: BoolArray = np.zeros(0, dtype=np.bool_)
        self.has_limits: BoolArray = np.zeros(0, dtype=np.bool_)
        #: row → its volumes, where there are any
        self.rows: dict[int, RowVolumes] = {}
        #: volume → rows that have it; the inverse of the ids in `rows`
        self.rows_with: dict[VolumeId, set[int]] = {}
        #: rows whose volumes cannot be determined; those of `rows` that have an error
        self.errors: set[int] = set()
        #: attachment → its node at the last update
        self._attached_to: dict[str, str] = {}
        #: row → its CSINode at the last update, where there is one: most changes are of pods
        self._csi_nodes: dict[int, CSINode] = {}

    def at(self, row: int) -> RowVolumes:
        """Compute the volumes of a row as it is now, possibly in a transaction."""
        node = self._table.nodes[row]
        if node is None:
            return NONE
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

    # --- updates ----------------------------------------------------------------------------

    def stamp(self) -> int:
        """Return the version of the classes, which determine the driver of unbound claims."""
        return self._storage.classes.changes.position

    def rebuild(self) -> None:
        """Compute all rows."""
        self.claims = ClaimVolumes(self._storage, prefix=self.claims.prefix)
        attachments = self._storage.attachments
        self._attached_to = {each.metadata.name: each.spec.node_name for each in attachments}
        self.rows, self.rows_with, self.errors = {}, {}, set()
        get = self._storage.csi_nodes.get
        csi_nodes = [
            None if node is None else get(node.metadata.name) for node in self._table.nodes
        ]
        self._csi_nodes = {row: each for row, each in enumerate(csi_nodes) if each is not None}
        self.has_csi_node = np.array([each is not None for each in csi_nodes], dtype=np.bool_)
        self._set_all_limits([() if each is None else each.spec.drivers for each in csi_nodes])
        attached = map(self._table.row_of, self._attached_to.values())
        for row in {*self._table.volume_uses.rows, *(row for row in attached if row is not None)}:
            self._work_out(row)

    def _set_all_limits(self, drivers_of: list[tuple[CSINodeDriver, ...]]) -> None:
        """Set drivers and limits of all rows, whose nodes mostly have the same drivers."""
        numbers: dict[tuple[CSINodeDriver, ...], int] = {}
        number_of = [numbers.setdefault(each, len(numbers)) for each in drivers_of]
        of_row = np.array(number_of, dtype=np.intp)
        limits = [_limits_of(each) for each in numbers]
        self.has_limits = np.array([bool(each) for each in limits], dtype=np.bool_)[of_row]
        self.free = {
            driver: np.array([each.get(driver, NO_LIMIT) for each in limits])[of_row]
            for driver in dict.fromkeys(chain.from_iterable(limits))
        }
        names = [{each.name for each in drivers} for drivers in numbers]
        self.with_driver = {
            driver: np.array([driver in each for each in names], dtype=np.bool_)[of_row]
            for driver in dict.fromkeys(chain.from_iterable(names))
        }

    def update(
        self,
        rows: list[int],
        claims: list[ClaimKey],
        volumes: list[str],
        csi_nodes: list[str],
        attachments: list[str],
    ) -> bool:
        """Compute the rows that changes affect."""
        size = self._table.size
        if len(self.has_limits) < size:
            self.has_csi_node = grown(self.has_csi_node, (size,))
            self.has_limits = grown(self.has_limits, (size,))
            for driver, column in self.free.items():
                self.free[driver] = grown(column, (size,), fill=NO_LIMIT)
            for driver, present in self.with_driver.items():
                self.with_driver[driver] = grown(present, (size,))
        changed, node_names, storage = {*rows}, {*csi_nodes}, self._storage
        changed_claims = {*claims}
        for volume in volumes:
            changed_claims.update(storage.claims.keys_of_volume(volume))
            node_names.update(each.spec.node_name for each in storage.attachments.of_volume(volume))
        for name in attachments:
            node_names.update(self._follow(name))
        self.claims.forget(changed_claims)
        changed.update(row for name in node_names if (row := self._table.row_of(name)) is not None)
        for key in changed_claims:
            changed |= self._table.volume_uses.rows_using(key)
        for row in changed:
            self._work_out(row)
        return True

    def _follow(self, attachment_name: str) -> list[str]:
        """Return the previous and the current node of an attachment."""
        before = self._attached_to.pop(attachment_name, None)
        attachment = self._storage.attachments.get(attachment_name)
        if attachment is None:
            return [] if before is None else [before]
        now = self._attached_to[attachment_name] = attachment.spec.node_name
        return [now] if before is None else [before, now]

    def _work_out(self, row: int) -> None:
        node = self._table.nodes[row]
        csi_node = None if node is None else self._storage.csi_nodes.get(node.metadata.name)
        has_another = csi_node is not self._csi_nodes.get(row)
        if has_another:
            self._set_drivers(row, csi_node)
        old, new = self.rows.pop(row, NONE), self._volumes_of(row, node)
        if new.counts or new.error:
            self.rows[row] = new
        for gone in old.ids - new.ids:
            self.rows_with[gone].discard(row)
            if not self.rows_with[gone]:
                del self.rows_with[gone]
        for come in new.ids - old.ids:
            self.rows_with.setdefault(come, set()).add(row)
        (self.errors.add if new.error else self.errors.discard)(row)
        if has_another or old.counts != new.counts:
            self._set_limits(row, csi_node, new)

    def _volumes_of(self, row: int, node: Node | None) -> RowVolumes:
        """Return the volumes of a row; most changes are of rows without any."""
        if node is None:
            return NONE
        has_any = row in self._table.volume_uses.rows or self._storage.attachments.of_node(
            node.metadata.name
        )
        return self.at(row) if has_any else NONE

    def _set_drivers(self, row: int, csi_node: CSINode | None) -> None:
        if csi_node is None:
            self._csi_nodes.pop(row, None)
        else:
            self._csi_nodes[row] = csi_node
        self.has_csi_node[row] = csi_node is not None
        drivers = {each.name for each in csi_node.spec.drivers} if csi_node else set()
        for driver in drivers - self.with_driver.keys():
            self.with_driver[driver] = np.zeros(len(self.has_limits), dtype=np.bool_)
        for driver, column in self.with_driver.items():
            column[row] = driver in drivers

    def _set_limits(self, row: int, csi_node: CSINode | None, volumes: RowVolumes) -> None:
        limits = limits_of(csi_node)
        self.has_limits[row] = bool(limits)
        for driver in limits:
            if driver not in self.free:
                self.free[driver] = np.full(len(self.has_limits), NO_LIMIT, dtype=np.int64)
        for driver, column in self.free.items():
            limit = limits.get(driver)
            column[row] = NO_LIMIT if limit is None else limit - volumes.counts[driver]

    @property
    def installed(self) -> dict[str, BoolArray]:
        """The rows of drivers that some node has now."""
        return {driver: column for driver, column in self.with_driver.items() if column.any()}

    @property
    def limited(self) -> dict[str, Int64Array]:
        """The free attachments of drivers that some node has a limit for now."""
        return {
            driver: column for driver, column in self.free.items() if (column != NO_LIMIT).any()
        }
