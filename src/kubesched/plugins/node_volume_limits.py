"""NodeVolumeLimits: the limit of attached volumes per CSI driver and node.

    volumes of the node's pods, or attached to it  +  those of the pod that are new  <=  limit

A volume that several pods use counts once. An unbound claim counts as a volume that the driver of
its class will provision. A driver whose CSIDriver has ``preventPodSchedulingIfMissing`` must be
installed on the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.api.storage import (
    CSINode,
    PersistentVolumeClaim,
    VolumeAttachment,
)
from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import ClaimMount, compile_volumes
from kubesched.errors import ObjectError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.plugin import (
    NOTHING_AGAINST,
    NOTHING_TO_FILTER,
    Filter,
    PreFilter,
    PreFilterResult,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import Status, error, unresolvable, unschedulable
from kubesched.framework.verdict import ALL_PASS, Verdict, first_of, reject
from kubesched.plugins import csi_migration
from kubesched.plugins.attached_volumes import (
    AttachedVolumes,
    RowVolumes,
    limits_of,
)
from kubesched.plugins.changes import Prepared, has_place
from kubesched.plugins.claim_volumes import MissingClaimError, VolumeId
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

TOO_MANY = unschedulable("node(s) exceed max volume count")


class NewVolumes(Struct, frozen=True):
    """The pod's volumes on nodes with a CSINode, and on nodes without; or an error."""

    with_csi_node: frozenset[VolumeId] | Status
    without: frozenset[VolumeId] | Status


class NodeVolumeLimits(PreFilter, Filter):
    """Counts CSI volumes."""

    name = "NodeVolumeLimits"
    repeats_skip = True
    only_with_volumes = True
    skips_resizes = True

    def __init__(self, cluster: Cluster, *, need_drivers: bool = False) -> None:
        self._table = cluster.table
        self._storage = cluster.storage
        #: whether drivers may require to be installed
        self._need_drivers = need_drivers
        self.attached = AttachedVolumes(cluster)
        self._frees_room: Prepared[Pod, bool] = Prepared(_frees_room)

    @classmethod
    def create(cls, context: PluginContext) -> NodeVolumeLimits:
        """Create the plugin."""
        need_drivers = context.gates.enabled("VolumeLimitScaling")
        return cls(context.cluster, need_drivers=need_drivers)

    def events_to_register(self) -> Registrations:
        """New or higher limits, deleted pods and attachments, added claims."""
        return [
            Registration(ClusterEvent(Resource.CSI_NODE, Action.ADD)),
            Registration(ClusterEvent(Resource.CSI_NODE, Action.UPDATE), hint=_after_limits),
            Registration(
                ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), hint=self._after_deletion
            ),
            Registration(
                ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD), hint=_after_claim
            ),
            Registration(
                ClusterEvent(Resource.VOLUME_ATTACHMENT, Action.DELETE), hint=_after_detachment
            ),
        ]

    # --- filter -----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:  # noqa: ARG002
        """Skip pods without volumes that a CSI driver may handle."""
        if not pod.volumes.attachable:
            return NOTHING_TO_FILTER
        self.attached.refresh()
        new = NewVolumes(
            self._new_volumes(pod, has_csi_node=True), self._new_volumes(pod, has_csi_node=False)
        )
        state.write(self.name, new)
        return NOTHING_AGAINST

    def _new_volumes(self, pod: PodInfo, *, has_csi_node: bool) -> frozenset[VolumeId] | Status:
        try:
            found = self.attached.claims.of_pod(pod, has_csi_node=has_csi_node, must_exist=True)
        except MissingClaimError as missing:
            return unresolvable(str(missing))
        except ObjectError as failed:
            return error(str(failed))
        return frozenset(found)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:  # noqa: ARG002
        """Reject nodes whose limits the pod's volumes exceed."""
        new = state.get(self.name)
        if not isinstance(new, NewVolumes):
            return ALL_PASS
        self.attached.refresh()
        verdicts = self._impossible(new, nodes)
        if not isinstance(new.with_csi_node, Status) and new.with_csi_node:
            verdicts += self._unreadable(nodes)
            verdicts.append(reject(self._too_many(new.with_csi_node, nodes), TOO_MANY))
        return verdicts[0] if len(verdicts) == 1 else first_of(*verdicts)

    def _impossible(self, new: NewVolumes, nodes: NodeRows) -> list[Verdict]:
        """Reject nodes because of an invalid claim, or because a driver is missing."""
        verdicts = []
        for volumes, with_csi_node in ((new.with_csi_node, True), (new.without, False)):
            if isinstance(volumes, Status):
                rows = self.attached.has_csi_node[nodes.rows] == with_csi_node
                verdicts.append(reject(rows, volumes))
                continue
            for driver in self._needed_drivers(volumes):
                rows = self.attached.has_csi_node[nodes.rows] == with_csi_node
                installed = self.attached.with_driver.get(driver)
                lacking = rows if installed is None else rows & ~installed[nodes.rows]
                verdicts.append(reject(lacking, _not_installed(driver)))
        return verdicts

    def _too_many(self, new: frozenset[VolumeId], nodes: NodeRows) -> BoolArray:
        attached = self.attached
        rejected = nodes.none()
        for driver, count in Counter(each.driver for each in new).items():
            column = attached.free.get(driver)
            if column is not None:
                rejected |= column[nodes.rows] < count
        # Volumes that a node has already are not new there.
        shared = {row for each in new for row in attached.rows_with.get(each, ())}
        if shared and rejected.any():
            for element in _elements(shared, nodes):
                row = int(nodes.row_numbers()[element])
                rejected[element] = self._is_too_many(new, attached.rows[row], row)
        return rejected

    def _is_too_many(self, new: frozenset[VolumeId], volumes: RowVolumes, row: int) -> bool:
        limits = limits_of(self._csi_node(row))
        return any(
            driver in limits and volumes.counts[driver] + count > limits[driver]
            for driver, count in Counter(each.driver for each in new - volumes.ids).items()
        )

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterator[Detail]:  # noqa: ARG002
        """Return how many volumes of a driver nodes have, and may have."""
        new = state.get(self.name)
        if not isinstance(new, NewVolumes) or isinstance(new.with_csi_node, Status):
            return
        rows_with: dict[tuple[str, int, int, int], list[int]] = {}
        for row in nodes.row_numbers().tolist():
            volumes, limits = self.attached.at(row), limits_of(self._csi_node(row))
            added = Counter(each.driver for each in new.with_csi_node - volumes.ids)
            for driver, count in added.items():
                used, limit = volumes.counts[driver], limits.get(driver)
                if limit is not None and used + count > limit:
                    rows_with.setdefault((driver, used, limit, count), []).append(row)
        for (driver, used, limit, count), rows in rows_with.items():
            yield Detail(
                f"{driver}: {used} of at most {limit} volumes in use, {count} more needed",
                {"driver": driver, "used": used, "limit": limit, "needed": count},
                TOO_MANY.message,
                tuple(rows),
            )

    def _unreadable(self, nodes: NodeRows) -> list[Verdict]:
        """Report rows whose volumes cannot be determined, where that matters."""
        attached = self.attached
        return [
            reject(nodes.among({row}), error(attached.rows[row].error))
            for row in sorted(attached.errors)
            if attached.has_limits[row]
        ]

    def _needed_drivers(self, new: frozenset[VolumeId]) -> list[str]:
        """Return the drivers of some volumes that must be installed on the node."""
        if not self._need_drivers:
            return []
        return sorted(filter(self._is_needed, {each.driver for each in new}))

    def _is_needed(self, driver: str) -> bool:
        found = self._storage.drivers.get(driver)
        return found is not None and bool(found.spec.prevent_pod_scheduling_if_missing)

    def _csi_node(self, row: int) -> CSINode | None:
        node = self._table.nodes[row]
        return None if node is None else self._storage.csi_nodes.get(node.metadata.name)

    # --- hints ------------------------------------------------------------------------------

    def _after_deletion(self, pod: PodInfo, change: Change[Pod]) -> bool:  # noqa: ARG002
        """Return whether the deleted pod may have had volumes of a CSI driver."""
        return self._frees_room(change)


def _elements(rows: Collection[int], nodes: NodeRows) -> list[int]:
    """Return the positions of some rows in `nodes`."""
    if isinstance(nodes.rows, slice):
        first, end = nodes.rows.start, nodes.rows.stop
        return sorted(row - first for row in rows if first <= row < end)
    return [element for element, row in enumerate(nodes.rows.tolist()) if row in rows]


def _not_installed(driver: str) -> Status:
    return unschedulable(f"{driver} CSI driver is not installed on the node")


def _frees_room(change: Change[Pod]) -> bool:
    gone = change.old
    return gone is not None and has_place(gone) and bool(compile_volumes(gone).attachable)


def _after_limits(pod: PodInfo, change: Change[CSINode]) -> bool:  # noqa: ARG001
    """Return whether a limit was raised; no limit counts as 0, as in kube-scheduler."""
    before, after = limits_of(change.old), limits_of(change.new)
    return any(limit > before.get(driver, 0) for driver, limit in after.items())


def _after_claim(pod: PodInfo, change: Change[PersistentVolumeClaim]) -> bool:
    """Return whether the added claim is the pod's, possibly one created for it."""
    claim = change.new
    return claim is not None and pod.volumes.uses_claim(
        claim.metadata.namespace, claim.metadata.name, or_ephemeral=True
    )


def _after_detachment(pod: PodInfo, change: Change[VolumeAttachment]) -> bool:
    """Return whether a volume was detached that may be of one of the pod's drivers."""
    detached = change.old
    if detached is None:
        return False
    for volume in pod.volumes.attachable:
        if isinstance(volume, ClaimMount):
            if not volume.ephemeral:
                return True
        else:
            source = csi_migration.inline_source(volume, pod.labels.namespace)
            if source.driver == detached.spec.attacher:
                return True
    return False
