"""Builds the short responses from a state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, TypeVar

from kubesched import __version__
from kubesched.api import names
from kubesched.api.amounts import quantity
from kubesched.api.core import Pod, Taint
from kubesched.cluster.node_order import zone_name
from kubesched.cluster.pod_info import PodInfo
from kubesched.web.columns import is_ready
from kubesched.web.device_state import devices_of
from kubesched.web.group_state import groups
from kubesched.web.report import (
    Amounts,
    FoundPods,
    NodeLabels,
    NodeTold,
    Overview,
    PodOnNode,
    QueueTold,
    ReasonTold,
)
from kubesched.web.source import Source
from kubesched.web.state import PageState, PendingEntry

T = TypeVar("T")

#: Takes a millisecond or two; then other tasks run.
_PODS_A_TURN: Final = 2000


def overview(source: Source, state: PageState) -> Overview:
    """Return the header of the page."""
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


def queue(state: PageState, *, limit: int) -> QueueTold:
    """Return the pending pods with reasons."""
    return _queue(state, state.counts().waiting, islice(state.waiting(), limit))


async def queue_search(state: PageState, search: str, *, limit: int) -> QueueTold:
    """Return the same for pods whose namespace/name contains a text."""
    pending = list(state.waiting())
    matching = await _matching(pending, lambda each: each.pod, search)
    return _queue(state, len(matching), islice(matching, limit))


def _queue(state: PageState, total: int, shown: Iterable[PendingEntry]) -> QueueTold:
    reasons = sorted(state.reasons().items(), key=lambda each: (-each[1], each[0]))
    return QueueTold(
        total=total,
        pods=tuple(each.tell() for each in shown),
        reasons=tuple(ReasonTold(plugin, pods) for plugin, pods in reasons),
        groups=groups(state),
    )


async def pods(state: PageState, search: str, *, limit: int) -> FoundPods:
    """Find pods whose namespace/name contains a text."""
    found = await _matching(list(state.pods()), lambda each: each, search, most=limit)
    return FoundPods(tuple(map(state.found, found)))


async def _matching(
    everything: list[T], pod_of: Callable[[T], Pod], search: str, *, most: int | None = None
) -> list[T]:
    """Filter a long list, yielding to other tasks in between."""
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


def node(state: PageState, name: str) -> NodeTold | None:
    """Return the details of a node; None if there is no such node."""
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
        zone=zone_name(told),
        labels=dict(sorted((told.metadata.labels or {}).items())),
        taints=tuple(map(_taint, told.spec.taints)),
        unschedulable=told.spec.unschedulable,
        ready=is_ready(told),
        resources=resources,
        pods=tuple(map(_pod_on_node, table.pods[row].values())),
        devices=devices_of(state, told),
    )


def node_labels(state: PageState, key: str) -> NodeLabels:
    """Return the labels that tell nodes apart, and the values of one of them."""
    values: dict[str, set[str]] = {}
    of_key: dict[str, str] = {}
    count = 0
    for each in state.nodes():
        count += 1
        labels = each.metadata.labels or {}
        for name, value in labels.items():
            values.setdefault(name, set()).add(value)
        if key in labels:
            of_key[each.metadata.name] = labels[key]
    # One value for all tells nothing, and one for each node is its name.
    useful = (name for name, found in values.items() if 1 < len(found) < max(count, 2))
    return NodeLabels(keys=tuple(sorted(useful)), key=key, values=of_key)


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
