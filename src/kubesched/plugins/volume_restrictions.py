"""VolumeRestrictions: inline disks that pods of one node cannot share, and ReadWriteOncePod claims.

An inline disk conflicts on nodes where another pod uses it, unless both mount it read-only. A claim
with the access mode ReadWriteOncePod that a pod uses rejects all nodes; evicting that pod would
resolve it, so the status is one that preemption may help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.api.storage import READ_WRITE_ONCE_POD, PersistentVolumeClaim
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import NO_VOLUMES, PodVolumes, any_conflict, compile_volumes
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
from kubesched.framework.status import unresolvable, unschedulable
from kubesched.framework.verdict import ALL_PASS, Verdict, first_of, reject
from kubesched.plugins.changes import Prepared
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

DISK_TAKEN = unschedulable("node(s) had no available disk")
CLAIM_TAKEN = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)


class ExclusiveClaims(Struct, frozen=True):
    """The pod's ReadWriteOncePod claims."""

    names: frozenset[str]
    #: how many of them are in use
    in_use: int
    #: row → number of uses of claims of these names by its pods, when PreFilter ran
    uses: Mapping[int, int]


class VolumeRestrictions(PreFilter, Filter):
    """Rejects nodes with conflicting disks, and pods whose exclusive claims are in use."""

    name = "VolumeRestrictions"
    repeats_skip = True
    only_with_volumes = True
    skips_resizes = True

    def __init__(self, cluster: Cluster) -> None:
        self._table = cluster.table
        self._claims = cluster.storage.claims
        self._volumes_of_gone: Prepared[Pod, PodVolumes] = Prepared(_volumes_of_gone)

    @classmethod
    def create(cls, context: PluginContext) -> VolumeRestrictions:
        """Create the plugin."""
        return cls(context.cluster)

    def events_to_register(self) -> Registrations:
        """A deleted pod with the disk or the claim, an added claim or node."""
        return [
            Registration(
                ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), hint=self._after_deletion
            ),
            Registration(ClusterEvent(Resource.NODE, Action.ADD)),
            Registration(
                ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD), hint=after_claim
            ),
        ]

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:  # noqa: ARG002
        """Skip pods without such volumes; reject those whose claims do not exist."""
        if pod.volumes is NO_VOLUMES:
            return NOTHING_TO_FILTER
        exclusive = set()
        for mount in pod.volumes.named_claims:
            claim = self._claims.observed(*mount.key)
            if claim is None:
                missing = unresolvable(f'persistentvolumeclaim "{mount.name}" not found')
                return PreFilterResult(missing)
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.add(mount.name)
        found = self._exclusive(pod, frozenset(exclusive))
        if not pod.volumes.disks and not found.in_use:
            return NOTHING_TO_FILTER
        state.write(self.name, found)
        return NOTHING_AGAINST

    def _exclusive(self, pod: PodInfo, names: frozenset[str]) -> ExclusiveClaims:
        uses = self._table.volume_uses
        namespace = pod.labels.namespace
        in_use = sum(uses.is_claim_in_use((namespace, name)) for name in names)
        if not in_use and not pod.volumes.disks:
            return ExclusiveClaims(names, 0, {})
        return ExclusiveClaims(names, in_use, self._uses(names))

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        """Reject nodes with a conflicting disk, and all nodes if a claim is in use."""
        taken = ALL_PASS
        if pod.volumes.disks:
            rows = self._table.volume_uses.rows_in_conflict(pod.volumes.disks)
            if rows:
                taken = reject(nodes.among(rows), DISK_TAKEN)
        exclusive = state.get(self.name)
        if not isinstance(exclusive, ExclusiveClaims) or not exclusive.names:
            return taken
        return first_of(taken, self._claim_taken(exclusive, nodes))

    def _claim_taken(self, exclusive: ExclusiveClaims, nodes: NodeRows) -> Verdict:
        in_use = np.full(self._table.size, exclusive.in_use, dtype=np.int64)
        # Each pod added or removed since PreFilter, in a transaction, changes the count, even if
        # its claim is in another namespace. kube-scheduler counts the same way.
        for row, count in self._uses(exclusive.names).items():
            in_use[row] += count
        for row, count in exclusive.uses.items():
            in_use[row] -= count
        return reject(in_use[nodes.rows] > 0, CLAIM_TAKEN)

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterator[Detail]:
        """Name the pods that have the disk, or use the claim."""
        for row in nodes.row_numbers().tolist() if pod.volumes.disks else ():
            for other in self._table.pods[row].values():
                for disk in pod.volumes.disks:
                    if any_conflict((disk,), other.volumes.disks):
                        kind, *keys = disk.keys[0]
                        text = f"{kind} {' '.join(keys)} is used by {other.full_name}"
                        values = {"disk": list(disk.keys[0]), "pod": other.full_name}
                        yield Detail(text, values, DISK_TAKEN.message, (row,))
        exclusive = state.get(self.name)
        for name in sorted(exclusive.names) if isinstance(exclusive, ExclusiveClaims) else ():
            key = pod.labels.namespace, name
            for row in sorted(self._table.volume_uses.rows_using(key)):
                for other in self._table.pods[row].values():
                    if other.volumes.uses_claim(*key, or_ephemeral=True):
                        yield _in_use("/".join(key), other, self._table.name_at(row))

    def _uses(self, names: Iterable[str]) -> dict[int, int]:
        """Return how many pods of each row use claims of some names."""
        counted: dict[int, int] = {}
        for name in names:
            for row, count in self._table.volume_uses.uses_of_name(name).items():
                counted[row] = counted.get(row, 0) + count
        return counted

    # --- hints ------------------------------------------------------------------------------

    def _after_deletion(self, pod: PodInfo, change: Change[Pod]) -> bool:
        """Return whether the deleted pod had a disk, or a claim, that the pod uses."""
        gone = change.old
        if gone is None or gone.metadata.namespace != pod.labels.namespace:
            return False
        volumes = self._volumes_of_gone(change)
        if any_conflict(pod.volumes.disks, volumes.disks):
            return True
        claims = {mount.name for mount in pod.volumes.named_claims}
        return any(mount.name in claims for mount in volumes.named_claims)


def _in_use(claim: str, by: PodInfo, node: str) -> Detail:
    text = f"claim {claim} (ReadWriteOncePod) is used by {by.full_name} on {node}"
    values = {"claim": claim, "pod": by.full_name, "node": node}
    return Detail(text, values, CLAIM_TAKEN.message)


def after_claim(pod: PodInfo, change: Change[PersistentVolumeClaim]) -> bool:
    """Return whether a pod uses the added or updated claim."""
    claim = change.new
    return claim is not None and pod.volumes.uses_claim(
        claim.metadata.namespace, claim.metadata.name
    )


def _volumes_of_gone(change: Change[Pod]) -> PodVolumes:
    return compile_volumes(change.old if change.old is not None else Pod())
