"""Pending pods of fifty applications in ten zones, and single pods on an idle cluster.

Meant for ``--precreate``: all pods exist before the scheduler starts.
"""

from __future__ import annotations

from kubesched.bench import objects
from kubesched.bench.families import Numbers, Operations
from kubesched.bench.objects import HOSTNAME, ZONE, same
from kubesched.bench.operations import CreateNodes, CreatePods, JsonObject, LabelNodes, Template

APPS = 50
_TEN_ZONES = LabelNodes(key=ZONE, values=tuple(f"zone-{number}" for number in range(10)))


def _waiting(numbers: Numbers, template: Template) -> Operations:
    return (
        CreateNodes(count=numbers["nodes"], template=objects.base_node, preparation=_TEN_ZONES),
        CreatePods(count=numbers["pods"], template=template, collect_metrics=True),
    )


def _app(index: int) -> dict[str, str]:
    return {"app": f"app-{index % APPS}"}


def basic(numbers: Numbers) -> Operations:
    """Pods all alike."""
    return _waiting(numbers, objects.base_pod)


def own_sizes(numbers: Numbers) -> Operations:
    """Every pod its own request sizes."""

    def template(index: int, _count: int) -> JsonObject:
        return objects.pod(cpu=f"{100 + index % 400}m", memory=f"{100 + index}Mi")

    return _waiting(numbers, template)


def node_affinity(numbers: Numbers) -> Operations:
    """Required affinity to the nodes of two zones."""
    affinity = objects.node_affinity(key=ZONE, values=["zone-1", "zone-2"])
    return _waiting(numbers, same(objects.pod(affinity=affinity)))


def hard_spread(numbers: Numbers) -> Operations:
    """Each application evenly over the zones."""
    return _spread(numbers, hard=True)


def soft_spread(numbers: Numbers) -> Operations:
    """Each application rather evenly over the zones."""
    return _spread(numbers, hard=False)


def _spread(numbers: Numbers, *, hard: bool) -> Operations:
    def template(index: int, _count: int) -> JsonObject:
        labels = _app(index)
        constraint = objects.spread(labels, hard=hard)
        return objects.pod(labels=labels, topologySpreadConstraints=[constraint])

    return _waiting(numbers, template)


def zone_affinity(numbers: Numbers) -> Operations:
    """Each application in one zone."""
    return _affine(numbers, topology=ZONE)


def host_anti_affinity(numbers: Numbers) -> Operations:
    """Each application at most once on a node."""
    return _affine(numbers, topology=HOSTNAME, anti=True)


def preferred_affinity(numbers: Numbers) -> Operations:
    """Each application rather in one zone."""
    return _affine(numbers, topology=ZONE, preferred=True)


def _affine(
    numbers: Numbers, *, topology: str, anti: bool = False, preferred: bool = False
) -> Operations:
    def template(index: int, _count: int) -> JsonObject:
        labels = _app(index)
        affinity = objects.pod_affinity(labels, topology=topology, anti=anti, preferred=preferred)
        return objects.pod(labels=labels, affinity=affinity)

    return _waiting(numbers, template)


def single_pod(numbers: Numbers) -> Operations:
    """One pod after the other on an idle cluster: how long until it is bound?"""
    return (
        CreateNodes(count=numbers["nodes"], template=objects.base_node, preparation=_TEN_ZONES),
        CreatePods(
            count=numbers["pods"],
            template=objects.base_pod,
            collect_metrics=True,
            one_by_one=True,
        ),
    )
