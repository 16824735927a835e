"""VolumeRestrictions: disks that pods of one node cannot share, claims that only one pod may use.

A disk used without a claim is taken on nodes where another pod has it, unless both only read. A
claim with the access mode ReadWriteOncePod is taken everywhere as soon as one pod uses it; evicting
that pod would free it, so the other nodes are turned away in a way that lets preemption try.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.api.storage import READ_WRITE_ONCE_POD, PersistentVolumeClaim
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import PodVolumes, any_conflict, compile_volumes
from kubesched.framework.cycle_state import CycleState
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
    """The pod's claims that only one pod may use."""

    names: frozenset[str]
    #: how many of them are in use
    in_use: int
    #: row → how often its pods name claims of these names, as things were at the beginning
    uses: Mapping[int, int]


class VolumeRestrictions(PreFilter, Filter):
    """Keeps pods from what other pods have for themselves."""

    name = "VolumeRestrictions"
    only_with_volumes = True
    skips_resizes = True

    def __init__(self, cluster: Cluster) -> None:
        self._table = cluster.table
        self._claims = cluster.storage.claims
        self._volumes_of_gone: Prepared[Pod, PodVolumes] = Prepared(_volumes_of_gone)

    @classmethod
    def create(cls, context: PluginContext) -> VolumeRestrictions:
        """Make the plugin."""
        return cls(context.cluster)

    def events_to_register(self) -> Registrations:
        """A pod that goes and had what is wanted, a claim or a node that comes."""
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
        """Skip pods that share nothing; turn away those whose claims are not there."""
        if not pod.volumes:
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
        """Turn nodes away where a disk is taken, and all nodes if a claim is."""
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
        # Each pod that has come or gone since PreFilter, in a transaction, changes the count, even
        # if the claim that it names is another namespace's. That is how kube-scheduler counts.
        for row, count in self._uses(exclusive.names).items():
            in_use[row] += count
        for row, count in exclusive.uses.items():
            in_use[row] -= count
        return reject(in_use[nodes.rows] > 0, CLAIM_TAKEN)

    def _uses(self, names: Iterable[str]) -> dict[int, int]:
        """Return how many pods of each row use claims of some names."""
        counted: dict[int, int] = {}
        for name in names:
            for row, count in self._table.volume_uses.uses_of_name(name).items():
                counted[row] = counted.get(row, 0) + count
        return counted

    # --- hints ------------------------------------------------------------------------------

    def _after_deletion(self, pod: PodInfo, change: Change[Pod]) -> bool:
        """Ask whether the pod that is gone had a disk, or a claim, that the pod wants."""
        gone = change.old
        if gone is None or gone.metadata.namespace != pod.labels.namespace:
            return False
        volumes = self._volumes_of_gone(change)
        if any_conflict(pod.volumes.disks, volumes.disks):
            return True
        claims = {mount.name for mount in pod.volumes.named_claims}
        return any(mount.name in claims for mount in volumes.named_claims)


def after_claim(pod: PodInfo, change: Change[PersistentVolumeClaim]) -> bool:
    """Ask whether a pod names the claim that came or changed."""
    claim = change.new
    return claim is not None and pod.volumes.uses_claim(
        claim.metadata.namespace, claim.metadata.name
    )


def _volumes_of_gone(change: Change[Pod]) -> PodVolumes:
    return compile_volumes(change.old if change.old is not None else Pod())
