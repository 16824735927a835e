"""Worlds of a few objects, for the tests of explain and simulate."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.core import Node, Pod
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.explain.case import Case
from kubesched.explain.explaining import explain
from kubesched.explain.report import Explanation
from kubesched.snapshot.contents import Snapshot
from kubesched.snapshot.world import World

GATES = FeatureGates.of({})
CONFIG = SchedulerConfiguration.default(GATES)


def snapshot_of(objects: Iterable[Node | Pod]) -> Snapshot:
    """Return a snapshot of nodes and pods."""
    snapshot = Snapshot(source="test")
    for each in objects:
        snapshot.add("Node" if isinstance(each, Node) else "Pod", each)
    return snapshot


def world_of(*objects: Node | Pod, config: SchedulerConfiguration = CONFIG) -> World:
    """Return a world of nodes and pods under the default configuration."""
    return World.of_snapshot(snapshot_of(objects), config, GATES)


def case_of(world: World, pod: Pod) -> Case:
    """Return a pod's case."""
    return Case(world, world.frameworks["default-scheduler"], pod)


def explained(pod: Pod, *objects: Node | Pod) -> Explanation:
    """Explain a pod that is not among the objects."""
    return explain(world_of(*objects), pod)


def titles(pod: Pod, *objects: Node | Pod) -> list[str]:
    """Return the titles of the changes that would place a pod, in order."""
    return [each.title for each in explained(pod, *objects).changes]


__all__ = [
    "CONFIG",
    "GATES",
    "case_of",
    "explained",
    "snapshot_of",
    "titles",
    "world_of",
]
