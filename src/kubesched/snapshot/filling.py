"""A snapshot's objects put into a cluster's columns; pods that want a node are kept aside.

Snapshot ──> Cluster (columns)
    └──────> pods that want a node, pods that have one, what could not be read
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from msgspec import Struct, field

from kubesched.api import names
from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.errors import ObjectError
from kubesched.kinds import stores
from kubesched.snapshot.contents import Snapshot

#: namespace and name
PodKey = tuple[str, str]
T = TypeVar("T")


class Filled(Struct):
    """What is in a cluster now, as far as its columns do not say."""

    #: pods that want a node
    pending: dict[PodKey, Pod] = field(default_factory=dict)
    #: pods that have one
    placed: dict[PodKey, Pod] = field(default_factory=dict)
    #: what was left out, one line each
    notes: list[str] = field(default_factory=list)


def fill(cluster: Cluster, snapshot: Snapshot) -> Filled:
    """Put everything that decides where pods go into a cluster that is empty."""
    filled = Filled(notes=list(snapshot.notes))
    with _without_collecting():
        for node in snapshot.nodes:
            _try(filled, cluster.put_node, node, f"node {node.metadata.name}")
        for kind, store in stores(cluster):
            for obj in snapshot.objects[kind.name]:
                store.put(obj)
        for pod in snapshot.pods:
            what = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
            _try(filled, lambda each: _put_pod(cluster, filled, each), pod, what)
    return filled


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Spare the garbage collector a hundred thousand objects that come, of which none goes."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _put_pod(cluster: Cluster, filled: Filled, pod: Pod) -> None:
    if pod.status.phase in (names.PHASE_SUCCEEDED, names.PHASE_FAILED):
        return
    key = pod.metadata.namespace, pod.metadata.name
    if pod.spec.node_name:
        cluster.put_pod(pod)
        filled.placed[key] = pod
        return
    filled.pending[key] = pod
    if pod.status.nominated_node_name:
        info = cluster.compiler.pending(pod)
        cluster.nominator.nominate(info, pod.status.nominated_node_name)


def _try(filled: Filled, put: Callable[[T], object], obj: T, what: str) -> None:
    try:
        put(obj)
    except ObjectError as unreadable:
        filled.notes.append(f"{what} left out: {unreadable}")
