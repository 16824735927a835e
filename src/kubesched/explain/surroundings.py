"""Changes to the cluster instead of the pod: evictions, nodes back in service, a new node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.amounts import readable
from kubesched.api.core import Node, Pod
from kubesched.api.requests import node_allocatable
from kubesched.api.resource import ResourceSlice
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.pod_info import PodInfo
from kubesched.explain.case import Case, Proposal
from kubesched.explain.wishes import CONDITION_TAINTS
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.status import Code
from kubesched.plugins.node_unschedulable import NodeUnschedulable
from kubesched.plugins.taint_toleration import TaintToleration
from kubesched.plugins.verdicts import Candidate, choose
from kubesched.plugins.victims import VictimSearch
from kubesched.snapshot.world import World, is_bound_to_its_node

COST_NODE_BACK = 0.45
COST_EVICTION = 0.5
COST_VICTIM = 0.05
COST_OVERDRAWN = 0.5
COST_NEW_NODE = 1.0

#: Where pods on other nodes matter, nodes are tried one by one, up to this many.
_TRIED_ALONE = 48
_SHOWN_VICTIMS = 3
_MAX_SPARED = 32
_MAX_SHAPES = 64
_MAX_HELPING = 3
#: An invalid node name, so never taken: names in Kubernetes have no capitals.
NEW_NODE = "ONE-MORE-NODE"


# --- evictions --------------------------------------------------------------------------------


def evictions(case: Case) -> Iterator[Proposal]:
    """Propose what preemption does by itself, or the cheapest evictions of pods that it spares.

    None of a pod that would come back: one of higher priority, of the same controller, or of the
    node's own.
    """
    if case.preempted is not None:
        node, victims = case.preempted
        row = case.table.row_of(node)
        if row is not None:
            yield eviction(case, victims, row)
        return
    candidates = [
        each for each in _candidates(case) if not any(map(case.would_come_back, each.victims))
    ]
    if not candidates:
        return
    best = min(choose(candidates), key=lambda each: (len(each.victims), each.row))
    fewest = min(candidates, key=lambda each: (each.violations, len(each.victims), each.row))
    for candidate in dict.fromkeys((best, fewest)):
        yield eviction(case, _needed(case, candidate.victims), candidate.row)


def eviction(case: Case, victims: tuple[PodInfo, ...], row: int) -> Proposal:
    """Return the proposal to evict pods so that a node becomes feasible."""
    overdrawing = len(case.world.cluster.budgets.split(victims)[0])
    budgets = f", overdrawing disruption budgets {overdrawing} times" if overdrawing else ""
    return Proposal(
        kind="evict",
        title=f"evict {_listed(victims)} from {case.table.name_at(row)}{budgets}",
        cost=COST_EVICTION + COST_VICTIM * len(victims) + COST_OVERDRAWN * overdrawing,
        pod=case.pod,
        evict=victims,
    )


def _needed(case: Case, victims: tuple[PodInfo, ...]) -> tuple[PodInfo, ...]:
    """Return victims without those that may stay: fewer may do if the pod then fits elsewhere."""
    if len(victims) > _MAX_SPARED:
        return victims
    for victim in victims:
        rest = tuple(each for each in victims if each.uid != victim.uid)
        if case.fits_without(rest):
            victims = rest
    return victims


def _candidates(case: Case) -> list[Candidate]:
    evaluator, state = case.framework.evaluator, CycleState()
    # Those of the same priority are not preempted, but may be evicted by hand.
    foremost = replace(case.pod, spec=replace(case.pod.spec, priority=case.info.priority + 1))
    info = case.world.compile(foremost)
    try:
        found = evaluator.look(state, info)
        if not isinstance(found, Diagnosis) or found.pre_filter is not None:
            return []
        rows = found.rows_with(Code.UNSCHEDULABLE)
        if not evaluator.filters.is_row_local(state) or info.signature.host_ports:
            rows = _fewest_pods(case, rows)
        search = VictimSearch(case.world.cluster)
        return search.search(evaluator, state, info, rows, enough=max(len(rows), 1)).candidates
    except AttemptError:
        return []


def _fewest_pods(case: Case, rows: IndexArray) -> IndexArray:
    order = np.argsort(case.table.pod_count[rows], kind="stable")
    return rows[order[:_TRIED_ALONE]]


def _listed(victims: tuple[PodInfo, ...]) -> str:
    shown = [_with_priority(each) for each in victims[:_SHOWN_VICTIMS]]
    more = len(victims) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _with_priority(pod: PodInfo) -> str:
    return f"{pod.full_name} (priority {pod.priority})"


# --- nodes out of service ---------------------------------------------------------------------


def nodes_back(case: Case) -> Iterator[Proposal]:
    """Propose to uncordon nodes, and to repair unhealthy ones."""
    rows = case.reasons.rows_only_by(NodeUnschedulable.name, TaintToleration.name)
    cordoned, unwell = [], []
    for row in rows.tolist():
        node = case.table.node_at(row)
        if unwell_because(node):
            unwell.append(node)
        elif is_cordoned(node):
            cordoned.append(node)
    if cordoned:
        yield _back(case, "uncordon", cordoned)
    if unwell:
        yield _back(case, "bring back", unwell)


_FORBIDDING = (names.NO_SCHEDULE, names.NO_EXECUTE)


def unwell_because(node: Node) -> list[str]:
    """Return why a node is unhealthy, as far as that rejects pods."""
    return sorted(
        {
            each.key.removeprefix(CONDITION_TAINTS)
            for each in node.spec.taints
            if each.effect in _FORBIDDING
            and each.key.startswith(CONDITION_TAINTS)
            and each.key != names.TAINT_UNSCHEDULABLE
        }
    )


def is_cordoned(node: Node) -> bool:
    """Tell whether a node is cordoned, also if only the taint is left."""
    return node.spec.unschedulable or any(
        each.key == names.TAINT_UNSCHEDULABLE and each.effect in _FORBIDDING
        for each in node.spec.taints
    )


def _back(case: Case, verb: Literal["uncordon", "bring back"], nodes: list[Node]) -> Proposal:
    healthy = tuple(back_in_use(node) for node in nodes)
    name = nodes[0].metadata.name
    what = f"node {name}" if len(nodes) == 1 else f"any of {len(nodes)} nodes such as {name}"
    causes = sorted({cause for node in nodes for cause in unwell_because(node)})
    why = f" ({', '.join(causes)})" if causes else ""
    return Proposal(
        kind=verb, title=f"{verb} {what}{why}", cost=COST_NODE_BACK, pod=case.pod, nodes=healthy
    )


def back_in_use(node: Node) -> Node:
    """Return a node that is neither cordoned nor unhealthy."""
    taints = tuple(each for each in node.spec.taints if not each.key.startswith(CONDITION_TAINTS))
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


# --- a new node -------------------------------------------------------------------------------

ShapeKey = tuple[object, ...]
#: Node → the driver of each of its own devices.
OwnDevices = dict[str, tuple[str, ...]]


def _own_devices(world: World) -> OwnDevices:
    found: OwnDevices = {}
    for each in world.cluster.devices.slices:
        if each.spec.node_name:
            drivers = (each.spec.driver,) * len(each.spec.devices)
            found[each.spec.node_name] = (*found.get(each.spec.node_name, ()), *drivers)
    return found


def new_nodes(case: Case) -> Iterator[Proposal]:
    """Propose one more node like an existing one, with its DaemonSet pods."""
    devices = _own_devices(case.world)
    examples: dict[ShapeKey, Node] = {}
    counts: Counter[ShapeKey] = Counter()
    for node in case.table.nodes:
        if node is not None:
            key: ShapeKey = (shape_key(node), devices.get(node.metadata.name, ()))
            counts[key] += 1
            examples.setdefault(key, node)
    helping: set[str] = set()
    # The most common ones first.
    for key, count in counts.most_common(_MAX_SHAPES):
        example = examples[key]
        title = (
            f"one more node like {example.metadata.name} "
            f"({_described(example, devices)}; there are {count})"
        )
        proposal = _with_one_more(case, example, title)
        # Of nodes with the same description, one is enough.
        offer = _described(example, devices)
        if offer not in helping and len(case.outcome(proposal)):
            helping.add(offer)
            yield proposal
        if len(helping) == _MAX_HELPING:
            return


class NodeCopy(Struct, frozen=True):
    """A new node like another, with what comes with it."""

    node: Node
    #: pods of DaemonSets, and static pods
    daemons: tuple[Pod, ...]
    #: its own devices
    slices: tuple[ResourceSlice, ...]


def more_like(world: World, example: Node, name: str) -> NodeCopy:
    """Return a new node like another, in service and healthy."""
    daemons = tuple(
        replace(
            each.object_on(name),
            metadata=replace(each.pod.metadata, uid=f"{each.uid}/{name}"),
        )
        for each in world.pods_on(example.metadata.name)
        if is_bound_to_its_node(each.pod)
    )
    slices = tuple(slices_like(world.cluster.devices.slices, example.metadata.name, name))
    return NodeCopy(like(example, name), daemons, slices)


def _with_one_more(case: Case, example: Node, title: str) -> Proposal:
    made = more_like(case.world, example, NEW_NODE)
    return Proposal(
        kind="node",
        title=title,
        cost=COST_NEW_NODE,
        pod=case.pod,
        nodes=(made.node,),
        arriving=made.daemons,
        slices=made.slices,
    )


def slices_like(
    slices: Iterable[ResourceSlice], example: str, name: str
) -> Iterator[ResourceSlice]:
    """Yield copies of the slices of a node's own devices, for another node."""
    for each in slices:
        if each.spec.node_name == example:
            pool = each.spec.pool
            spec = replace(
                each.spec, node_name=name, pool=replace(pool, name=f"{pool.name}/{name}")
            )
            meta = replace(each.metadata, name=f"{each.metadata.name}-{name}", uid="")
            yield replace(each, metadata=meta, spec=spec)


def like(example: Node, name: str) -> Node:
    """Return a copy of a node with another name, in service and healthy."""
    labels = {
        key: name if text == example.metadata.name else text
        for key, text in (example.metadata.labels or {}).items()
    }
    meta = replace(example.metadata, name=name, uid=name, labels=labels)
    return replace(back_in_use(example), metadata=meta)


def shape_key(node: Node) -> ShapeKey:
    """Return what nodes have in common that are alike but for their names and devices."""
    name = node.metadata.name
    labels = frozenset(
        item
        for item in (node.metadata.labels or {}).items()
        if item[1] != name and item[0] != names.LABEL_HOSTNAME
    )
    # Most nodes have no taint to remove.
    taints = back_in_use(node).spec.taints if node.spec.taints else ()
    offered = frozenset((key, str(text)) for key, text in (node.status.allocatable or {}).items())
    return labels, offered, taints, node.status.declared_features


def described(world: World, node: Node) -> str:
    """Return what a node offers, its own devices included."""
    return _described(node, _own_devices(world))


def _described(node: Node, devices: OwnDevices) -> str:
    offered = node_allocatable(node)
    parts = [
        readable(resource, amount) + ("" if resource == names.MEMORY else f" {resource}")
        for resource, amount in offered.items()
        if amount and resource not in (names.PODS, names.EPHEMERAL_STORAGE)
    ]
    counts = Counter(devices.get(node.metadata.name, ()))
    parts += [f"{count} of {driver}" for driver, count in sorted(counts.items())]
    labels = node.metadata.labels or {}
    shown = ("node.kubernetes.io/instance-type", names.LABEL_ZONE)
    parts += [labels[key] for key in shown if key in labels]
    return ", ".join(parts)
