"""What a source tells: the short answers, straight from its state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, TypeVar

from kubesched import __version__
from kubesched.api import names
from kubesched.api.core import Pod, Taint
from kubesched.cluster.node_order import zone_of
from kubesched.cluster.pod_info import PodInfo
from kubesched.explain.amounts import quantity
from kubesched.web.columns import is_ready
from kubesched.web.report import (
    Amounts,
    FoundPods,
    NodeTold,
    Overview,
    PodOnNode,
    QueueTold,
    ReasonTold,
)
from kubesched.web.source import Source
from kubesched.web.state import State, Waiting

T = TypeVar("T")

#: Takes a millisecond or two; then everybody else gets a turn.
_PODS_A_TURN: Final = 2000


def overview(source: Source, state: State) -> Overview:
    """Tell everything at a glance."""
    return Overview(
        source=source.kind,
        title=source.title,
        version=__version__,
        scheduler_names=source.scheduler_names,
        time=source.time(state),
        nodes=state.node_count,
        pods=state.counts(),
        rate=source.rate(state),
        latency=source.latency(state),
        resources=state.columns.resources,
        recording=source.recording(state),
        stale=source.stale(),
        notes=(*source.notes(), *state.notes),
    )


def queue(state: State, *, limit: int) -> QueueTold:
    """Tell who waits, and for what."""
    return _queue(state, state.counts().waiting, islice(state.waiting(), limit))


async def queue_search(state: State, search: str, *, limit: int) -> QueueTold:
    """Tell the same of those whose namespace/name holds a text."""
    everybody = list(state.waiting())
    matching = await _matching(everybody, lambda each: each.pod, search)
    return _queue(state, len(matching), islice(matching, limit))


def _queue(state: State, total: int, shown: Iterable[Waiting]) -> QueueTold:
    reasons = sorted(state.reasons().items(), key=lambda each: (-each[1], each[0]))
    return QueueTold(
        total=total,
        pods=tuple(each.tell() for each in shown),
        reasons=tuple(ReasonTold(plugin, pods) for plugin, pods in reasons),
    )


async def pods(state: State, search: str, *, limit: int) -> FoundPods:
    """Find pods whose namespace/name holds a text."""
    found = await _matching(list(state.pods()), lambda each: each, search, most=limit)
    return FoundPods(tuple(map(state.found, found)))


async def _matching(
    everything: list[T], pod_of: Callable[[T], Pod], search: str, *, most: int | None = None
) -> list[T]:
    """Search a lot; everybody else gets a turn in between."""
    wanted = search.strip().lower()
    found: list[T] = []
    for number, each in enumerate(everything, start=1):
        meta = pod_of(each).metadata
        if wanted in f"{meta.namespace}/{meta.name}":
            found.append(each)
            if len(found) == most:
                break
        if number % _PODS_A_TURN == 0:
            await asyncio.sleep(0)
    return found


def node(state: State, name: str) -> NodeTold | None:
    """Tell everything about a node; None if there is none of that name."""
    cluster = state.with_node(name)
    row = None if cluster is None else cluster.table.row_of(name)
    if cluster is None or row is None:
        return None
    table = cluster.table
    told = table.node_at(row)
    resources = {
        each: Amounts(
            quantity(each, int(table.allocatable[number, row])),
            quantity(each, int(table.requested[number, row])),
        )
        for number, each in enumerate(table.resources.names)
        if table.allocatable[number, row] or table.requested[number, row]
    }
    resources[names.PODS] = Amounts(str(table.allowed_pods[row]), str(table.pod_count[row]))
    return NodeTold(
        name=name,
        zone=zone_of(told)[1],
        labels=dict(sorted((told.metadata.labels or {}).items())),
        taints=tuple(map(_taint, told.spec.taints)),
        unschedulable=told.spec.unschedulable,
        ready=is_ready(told),
        resources=resources,
        pods=tuple(map(_pod_on_node, table.pods[row].values())),
    )


def _pod_on_node(pod: PodInfo) -> PodOnNode:
    return PodOnNode(
        namespace=pod.pod.metadata.namespace,
        name=pod.pod.metadata.name,
        priority=pod.priority,
        requests={
            name: quantity(name, amount) for name, amount in pod.requests.amounts.items() if amount
        },
    )


def _taint(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
