"""How many more pods like a given one fit.

Where only row-local filters apply, all nodes are evaluated at once: a binary search with the
filters themselves finds how many copies each node takes. For a pod with one hard spread constraint,
these are summed by domain, and the allowed skew decides the rest. Otherwise copies are placed one
by one, until none fits. Claims to devices are made of their templates, one for each copy; a claim
that the pod names is shared by all copies.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from msgspec.structs import replace

from kubesched.api.claim_templates import without_own_claims
from kubesched.api.core import Pod
from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.node_order import zone_of
from kubesched.cluster.node_rows import SupposedRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PODS, RowFilter
from kubesched.framework.runtime import Framework
from kubesched.plugins.node_resources_fit import NodeResourcesFit
from kubesched.plugins.pod_topology_spread import HardDomains, PodTopologySpread
from kubesched.simulate.placing import SequentialPlacer
from kubesched.simulate.report import Headroom
from kubesched.snapshot.world import World

DEFAULT_LIMIT = 10_000


def headroom(world: World, pod: Pod, *, limit: int = DEFAULT_LIMIT, seed: int = 0) -> Headroom:
    """Count how many more pods like this one fit; `limit` applies when placing one by one."""
    placer = SequentialPlacer(world, seed=seed)
    framework = world.engine.framework_of(pod.spec.scheduler_name)
    copy = _copy(pod, 0)
    try:
        counted = _counted(world, framework, world.compile(copy))
        spread = _spread(world, framework, world.compile(copy)) if counted is None else None
    except AttemptError as failed:
        return Headroom(pod=_name(pod), pods=0, message=failed.status.message)
    if counted is not None:
        return _report(world, pod, counted, message="")
    if spread is not None:
        return _report(world, pod, spread[0], message=spread[1])
    try:
        return _placed(world, placer, pod, limit)
    finally:
        placer.take_all_back()


def _copy(pod: Pod, number: int) -> Pod:
    """Return a copy of a pod, without a nomination, in no group, with claims still to be made."""
    name = f"{pod.metadata.name}-{number}"
    copy = replace(
        pod,
        metadata=replace(pod.metadata, name=name, uid=f"headroom/{pod.metadata.uid}/{number}"),
        spec=replace(pod.spec, node_name="", scheduling_group=None),
        status=replace(pod.status, nominated_node_name=""),
    )
    return without_own_claims(copy)


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _report(
    world: World, pod: Pod, counts: dict[str, int], *, message: str, at_least: bool = False
) -> Headroom:
    by_zone: Counter[str] = Counter()
    for node_name, count in counts.items():
        row = world.table.row_of(node_name)
        if row is not None:
            by_zone["/".join(filter(None, zone_of(world.table.node_at(row))))] += count
    return Headroom(
        pod=_name(pod),
        pods=sum(counts.values()),
        at_least=at_least,
        nodes=len(counts),
        by_zone=dict(sorted(by_zone.items())),
        by_node=counts,
        message=message,
    )


# --- all nodes at once ------------------------------------------------------------------------


def _counted(world: World, framework: Framework, info: PodInfo) -> dict[str, int] | None:
    """Return how many copies each node takes, None if nodes depend on each other."""
    evaluator, state = framework.evaluator, CycleState()
    found = evaluator.look(state, info)
    if isinstance(found, Diagnosis):
        return None  # the placer reports why
    if not _each_for_itself(world, framework, info, state):
        return None
    rows = found.rows()
    counts = _most_copies(world, framework, info, rows)
    return {
        world.table.name_at(row): count
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True)
    }


def _each_for_itself(world: World, framework: Framework, info: PodInfo, state: CycleState) -> bool:
    """Tell whether a copy on a node matters only to that node, by its requests."""
    return _takes_resources_only(world, framework, info, state) and (
        framework.evaluator.filters.is_row_local(state)
    )


def _takes_resources_only(
    world: World, framework: Framework, info: PodInfo, state: CycleState
) -> bool:
    """Tell whether a node's filters depend only on the requests of copies."""
    reading = {
        plugin.name
        for plugin in framework.plugins.filter
        if isinstance(plugin, RowFilter)
        and PODS in plugin.reads
        and plugin.name not in state.skip_filter
    }
    own_only = reading <= {NodeResourcesFit.name}
    return own_only and not info.signature.host_ports and not len(world.cluster.nominator)


def _most_copies(world: World, framework: Framework, info: PodInfo, rows: IndexArray) -> Int64Array:
    """Return how many copies each row takes, by its row-local filters."""
    table, plan = world.table, framework.evaluator.plans.plan(info.signature.row_signature)
    info.requests.resolve(table.resources)
    one = np.zeros((len(table.resources), 1), dtype=np.int64)
    one[info.requests.numbers, 0] = info.requests.vector

    def takes_one_more(copies: Int64Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        nodes = SupposedRows(
            table,
            rows,
            requested=table.requested[:, rows] + one * copies,
            pod_count=table.pod_count[rows] + copies,
        )
        refused = plan.rejections_of(nodes)
        passing: np.ndarray[tuple[int], np.dtype[np.bool_]] = refused == 0
        return passing

    # A node takes one more beside `low` copies, and none beside `high`.
    low = np.where(takes_one_more(np.zeros(len(rows), dtype=np.int64)), 0, -1)
    high = np.maximum(table.allowed_pods[rows] - table.pod_count[rows], low + 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        more = takes_one_more(middle)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return low + 1


# --- spread over domains ----------------------------------------------------------------------


def _spread(world: World, framework: Framework, info: PodInfo) -> tuple[dict[str, int], str] | None:
    """Return how many copies nodes take and the limit, for one hard spread constraint.

    None if there is another one, or any other constraint across nodes.
    """
    state = CycleState()
    if isinstance(framework.evaluator.look(state, info), Diagnosis):
        return None  # the placer reports why
    wide = [
        plugin
        for plugin in framework.plugins.filter
        if not isinstance(plugin, RowFilter) and plugin.name not in state.skip_filter
    ]
    if len(wide) != 1 or not isinstance(wide[0], PodTopologySpread):
        return None
    rows = world.table.order.rows()
    domains = list(wide[0].hard_domains(state, info))
    if len(domains) != 1 or not _takes_resources_only(world, framework, info, state):
        return None
    most = _most_copies(world, framework, info, rows)
    [found] = domains
    of_nodes = found.everywhere.ids[rows]
    most[of_nodes == 0] = 0
    room = np.bincount(of_nodes, weights=most, minlength=len(found.counts)).astype(np.int64)
    allowed, message = _allowed(found, room)
    counts: dict[str, int] = {}
    for domain in np.flatnonzero(allowed).tolist():
        inside = np.flatnonzero((of_nodes == domain) & (most > 0))
        for place, count in zip(inside, _evenly(most[inside], int(allowed[domain])), strict=True):
            if count:
                counts[world.table.name_at(int(rows[place]))] = int(count)
    return counts, message


def _allowed(found: HardDomains, room: Int64Array) -> tuple[Int64Array, str]:
    """Return how many copies each domain takes, and the limit.

    The emptiest domain can always take one, so all rise together until one of them is full; the
    others may then exceed it by the skew. The order does not matter.
    """
    constraint, counts = found.constraint, found.counts
    if not constraint.counts_itself:
        smallest = found.smallest(counts)
        return np.where(counts - smallest <= constraint.max_skew, room, 0), ""
    lowest = found.smallest(counts + room)
    allowed: Int64Array = np.clip(lowest + constraint.max_skew - counts, 0, room)
    if (allowed == room).all():
        return allowed, ""
    return allowed, (
        f"a domain of {constraint.topology_key} is full, and no other may have more than "
        f"{constraint.max_skew} pods more than it"
    )


def _evenly(most: Int64Array, count: int) -> Int64Array:
    """Distribute copies evenly among nodes, each with a maximum."""
    low, high = 0, int(most.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(most, middle).sum() <= count else (low, middle - 1)
    shares: Int64Array = np.minimum(most, low)
    left = count - int(shares.sum())
    shares[np.flatnonzero(most > low)[:left]] += 1
    return shares


# --- one by one -------------------------------------------------------------------------------


def _placed(world: World, placer: SequentialPlacer, pod: Pod, limit: int) -> Headroom:
    counts: Counter[str] = Counter()
    for number in range(limit):
        outcome = placer.place(_copy(pod, number))
        if not outcome.node:
            return _report(world, pod, dict(counts), message=outcome.message)
        counts[outcome.node] += 1
    return _report(world, pod, dict(counts), message="", at_least=True)
