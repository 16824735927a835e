"""VolumeZone: a volume with a zone or region label can be used in that zone or region only.

Nodes without any zone or region label pass: their cluster has no zones.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from kubesched.framework.detail import Detail
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

#: Label of volumes and nodes → the alternative label of nodes that lack it.
TOPOLOGY_LABELS: Final = {
    names.LABEL_ZONE_BETA: names.LABEL_ZONE,
    names.LABEL_REGION_BETA: names.LABEL_REGION,
    names.LABEL_ZONE: names.LABEL_ZONE,
    names.LABEL_REGION: names.LABEL_REGION,
}
#: A regional volume names all of its zones.
ZONE_SEPARATOR: Final = "__"


class ZoneCondition(Struct, frozen=True):
    """A label that nodes must have, and its allowed values."""

    key: str
    values: frozenset[str]


#: The conditions of a pod's volumes.
Conditions = tuple[ZoneCondition, ...]


class VolumeZone(PreFilter, Filter):
    """Compares the zones of volumes with those of nodes."""

    name = "VolumeZone"
    repeats_skip = True
    only_with_volumes = True
    skips_resizes = True

    def __init__(self, cluster: Cluster) -> None:
        self._table = cluster.table
        self._storage = cluster.storage
        #: conditions → rows that do not meet them
        self._rejected: Recent[Conditions, Column[np.bool_]] = Recent(256)

    @classmethod
    def create(cls, context: PluginContext) -> VolumeZone:
        """Create the plugin."""
        return cls(context.cluster)

    def events_to_register(self) -> Registrations:
        """Added claims, volumes and classes, bound claims, nodes and their labels."""
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
        """Collect the zones of the pod's volumes; skip pods whose volumes have none."""
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
        """Pass claims whose volume is provisioned for the pod's node."""
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
        """Reject nodes that are in another zone than a volume."""
        conditions = state.get(self.name)
        if not isinstance(conditions, tuple):
            return ALL_PASS
        column = self._rejected.get(conditions)
        if column is None:
            column = self._rejected[conditions] = self._column(conditions)
        return reject(column.current()[nodes.rows], OTHER_ZONE)

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterator[Detail]:  # noqa: ARG002
        """Name the volume, and the zones that it is in."""
        for mount in pod.volumes.named_claims:
            found = self._conditions_of(*mount.key)
            claim = self._storage.claims.observed(*mount.key)
            if isinstance(found, Status) or claim is None:
                continue
            name, volume = f"{mount.namespace}/{mount.name}", claim.spec.volume_name
            for condition in found:
                rows = nodes.row_numbers()[elsewhere((condition,), nodes)]
                zones = ", ".join(sorted(condition.values))
                if len(rows):
                    yield Detail(
                        f"PersistentVolume {volume} of claim {name} is in {condition.key} {zones}",
                        {
                            "claim": name,
                            "volume": volume,
                            "key": condition.key,
                            "values": sorted(condition.values),
                        },
                        rows=tuple(rows.tolist()),
                    )

    def _column(self, conditions: Conditions) -> Column[np.bool_]:
        # Labels are part of the node object, so a row's value is valid until that changes.
        return Column(
            self._table,
            self._table.node_changes,
            lambda nodes: elsewhere(conditions, nodes),
        )


def zone_conditions(volume: PersistentVolume) -> Conditions:
    """Return the conditions of a volume's labels; a malformed label has none."""
    labels = volume.metadata.labels or {}
    conditions = []
    for key in TOPOLOGY_LABELS:
        values = [value.strip() for value in labels.get(key, "").split(ZONE_SEPARATOR)]
        if all(values):
            conditions.append(ZoneCondition(key, frozenset(values)))
    return tuple(conditions)


def elsewhere(conditions: Conditions, nodes: NodeRows) -> BoolArray:
    """Return the rows that have zone labels and do not meet all conditions."""
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
    """Return whether a class was added whose volumes are provisioned for the pod's node."""
    came = change.new
    return came is not None and came.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _after_volume(pod: PodInfo, change: Change[PersistentVolume]) -> bool:  # noqa: ARG001
    """Return whether a volume was added, or its zone changed."""
    if change.old is None or change.new is None:
        return True
    return zone_conditions(change.old) != zone_conditions(change.new)
