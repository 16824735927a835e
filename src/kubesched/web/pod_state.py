"""The pod itself: what it wants of nodes, and what it belongs to."""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.api.amounts import quantity
from kubesched.api.core import NodeSelectorTerm, Pod, PodAffinityTerm, Toleration
from kubesched.api.requests import pod_requests
from kubesched.web.conditions import workload_of
from kubesched.web.device_state import claims_of
from kubesched.web.group_state import group_of_pod
from kubesched.web.report import PodTold
from kubesched.web.state import PageState

#: Tolerations that every pod gets.
_USUAL = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


def pod_told(state: PageState, pod: Pod) -> PodTold:
    """Return a pod with its group and its claims."""
    meta, spec = pod.metadata, pod.spec
    return PodTold(
        namespace=meta.namespace,
        name=meta.name,
        node=state.found(pod).node,
        scheduler_name=spec.scheduler_name,
        priority=spec.priority or 0,
        created=meta.creation_timestamp or "",
        phase=pod.status.phase,
        workload=workload_of(pod),
        requests={
            name: quantity(name, amount) for name, amount in pod_requests(pod).items() if amount
        },
        labels=dict(sorted((meta.labels or {}).items())),
        demands=tuple(_demands(pod)),
        gates=tuple(each.name for each in spec.scheduling_gates),
        group=group_of_pod(state, pod),
        claims=claims_of(state, pod),
    )


def _demands(pod: Pod) -> Iterator[str]:
    """Describe what a pod demands of nodes and of other pods, one line each."""
    spec = pod.spec
    for key, value in sorted((spec.node_selector or {}).items()):
        yield f"nodes with {key}={value}"
    affinity = spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
        if required is not None:
            yield f"nodes with {' or '.join(map(_term, required.node_selector_terms))}"
    for each in spec.topology_spread_constraints:
        firm = "" if each.when_unsatisfiable == "DoNotSchedule" else " if possible"
        yield f"spread over {each.topology_key} with a skew of at most {each.max_skew}{firm}"
    if affinity is not None:
        near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
        for title, terms in (("near", near), ("apart from", apart)):
            if terms is not None:
                for term in terms.required_during_scheduling_ignored_during_execution:
                    yield f"{title} pods with {_selector(term)} in the same {term.topology_key}"
    for toleration in spec.tolerations:
        if toleration.key not in _USUAL:
            yield f"tolerates {_toleration(toleration)}"


def _term(term: NodeSelectorTerm) -> str:
    parts = [
        f"{each.key} {each.operator} {', '.join(each.values)}".strip()
        for each in (*term.match_expressions, *term.match_fields)
    ]
    return " and ".join(parts) or "nothing"


def _selector(term: PodAffinityTerm) -> str:
    selector = term.label_selector
    if selector is None:
        return "nothing"
    parts = [f"{key}={value}" for key, value in sorted((selector.match_labels or {}).items())]
    parts += [
        f"{each.key} {each.operator} {', '.join(each.values)}".strip()
        for each in selector.match_expressions
    ]
    return ", ".join(parts) or "any labels"


def _toleration(toleration: Toleration) -> str:
    value = f"={toleration.value}" if toleration.value else ""
    effect = f":{toleration.effect}" if toleration.effect else ""
    return f"{toleration.key or 'every taint'}{value}{effect}"
