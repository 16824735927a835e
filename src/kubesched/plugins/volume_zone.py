"""VolumeZone: a volume with a zone or region label can be used in that zone or region only.

Nodes without any zone or region label pass: they are in a cluster that knows no zones.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from kubesched.api import names
from kubesched.api.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.incremental import Column
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.recent import Recent
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    NOTHING_AGAINST,
    NOTHING_TO_FILTER,
    Filter,
    PreFilter,
    PreFilterResult,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import Status, unresolvable
from kubesched.framework.verdict import ALL_PASS, Verdict, reject
from kubesched.plugins.volume_restrictions import after_claim
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

OTHER_ZONE = unresolvable("node(s) had no available volume zone")

#: Labels of volumes and nodes → the label that nodes have if they lack that one.
TOPOLOGY_LABELS: Final = {
    names.LABEL_ZONE_BETA: names.LABEL_ZONE,
    names.LABEL_REGION_BETA: names.LABEL_REGION,
    names.LABEL_ZONE: names.LABEL_ZONE,
    names.LABEL_REGION: names.LABEL_REGION,
}
#: A regional volume names all of its zones.
ZONE_SEPARATOR: Final = "__"


class ZoneCondition(Struct, frozen=True):
    """A label that nodes must have, and the values that it may have."""

    key: str
    values: frozenset[str]


#: What the volumes of a pod ask of nodes.
Conditions = tuple[ZoneCondition, ...]


class VolumeZone(PreFilter, Filter):
    """Compares the zones of volumes with those of nodes."""

    name = "VolumeZone"
    only_with_volumes = True
    skips_resizes = True

    def __init__(self, cluster: Cluster) -> None:
        self._table = cluster.table
        self._storage = cluster.storage
        #: conditions → rows that do not meet them
        self._rejected: Recent[Conditions, Column[np.bool_]] = Recent(256)

    @classmethod
    def create(cls, context: PluginContext) -> VolumeZone:
        """Make the plugin."""
        return cls(context.cluster)

    def events_to_register(self) -> Registrations:
        """Claims, volumes and classes that come, claims that are bound, nodes and their labels."""
        come_or_change = Action.ADD | Action.UPDATE
        return [
            Registration(ClusterEvent(Resource.STORAGE_CLASS, Action.ADD), hint=_after_class),
            Registration(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
            Registration(
                ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, come_or_change), hint=after_claim
            ),
            Registration(
                ClusterEvent(Resource.PERSISTENT_VOLUME, come_or_change), hint=_after_volume
            ),
        ]

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:  # noqa: ARG002
        """Find the zones of the pod's volumes; skip pods whose volumes can be used anywhere."""
        if not pod.volumes.attachable:
            return NOTHING_TO_FILTER
        conditions: list[ZoneCondition] = []
        for mount in pod.volumes.named_claims:
            found = self._conditions_of(*mount.key)
            if isinstance(found, Status):
                return PreFilterResult(found)
            conditions += found
        if not conditions:
            return NOTHING_TO_FILTER
        state.write(self.name, tuple(conditions))
        return NOTHING_AGAINST

    def _conditions_of(self, namespace: str, name: str) -> Conditions | Status:
        claim = self._storage.claims.observed(namespace, name)
        if claim is None:
            return unresolvable(f'persistentvolumeclaim "{name}" not found')
        if not claim.spec.volume_name:
            return self._unbound(claim)
        volume = self._storage.volumes.observed(claim.spec.volume_name)
        if volume is None:
            return unresolvable(f'persistentvolume "{claim.spec.volume_name}" not found')
        return zone_conditions(volume)

    def _unbound(self, claim: PersistentVolumeClaim) -> Conditions | Status:
        """Let claims pass whose volume will be made where the pod goes."""
        class_name = claim.storage_class
        if not class_name:
            return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self._storage.classes.get(class_name)
        if storage_class is None:
            return unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
        if storage_class.volume_binding_mode is None:
            return unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return ()
        return unresolvable("PersistentVolume had no name")

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:  # noqa: ARG002
        """Turn nodes away that are in another zone than a volume."""
        conditions = state.get(self.name)
        if not isinstance(conditions, tuple):
            return ALL_PASS
        column = self._rejected.get(conditions)
        if column is None:
            column = self._rejected[conditions] = self._column(conditions)
        return reject(column.current()[nodes.rows], OTHER_ZONE)

    def _column(self, conditions: Conditions) -> Column[np.bool_]:
        # Labels come from the node object alone, so what is said of a row holds until that changes.
        return Column(
            self._table,
            self._table.node_changes,
            lambda nodes: elsewhere(conditions, nodes),
        )


def zone_conditions(volume: PersistentVolume) -> Conditions:
    """Return what the labels of a volume ask of nodes; a malformed label asks nothing."""
    labels = volume.metadata.labels or {}
    conditions = []
    for key in TOPOLOGY_LABELS:
        values = [value.strip() for value in labels.get(key, "").split(ZONE_SEPARATOR)]
        if all(values):
            conditions.append(ZoneCondition(key, frozenset(values)))
    return tuple(conditions)


def elsewhere(conditions: Conditions, nodes: NodeRows) -> BoolArray:
    """Return which rows know zones and do not meet all conditions."""
    table, rows = nodes.table, nodes.rows
    knows_zones = nodes.none()
    for key in TOPOLOGY_LABELS:
        knows_zones |= table.label_column(key).ids[rows] > 0
    met = np.ones(len(nodes), dtype=np.bool_)
    for condition in conditions:
        here = _has_value(condition, condition.key, nodes)
        other_key = TOPOLOGY_LABELS[condition.key]
        if other_key != condition.key:
            lacking = table.label_column(condition.key).ids[rows] == 0
            here |= lacking & _has_value(condition, other_key, nodes)
        met &= here
    return knows_zones & ~met


def _has_value(condition: ZoneCondition, key: str, nodes: NodeRows) -> BoolArray:
    column = nodes.table.label_column(key)
    ids = column.ids[nodes.rows]
    result = nodes.none()
    for value in condition.values:
        number = column.vocabulary.find(value)
        if number is not None:
            result |= ids == number
    return result


# --- hints --------------------------------------------------------------------------------------


def _after_class(pod: PodInfo, change: Change[StorageClass]) -> bool:  # noqa: ARG001
    """Ask whether volumes of a class that came are made where pods go."""
    came = change.new
    return came is not None and came.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _after_volume(pod: PodInfo, change: Change[PersistentVolume]) -> bool:  # noqa: ARG001
    """Ask whether a volume came, or changed its zone."""
    if change.old is None or change.new is None:
        return True
    return zone_conditions(change.old) != zone_conditions(change.new)
