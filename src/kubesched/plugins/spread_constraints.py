"""Topology spread constraints, compiled for a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kubesched.api import labels
from kubesched.api.core import TopologySpreadConstraint
from kubesched.api.labels import IN, Requirement, Selector
from kubesched.cluster.pod_counters import Selection

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"


class SpreadConstraint(Struct, frozen=True):
    """A compiled constraint: selector, topology key, maxSkew and policies."""

    max_skew: int
    topology_key: str
    #: whether the selector matches the pod itself
    counts_itself: bool
    min_domains: int
    honor_affinity: bool
    honor_taints: bool
    #: the existing pods that count; None if none do
    selection: Selection | None

    @property
    def honors(self) -> tuple[bool, bool]:
        """Whether eligibility depends on the pod's node affinity, and on its tolerations."""
        return self.honor_affinity, self.honor_taints


def keys_read(constraints: Iterable[TopologySpreadConstraint]) -> tuple[str, ...]:
    """Return the keys of the pod's labels that its compiled constraints depend on."""
    keys: dict[str, None] = {}
    for each in constraints:
        if each.label_selector is not None:
            keys |= dict.fromkeys(each.label_selector.match_labels or ())
            keys |= dict.fromkeys(one.key for one in each.label_selector.match_expressions)
        keys |= dict.fromkeys(each.match_label_keys)
    return tuple(keys)


def compile_constraints(
    constraints: Iterable[TopologySpreadConstraint],
    *,
    when_unsatisfiable: str,
    namespace: str,
    pod_labels: Mapping[str, str],
    match_label_keys: bool,
    selector: Selector | None = None,
) -> tuple[SpreadConstraint, ...]:
    """Compile hard or soft constraints; `selector` replaces their own, which defaults lack.

    Raises SelectorError if a selector is malformed.
    """
    result = []
    for each in constraints:
        if each.when_unsatisfiable != when_unsatisfiable:
            continue
        own = selector or _selector(each, pod_labels, match_label_keys=match_label_keys)
        # A selector without requirements counts no pods, yet does match the pod itself.
        counting = bool(own.requirements)
        result.append(
            SpreadConstraint(
                max_skew=each.max_skew,
                topology_key=each.topology_key,
                counts_itself=own.matches(pod_labels),
                min_domains=1 if each.min_domains is None else each.min_domains,
                honor_affinity=(each.node_affinity_policy or HONOR) == HONOR,
                honor_taints=each.node_taints_policy == HONOR,
                selection=Selection(own, frozenset((namespace,)), with_terminating=False)
                if counting
                else None,
            )
        )
    return tuple(result)


def _selector(
    constraint: TopologySpreadConstraint,
    pod_labels: Mapping[str, str],
    *,
    match_label_keys: bool,
) -> Selector:
    selector = labels.from_label_selector(constraint.label_selector)
    if not match_label_keys:
        return selector
    same = [
        Requirement(key, IN, (pod_labels[key],))
        for key in constraint.match_label_keys
        if key in pod_labels
    ]
    return selector.plus(*same)
