"""Worlds of a few objects, for the tests of explain and simulate."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.core import Pod
from kubesched.cluster.object_store import HasMeta
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.explain.case import Case
from kubesched.explain.explaining import ExplainOptions, explain
from kubesched.explain.report import Explanation, Reason, ReasonCount
from kubesched.snapshot.contents import Snapshot
from kubesched.snapshot.world import World

GATES = FeatureGates.of({})
CONFIG = SchedulerConfiguration.default(GATES)


def snapshot_of(objects: Iterable[HasMeta]) -> Snapshot:
    """Return a snapshot of objects of any kind."""
    snapshot = Snapshot(source="test")
    for each in objects:
        snapshot.add(type(each).__name__, each)
    return snapshot


def world_of(
    *objects: HasMeta, config: SchedulerConfiguration | None = None, gates: FeatureGates = GATES
) -> World:
    """Return a world of objects under the default configuration."""
    config = config or SchedulerConfiguration.default(gates)
    return World.of_snapshot(snapshot_of(objects), config, gates)


def case_of(world: World, pod: Pod) -> Case:
    """Return a pod's case."""
    return Case(world, world.frameworks["default-scheduler"], pod)


def explained(pod: Pod, *objects: HasMeta) -> Explanation:
    """Explain a pod that is not among the objects."""
    return explain(world_of(*objects), pod)


def titles(pod: Pod, *objects: HasMeta) -> list[str]:
    """Return the titles of the changes that would place a pod, in order."""
    return [each.title for each in explained(pod, *objects).changes]


def details(pod: Pod, *objects: HasMeta, gates: FeatureGates = GATES) -> dict[str, list[str]]:
    """Return what is behind each reason why nodes, or the pod itself, are rejected."""
    said = explain(world_of(*objects, gates=gates), pod, ExplainOptions(changes=False))
    found: dict[str, list[str]] = {}
    reasons: list[Reason | ReasonCount] = [*said.pod_reasons, *said.reasons]
    for each in reasons:
        found.setdefault(each.text, []).extend(detail.text for detail in each.details)
    return found


__all__ = [
    "CONFIG",
    "GATES",
    "case_of",
    "details",
    "explained",
    "snapshot_of",
    "titles",
    "world_of",
]
