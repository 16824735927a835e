"""Dumps cache and queue to the log, and compares the cache with the API server.

An operator triggers it with a signal when something looks wrong. The cluster may change between the
two reads, so a reported difference may be only that. Scheduling goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

from kubesched import logs
from kubesched.api.core import Node, Pod
from kubesched.client.rest import ApiClient
from kubesched.cluster.cluster import Cluster
from kubesched.errors import ClientError
from kubesched.kinds import KINDS
from kubesched.queue.group_queue import GroupSchedulingQueue
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.engine import Engine

_log = logs.get_logger(__name__)

T = TypeVar("T", Node, Pod)

#: Formatted without a pause, which takes a few milliseconds; then other tasks run.
_NODES_A_TURN: Final = 50


async def dump_and_compare(engine: Engine, client: ApiClient) -> None:
    """Log cache and queue, and their differences from the API server."""
    _log.info("Dump of cached NodeInfo", nodes="\n\n".join(await _nodes(engine.cluster)))
    _log.info(
        "Dump of scheduling queue",
        summary=_summary(engine.queue),
        pods="".join(_line(pod.info.pod) for pod in engine.queue.pods()),
    )
    try:
        await _compare(engine, client)
    except ClientError as failed:
        _log.error("Cache comparer could not read the cluster", failed)


async def _compare(engine: Engine, client: ApiClient) -> None:
    nodes = await _listed(client, Node)
    pods = await _listed(client, Pod)
    table = engine.cluster.table
    known_nodes = {table.name_at(row) for row in table.order.rows().tolist()}
    _report("Nodes", {node.metadata.name for node in nodes}, known_nodes)
    in_flight = set(engine.queue.in_flight_uids)
    known_pods = {
        *(uid for of_row in table.pods for uid in of_row),
        *(pod.info.uid for pod in engine.queue.pods()),
        *in_flight,
    }
    # Pods of other schedulers are not cached until they have a node.
    ours = {
        pod.metadata.uid
        for pod in pods
        if pod.spec.node_name in known_nodes or (not pod.spec.node_name and engine.is_ours(pod))
    }
    _report("Pods", ours, known_pods)


def _report(what: str, actual: set[str], known: set[str]) -> None:
    missed, redundant = sorted(actual - known), sorted(known - actual)
    if missed or redundant:
        _log.info("Cache mismatch", **{f"missed{what}": missed, f"redundant{what}": redundant})
    else:
        _log.info("Cache matches the API server", kind=what.lower(), count=len(known))


async def _listed(client: ApiClient, kind: type[T]) -> list[T]:
    found: list[T] = []
    known = KINDS[kind.__name__]
    path, field_selector = known.path.collection(), known.field_selector
    async for page in client.list_pages(path, kind, field_selector=field_selector):
        if page.first:
            found.clear()
        found.extend(page.items)
    return found


async def _nodes(cluster: Cluster) -> list[str]:
    table = cluster.table
    texts = []
    for number, name in enumerate([table.name_at(row) for row in table.order.rows().tolist()]):
        if number % _NODES_A_TURN == 0:
            await asyncio.sleep(0)
        row = table.row_of(name)
        if row is not None:  # else it went while we were at others
            texts.append(_node(cluster, name, row))
    return texts


def _node(cluster: Cluster, name: str, row: int) -> str:
    table = cluster.table
    names, pods = table.resources.names, table.pods[row].values()
    nominated = cluster.nominator.pods_on(name)
    requested = dict(zip(names, table.requested[:, row].tolist(), strict=True))
    allocatable = dict(zip(names, table.allocatable[:, row].tolist(), strict=True))
    text = (
        f"Node name: {name}\nDeleted: false\nRequested Resources: {requested}\n"
        f"Allocatable Resources: {allocatable}\nScheduled Pods(number: {len(pods)}):\n"
    )
    text += "".join(_line(each.pod) for each in pods)
    if nominated:
        text += f"Nominated Pods(number: {len(nominated)}):\n"
        text += "".join(_line(each.pod) for each in nominated)
    return text


def _line(pod: Pod) -> str:
    meta, status = pod.metadata, pod.status
    return (
        f"name: {meta.name}, namespace: {meta.namespace}, uid: {meta.uid}, "
        f"phase: {status.phase}, nominated node: {status.nominated_node_name}\n"
    )


def _summary(queue: SchedulingQueue) -> str:
    parked = queue.unschedulable_count + queue.gated_count
    active, backoff = queue.active_count, queue.backoff_count
    text = f"activeQ:{active}; backoffQ:{backoff}; unschedulableEntities:{parked}"
    if isinstance(queue, GroupSchedulingQueue):
        text += f"; pendingPodGroupMemberPods:{queue.pending_count}"
        text += f"; incompletePodGroupPods:{queue.incomplete_count}"
    return text
