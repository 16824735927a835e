"""A laboratory with storage: one volume plugin, asked about all nodes of a cluster."""

from __future__ import annotations

from typing import Any

from kubesched.api.core import Node, Pod
from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.cluster.node_rows import NodeRows
from kubesched.config.features import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PreFilterResult
from kubesched.framework.status import Status
from kubesched.kinds import KINDS
from kubesched.queue.events import Action, ClusterEvent
from kubesched.queue.hints import Change
from tests.support.evaluating import feasible_rows
from tests.support.scheduling import DEFAULT_GATES, Lab, store_of

StorageObject = (
    StorageClass | CSINode | CSIDriver | VolumeAttachment | PersistentVolume | PersistentVolumeClaim
)


class StorageLab(Lab):
    """A cluster with storage objects, and one plugin beside those that every profile has."""

    def __init__(
        self,
        plugin: str,
        *objects: Node | Pod | StorageObject,
        gates: FeatureGates = DEFAULT_GATES,
        preemption: bool = False,
    ) -> None:
        others = [each for each in objects if isinstance(each, Node | Pod)]
        only = [plugin, *(["DefaultPreemption"] if preemption else [])]
        super().__init__(*others, only=only, gates=gates)
        self.plugin_name = plugin
        self.put(*(each for each in objects if not isinstance(each, Node | Pod)))

    def put(self, *objects: StorageObject) -> None:
        """Let storage objects come, or change."""
        for each in objects:
            store_of(self.cluster, each).put(each)

    def remove(self, *objects: StorageObject) -> None:
        """Let storage objects go."""
        for each in objects:
            store_of(self.cluster, each).remove(each)

    def pre_filter(self, unbound: Pod) -> PreFilterResult:
        """Ask PreFilter."""
        nodes = NodeRows.all_of(self.cluster.table)
        result = self.plugin(self.plugin_name).pre_filter(
            CycleState(), self.pending(unbound), nodes
        )
        assert isinstance(result, PreFilterResult)
        return result

    def refused(self, unbound: Pod) -> dict[str, Status]:
        """Ask PreFilter, then Filter about each node; return what is said of those turned away."""
        plugin, info, state = self.plugin(self.plugin_name), self.pending(unbound), CycleState()
        nodes = NodeRows.all_of(self.cluster.table)
        assert plugin.pre_filter(state, info, nodes).status.ok
        verdict = plugin.filter(state, info, nodes)
        return {
            self.cluster.table.name_at(row): status
            for row in nodes.row_numbers().tolist()
            if self.cluster.table.valid[row] and (status := verdict.status_of(row)) is not None
        }

    def evicted_for(self, unbound: Pod) -> list[tuple[str, str, list[str]]]:
        """Let a pod that fits nowhere preempt others; return node and victims."""
        state, info = CycleState(), self.pending(unbound)
        found = feasible_rows(self.framework.evaluator, state, info)
        assert isinstance(found, Diagnosis)
        self.framework.post_filter(state, info, found)
        return self.evictor.evicted


def _event(obj: StorageObject, action: Action) -> ClusterEvent:
    return ClusterEvent(KINDS[type(obj).__name__].event_resource, action)


def came(new: StorageObject) -> Change[Any]:
    """A storage object came."""
    return Change(_event(new, Action.ADD), new=new)


def went(old: StorageObject) -> Change[Any]:
    """A storage object is gone."""
    return Change(_event(old, Action.DELETE), old=old)


def changed(old: StorageObject, new: StorageObject) -> Change[Any]:
    """A storage object changed."""
    return Change(_event(new, Action.UPDATE), old, new)
