"""Relaxed constraints: the pod with less demands on nodes and other pods.

taints           tolerate those that reject it
node selector    another value, or none; a node affinity without one requirement
spread           a larger skew, or no constraint
pod affinity     without one term
host ports       none
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import (
    Affinity,
    Container,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from kubesched.explain.case import Case, Kind, Proposal
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.plugins.node_affinity import NodeAffinityPlugin
from kubesched.plugins.node_ports import NodePorts
from kubesched.plugins.pod_topology_spread import PodTopologySpread
from kubesched.plugins.taint_toleration import TaintToleration

#: Taints of unhealthy nodes. Tolerating them places the pod, but does not make it run.
CONDITION_TAINTS = "node.kubernetes.io/"
_FORBIDDING = (names.NO_SCHEDULE, names.NO_EXECUTE)
#: The largest skew that is tried.
_MAX_SKEW = 1 << 20

COST_TOLERATION = 0.1
COST_OTHER_VALUE = 0.2
COST_SKEW = 0.25
COST_REQUIREMENT = 0.3
COST_SPREAD = 0.3
COST_TERM = 0.4
COST_PORTS = 0.4


def proposals(case: Case) -> Iterator[Proposal]:
    """Propose to relax every constraint that rejects some node."""
    reasons = case.reasons
    if reasons.answer_of(TaintToleration.name) is not None:
        yield from _tolerations(case)
    if reasons.answer_of(NodeAffinityPlugin.name) is not None or reasons.of_pod:
        yield from _selectors(case)
        yield from _affinity_requirements(case)
    if reasons.answer_of(PodTopologySpread.name) is not None:
        yield from _spread(case)
    if reasons.answer_of(InterPodAffinity.name) is not None:
        yield from _terms(case)
    # With hostNetwork, every container port is a host port.
    if reasons.answer_of(NodePorts.name) is not None and not case.pod.spec.host_network:
        yield _proposal(without_ports(case.pod), "ports", "use no host ports", COST_PORTS)


def _proposal(pod: Pod, kind: Kind, title: str, cost: float) -> Proposal:
    return Proposal(kind=kind, title=title, cost=cost, pod=pod)


# --- taints -----------------------------------------------------------------------------------


def untolerated(case: Case, pod: Pod, row: int) -> tuple[Taint, ...]:
    """Return the taints of a row that the pod does not tolerate."""
    signature = case.world.compile(pod).signature
    taints = case.table.taints.at(row)
    return tuple(
        each for each in taints if each.effect in _FORBIDDING and not signature.tolerates(each)
    )


def _tolerations(case: Case) -> Iterator[Proposal]:
    seen: set[tuple[Taint, ...]] = set()
    asked: set[int] = set()
    for row in case.reasons.rows_only_by(TaintToleration.name).tolist():
        taint_id = case.table.taints.ids.item(row)
        if taint_id in asked:
            continue
        asked.add(taint_id)
        taints = untolerated(case, case.pod, row)
        if taints in seen or any(each.key.startswith(CONDITION_TAINTS) for each in taints):
            continue
        seen.add(taints)
        pod = tolerating(case.pod, taints)
        cost = COST_TOLERATION * len(taints)
        yield _proposal(pod, "tolerate", tolerating_title(taints), cost)


def tolerating(pod: Pod, taints: tuple[Taint, ...]) -> Pod:
    """Return a pod with additional tolerations."""
    added = tuple(
        Toleration(key=each.key, operator="Equal", value=each.value, effect=each.effect)
        if each.value
        else Toleration(key=each.key, operator="Exists", effect=each.effect)
        for each in taints
    )
    return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, *added)))


def tolerating_title(taints: tuple[Taint, ...]) -> str:
    """Describe the tolerated taints."""
    listed = ", ".join(map(str, taints))
    return f"tolerate taint{'s' if len(taints) > 1 else ''} {listed}"


# --- node selector and affinity ---------------------------------------------------------------


def _selectors(case: Case) -> Iterator[Proposal]:
    selector = case.pod.spec.node_selector or {}
    for key, value in selector.items():
        without = {each: text for each, text in selector.items() if each != key}
        pod = with_node_selector(case.pod, without)
        rows = case.feasible(pod)
        values = Counter(
            other
            for row in rows.tolist()
            if (other := (case.table.node_at(row).metadata.labels or {}).get(key)) is not None
        )
        for other, _ in values.most_common(3):
            changed = with_node_selector(case.pod, {**selector, key: other})
            title = f"node selector {key}={other} instead of {value}"
            yield _proposal(changed, "nodeSelector", title, COST_OTHER_VALUE)
        yield _proposal(pod, "nodeSelector", f"drop node selector {key}={value}", COST_REQUIREMENT)


def with_node_selector(pod: Pod, selector: dict[str, str]) -> Pod:
    """Return a pod with another node selector."""
    return replace(pod, spec=replace(pod.spec, node_selector=selector or None))


def _required(pod: Pod) -> tuple[NodeSelectorTerm, ...]:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return required.node_selector_terms if required else ()


def _affinity_requirements(case: Case) -> Iterator[Proposal]:
    terms = _required(case.pod)
    for number, term in enumerate(terms):
        for position, requirement in enumerate(term.match_expressions):
            kept = term.match_expressions[:position] + term.match_expressions[position + 1 :]
            if not kept and not term.match_fields and len(terms) > 1:
                continue  # only its alternatives would be left
            reduced = replace(term, match_expressions=kept)
            rest = (*terms[:number], reduced, *terms[number + 1 :])
            values = f" ({', '.join(requirement.values)})" if requirement.values else ""
            title = f"drop node affinity {requirement.key} {requirement.operator}{values}"
            pod = with_required(case.pod, rest if kept or term.match_fields else ())
            yield _proposal(pod, "nodeAffinity", title, COST_REQUIREMENT)
    if terms:
        pod = with_required(case.pod, ())
        title = "drop the required node affinity"
        yield _proposal(pod, "nodeAffinity", title, 2 * COST_REQUIREMENT)


def with_required(pod: Pod, terms: tuple[NodeSelectorTerm, ...]) -> Pod:
    """Return a pod with other required node affinity terms; without it for no terms."""
    affinity = pod.spec.affinity or Affinity()
    of_node = replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=terms)
        if terms
        else None,
    )
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=of_node)))


# --- other pods -------------------------------------------------------------------------------


def _spread(case: Case) -> Iterator[Proposal]:
    constraints = case.pod.spec.topology_spread_constraints
    for number, constraint in enumerate(constraints):
        if constraint.when_unsatisfiable != "DoNotSchedule":
            continue

        def with_skew(skew: int, at: int = number) -> Pod:
            changed = replace(constraints[at], max_skew=skew)
            return _with_constraints(case.pod, (*constraints[:at], changed, *constraints[at + 1 :]))

        skew = _least_skew(case, constraint.max_skew, with_skew)
        over = constraint.topology_key
        if skew is not None:
            title = f"spread over {over} with maxSkew {skew} instead of {constraint.max_skew}"
            yield _proposal(with_skew(skew), "spread", title, COST_SKEW)
        without = _with_constraints(case.pod, constraints[:number] + constraints[number + 1 :])
        title = f"drop the spread constraint over {over}"
        yield _proposal(without, "spread", title, COST_SPREAD)


def _least_skew(case: Case, skew: int, with_skew: Callable[[int], Pod]) -> int | None:
    """Return the smallest larger skew that places the pod: nodes only become feasible with skew."""
    low, high = skew, skew * 2
    while not len(case.feasible(with_skew(high))):
        low, high = high, high * 2
        if high > _MAX_SKEW:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if len(case.feasible(with_skew(middle))):
            high = middle
        else:
            low = middle
    return high


def _with_constraints(pod: Pod, constraints: tuple[TopologySpreadConstraint, ...]) -> Pod:
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=constraints))


def without_spread(pod: Pod) -> Pod:
    """Return a pod without its hard spread constraints."""
    kept = (
        each
        for each in pod.spec.topology_spread_constraints
        if each.when_unsatisfiable != "DoNotSchedule"
    )
    return _with_constraints(pod, tuple(kept))


def _terms(case: Case) -> Iterator[Proposal]:
    affinity = case.pod.spec.affinity or Affinity()
    kinds: tuple[tuple[str, Kind, PodAffinity | None], ...] = (
        ("affinity", "pod affinity", affinity.pod_affinity),
        ("anti-affinity", "pod anti-affinity", affinity.pod_anti_affinity),
    )
    for what, kind, of_pods in kinds:
        if of_pods is None:
            continue
        terms = of_pods.required_during_scheduling_ignored_during_execution
        for number, term in enumerate(terms):
            kept = terms[:number] + terms[number + 1 :]
            changed = replace(of_pods, required_during_scheduling_ignored_during_execution=kept)
            pod = _with_pod_affinity(case.pod, what, changed)
            title = f"drop the pod {what} term over {term.topology_key}"
            found = _proposal(pod, kind, title, COST_TERM)
            yield replace(found, siblings=_alike(case, what, changed))


def _alike(case: Case, what: str, changed: PodAffinity) -> tuple[Pod, ...]:
    """Return the siblings that lose the same term: their anti-affinity rejects the pod, too."""
    if what == "affinity":
        return ()
    affinity = case.pod.spec.affinity
    return tuple(
        _with_pod_affinity(each, what, changed)
        for each in case.made_anew()
        if each.spec.affinity == affinity
    )


def _with_pod_affinity(pod: Pod, what: str, of_pods: PodAffinity) -> Pod:
    affinity = pod.spec.affinity or Affinity()
    if what == "affinity":
        affinity = replace(affinity, pod_affinity=of_pods)
    else:
        affinity = replace(affinity, pod_anti_affinity=of_pods)
    return replace(pod, spec=replace(pod.spec, affinity=affinity))


def without_terms(pod: Pod, what: str) -> Pod:
    """Return a pod without its required ``affinity`` or ``anti-affinity`` to other pods."""
    affinity = pod.spec.affinity or Affinity()
    of_pods = affinity.pod_affinity if what == "affinity" else affinity.pod_anti_affinity
    none_left = replace(
        of_pods or PodAffinity(), required_during_scheduling_ignored_during_execution=()
    )
    return _with_pod_affinity(pod, what, none_left)


# --- ports ------------------------------------------------------------------------------------


def without_ports(pod: Pod) -> Pod:
    """Return a pod without host ports."""

    def free(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            replace(each, ports=tuple(replace(port, host_port=0) for port in each.ports))
            for each in containers
        )

    spec = pod.spec
    return replace(
        pod,
        spec=replace(
            spec, containers=free(spec.containers), init_containers=free(spec.init_containers)
        ),
    )
