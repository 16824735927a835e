"""Several changes at once, for pods that no single change would place.

For a node and a pod: find the first rejection, change what causes it, and repeat until the pod
fits. Of nodes with the same rejections, the one with the lowest cost is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
from msgspec import Struct

from kubesched.api.core import Node, Pod
from kubesched.api.labels import node_selector_terms
from kubesched.explain import requests, wishes
from kubesched.explain.case import Case, Proposal
from kubesched.explain.surroundings import COST_NODE_BACK, back_in_use, unwell_because
from kubesched.framework.status import Status
from kubesched.plugins.inter_pod_affinity import NOT_AWAY, NOT_NEAR, InterPodAffinity
from kubesched.plugins.node_affinity import NodeAffinityPlugin
from kubesched.plugins.node_ports import NodePorts
from kubesched.plugins.node_resources_fit import NodeResourcesFit
from kubesched.plugins.node_unschedulable import NodeUnschedulable
from kubesched.plugins.pod_topology_spread import PodTopologySpread
from kubesched.plugins.taint_toleration import TaintToleration

_MAX_STEPS = 8
_MAX_GROUPS = 12


class _Step(Struct, frozen=True):
    title: str
    cost: float
    pod: Pod
    node: Node | None = None


def proposals(case: Case) -> Iterator[Proposal]:
    """Propose several changes together, for nodes with several rejections."""
    reasons = case.reasons
    masks, how_many = np.unique(reasons.masks[reasons.valid], return_counts=True)
    groups = [
        (mask.bit_count(), -count, mask)
        for mask, count in zip(masks.tolist(), how_many.tolist(), strict=True)
        if mask.bit_count() > 1
    ]
    for _, _, mask in sorted(groups)[:_MAX_GROUPS]:
        rows = np.flatnonzero(reasons.valid & (reasons.masks == mask))
        found = _on_row(case, _easiest(case, rows))
        if found is not None:
            yield found


def _easiest(case: Case, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> int:
    """Return the row with the smallest shortfall of the pod's requests."""
    answer = case.reasons.answer_of(NodeResourcesFit.name)
    if answer is None or answer.verdict.answers is None:
        return int(rows[0])
    worst = np.zeros(len(rows))
    for number, status in enumerate(answer.verdict.statuses, start=1):
        here = answer.verdict.answers[rows] == number
        lacking = requests.lacking(status)
        worst[here] = requests.shortfall(case, rows[here], lacking) if lacking else np.inf
    return int(rows[int(np.argmin(worst))])


def _on_row(case: Case, row: int) -> Proposal | None:
    pod, node = case.pod, None
    titles: list[str] = []
    cost = 0.0
    for _ in range(_MAX_STEPS):
        status = _rejection(case, pod, row, node)
        if status is None and node is not None and len(case.feasible(pod)):
            return None  # what is changed of the pod places it elsewhere: the node need not change
        if status is None:
            return Proposal(
                kind="several",
                title=", and ".join(titles),
                cost=cost,
                steps=len(titles),
                pod=pod,
                nodes=() if node is None else (node,),
            )
        step = _step(case, pod, row, status)
        if step is None or step.title in titles:
            return None
        pod, node = step.pod, step.node or node
        titles.append(step.title)
        cost += step.cost
    return None


def _rejection(case: Case, pod: Pod, row: int, node: Node | None) -> Status | None:
    with case.world.cluster.transaction() as tx:
        if node is not None:
            tx.put_node(node)
        return case.first_rejection(pod, row)


def _step(case: Case, pod: Pod, row: int, status: Status) -> _Step | None:
    change = _CHANGES.get(status.plugin)
    return None if change is None else change(case, pod, row, status)


def _even(case: Case, pod: Pod, row: int, status: Status) -> _Step:  # noqa: ARG001 (same signature as the others)
    title = "drop the spread constraints"
    return _Step(title, wishes.COST_SPREAD, wishes.without_spread(pod))


def _no_ports(case: Case, pod: Pod, row: int, status: Status) -> _Step | None:  # noqa: ARG001
    if pod.spec.host_network:
        return None
    return _Step("use no host ports", wishes.COST_PORTS, wishes.without_ports(pod))


def _smaller(case: Case, pod: Pod, row: int, status: Status) -> _Step | None:
    resources = requests.lacking(status)
    if not resources:
        return None
    targets = requests.targets_on(case, row, resources)
    changed = requests.with_requests(pod, targets)
    if changed is None:
        return None
    here = np.array([row], dtype=np.intp)
    cost = float(requests.shortfall(case, here, resources)[0])
    return _Step(requests.title(case, targets), cost, changed)


def _past_taints(case: Case, pod: Pod, row: int, status: Status) -> _Step:  # noqa: ARG001
    node = case.table.node_at(row)
    taints = wishes.untolerated(case, pod, row)
    conditions = [each for each in taints if each.key.startswith(wishes.CONDITION_TAINTS)]
    if node.spec.unschedulable or conditions:
        name = node.metadata.name
        verb = "bring back" if unwell_because(node) else "uncordon"
        return _Step(f"{verb} node {name}", COST_NODE_BACK, pod, back_in_use(node))
    cost = wishes.COST_TOLERATION * len(taints)
    return _Step(wishes.tolerating_title(taints), cost, wishes.tolerating(pod, taints))


def _any_node(case: Case, pod: Pod, row: int, status: Status) -> _Step | None:  # noqa: ARG001
    """Drop the parts of the node selector that do not match, and the required affinity likewise."""
    node = case.table.node_at(row)
    labels = node.metadata.labels or {}
    selector = pod.spec.node_selector or {}
    kept = {key: text for key, text in selector.items() if labels.get(key) == text}
    dropped = [f"{key}={text}" for key, text in selector.items() if key not in kept]
    changed = wishes.with_node_selector(pod, kept)
    titles = [f"drop node selector {', '.join(dropped)}"] if dropped else []
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    if required and not any(
        term.matches(labels, {"metadata.name": node.metadata.name})
        for term in node_selector_terms(required)
    ):
        changed = wishes.with_required(changed, ())
        titles.append("drop the required node affinity")
    if not titles:
        return None
    return _Step(" and ".join(titles), wishes.COST_REQUIREMENT * len(titles), changed)


def _any_company(case: Case, pod: Pod, row: int, status: Status) -> _Step | None:  # noqa: ARG001
    for said, what in ((NOT_NEAR, "affinity"), (NOT_AWAY, "anti-affinity")):
        if status.reasons == said.reasons:
            title = f"drop the required pod {what}"
            return _Step(title, wishes.COST_TERM, wishes.without_terms(pod, what))
    return None


#: plugin → change to the pod, or to the row's node, that makes it pass
_CHANGES: Final[Mapping[str, Callable[[Case, Pod, int, Status], _Step | None]]] = {
    NodeResourcesFit.name: _smaller,
    TaintToleration.name: _past_taints,
    NodeUnschedulable.name: _past_taints,
    NodeAffinityPlugin.name: _any_node,
    PodTopologySpread.name: _even,
    InterPodAffinity.name: _any_company,
    NodePorts.name: _no_ports,
}

#: Plugins whose rejections can be resolved together with others.
PLUGINS: Final = tuple(_CHANGES)
