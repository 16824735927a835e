"""Puts a snapshot's objects into a cluster; pending pods are returned.

Snapshot ──> Cluster (columns)
    └──────> pending pods, placed pods, notes about undecodable objects
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct, field

from kubesched import garbage
from kubesched.api import names
from kubesched.api.claim_templates import FindTemplate, among
from kubesched.api.core import Pod
from kubesched.api.resource import ResourceClaimTemplate
from kubesched.cluster.cluster import Cluster
from kubesched.errors import ObjectError
from kubesched.kinds import stores
from kubesched.snapshot.contents import Snapshot

#: namespace and name
PodKey = tuple[str, str]
T = TypeVar("T")


class Filled(Struct):
    """The contents of a cluster, beside its columns."""

    #: pending pods
    pending: dict[PodKey, Pod] = field(default_factory=dict)
    #: placed pods
    placed: dict[PodKey, Pod] = field(default_factory=dict)
    #: finds templates of claims
    find_template: FindTemplate = among(())
    claim_templates: Sequence[ResourceClaimTemplate] = ()
    #: notes about skipped objects, one line each
    notes: list[str] = field(default_factory=list)


def fill(cluster: Cluster, snapshot: Snapshot) -> Filled:
    """Put all objects that affect scheduling into an empty cluster."""
    find_template = among(snapshot.claim_templates)
    filled = Filled(
        find_template=find_template,
        claim_templates=snapshot.claim_templates,
        notes=list(snapshot.notes),
    )
    with garbage.paused():
        for node in snapshot.nodes:
            _try(filled, cluster.put_node, node, f"node {node.metadata.name}")
        for kind, store in stores(cluster):
            for obj in snapshot.objects[kind.name]:
                store.put(obj)
        for pod in snapshot.pods:
            what = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
            _try(filled, lambda each: _put_pod(cluster, filled, each), pod, what)
    return filled


def _put_pod(cluster: Cluster, filled: Filled, pod: Pod) -> None:
    if pod.status.phase in (names.PHASE_SUCCEEDED, names.PHASE_FAILED):
        return
    key = pod.metadata.namespace, pod.metadata.name
    if pod.spec.node_name:
        cluster.put_pod(pod)
        filled.placed[key] = pod
        return
    filled.pending[key] = pod
    if pod.spec.scheduling_group is None and not pod.status.nominated_node_name:
        return
    info = cluster.compiler.pending(pod)
    cluster.groups.put_pending(info)
    if pod.status.nominated_node_name:
        cluster.nominator.nominate(info, pod.status.nominated_node_name)


def _try(filled: Filled, put: Callable[[T], object], obj: T, what: str) -> None:
    try:
        put(obj)
    except ObjectError as unreadable:
        filled.notes.append(f"{what} left out: {unreadable}")
