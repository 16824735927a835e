"""How many more of a pod fit.

Where only row-local filters have a say, every node is asked for itself, all of them at once: with
how many copies on it does it still take one more? A search by halves, with the filters themselves.
Otherwise copies are placed one by one, until there is no room for another.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.node_order import zone_of
from kubesched.cluster.node_rows import SupposedRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.evaluation import AttemptError
from kubesched.framework.plugin import RowFilter
from kubesched.framework.runtime import Framework
from kubesched.plugins.node_resources_fit import NodeResourcesFit
from kubesched.simulate.placing import Placer
from kubesched.simulate.report import Headroom
from kubesched.snapshot.world import World

DEFAULT_LIMIT = 10_000


def headroom(world: World, pod: Pod, *, limit: int = DEFAULT_LIMIT, seed: int = 0) -> Headroom:
    """Count how many more pods like this one fit; `limit` is for placing them one by one."""
    placer = Placer(world, seed=seed)
    framework = placer.framework_of(pod)
    copy = _copy(pod, 0)
    try:
        counted = _counted(world, framework, world.compile(copy))
    except AttemptError as failed:
        return Headroom(pod=_name(pod), pods=0, message=failed.status.message)
    if counted is not None:
        return _report(world, pod, counted, message="")
    try:
        return _placed(world, placer, pod, limit)
    finally:
        placer.take_all_back()


def _copy(pod: Pod, number: int) -> Pod:
    """Return a pod like another one, that nobody was promised anything for."""
    name = f"{pod.metadata.name}-{number}"
    return replace(
        pod,
        metadata=replace(pod.metadata, name=name, uid=f"headroom/{pod.metadata.uid}/{number}"),
        spec=replace(pod.spec, node_name=""),
        status=replace(pod.status, nominated_node_name=""),
    )


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
    """Return how many copies each node takes, None if nodes cannot be looked at one by one."""
    evaluator, state = framework.evaluator, CycleState()
    rows = evaluator.look_for_feasible(state, info)
    if isinstance(rows, Diagnosis):
        return None  # the placer says why
    if not _each_for_itself(world, framework, info, state):
        return None
    counts = _most_copies(world, framework, state, info, rows)
    return {
        world.table.name_at(row): count
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True)
    }


def _each_for_itself(world: World, framework: Framework, info: PodInfo, state: CycleState) -> bool:
    """Tell whether a copy on a node matters to that node alone, by what it takes of it."""
    reading = {
        plugin.name
        for plugin in framework.plugins.filter
        if isinstance(plugin, RowFilter)
        and plugin.reads_pods
        and plugin.name not in state.skip_filter
    }
    own_only = reading <= {NodeResourcesFit.name} and framework.evaluator.is_row_local(state)
    return own_only and not info.shape.host_ports and not len(world.cluster.nominator)


def _most_copies(
    world: World, framework: Framework, state: CycleState, info: PodInfo, rows: IndexArray
) -> Int64Array:
    table = world.table
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
        refused = framework.evaluator.row_local_rejections(state, info, nodes)
        passing: np.ndarray[tuple[int], np.dtype[np.bool_]] = refused == 0
        return passing

    # A node takes one more beside `low` copies, and none beside `high`.
    low = np.zeros(len(rows), dtype=np.int64)
    high = np.maximum(table.allowed_pods[rows] - table.pod_count[rows], 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        more = takes_one_more(middle)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return low + 1


# --- one by one -------------------------------------------------------------------------------


def _placed(world: World, placer: Placer, pod: Pod, limit: int) -> Headroom:
    counts: Counter[str] = Counter()
    for number in range(limit):
        outcome = placer.place(_copy(pod, number))
        if not outcome.node:
            return _report(world, pod, dict(counts), message=outcome.message)
        counts[outcome.node] += 1
    return _report(world, pod, dict(counts), message="", at_least=True)
