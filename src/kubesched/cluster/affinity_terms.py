"""Affinity and anti-affinity terms between pods, compiled.

A term selects pods (namespaces and a label selector) within a topology domain (a node label). A pod
is affected by its own terms and by the terms of other pods that select it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from functools import cached_property

from msgspec import Struct

from kubesched.api import labels
from kubesched.api.core import Affinity, PodAffinity, PodAffinityTerm
from kubesched.api.labels import Selector
from kubesched.errors import SelectorError


class AffinityTerm(Struct, frozen=True, cache_hash=True):
    """One term of a pod."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector

    def is_about(
        self, pod_labels: Mapping[str, str], *, namespace: str, namespace_labels: Mapping[str, str]
    ) -> bool:
        """Tell whether the term selects a pod."""
        return self.covers(namespace, namespace_labels=namespace_labels) and self.selector.matches(
            pod_labels
        )

    def covers(self, namespace: str, *, namespace_labels: Mapping[str, str]) -> bool:
        """Tell whether the term selects pods of a namespace."""
        return namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)


class WeightedTerm(Struct, frozen=True, cache_hash=True):
    """A preferred term; the weight of anti-affinity is negative."""

    term: AffinityTerm
    weight: int


class Role(Enum):
    """How a pod uses a term."""

    REQUIRED = auto()
    REQUIRED_ANTI = auto()
    PREFERRED = auto()


class CarriedTerm(Struct, frozen=True, cache_hash=True):
    """A term, its role, and the weight of a preference."""

    term: AffinityTerm
    role: Role
    weight: int = 0


class PodTerms(Struct, frozen=True, dict=True, weakref=True, cache_hash=True):
    """All terms of a pod."""

    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()
    #: why the terms are malformed; there are none then
    error: str = ""

    @cached_property
    def any(self) -> bool:
        """Whether the pod has any terms."""
        return bool(self.required or self.required_anti or self.preferred)

    @cached_property
    def carried(self) -> tuple[CarriedTerm, ...]:
        """All terms, each with its role."""
        return (
            *(CarriedTerm(term, Role.REQUIRED) for term in self.required),
            *(CarriedTerm(term, Role.REQUIRED_ANTI) for term in self.required_anti),
            *(CarriedTerm(each.term, Role.PREFERRED, each.weight) for each in self.preferred),
        )


NO_TERMS = PodTerms()


def compile_terms(affinity: Affinity | None, namespace: str) -> PodTerms:
    """Compile the terms of a pod in a namespace."""
    if affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity):
        return NO_TERMS
    try:
        return _compile_affinity(affinity, namespace)
    except SelectorError as malformed:
        return PodTerms(error=str(malformed))


def _compile_affinity(affinity: Affinity, namespace: str) -> PodTerms:
    near, away = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
    return PodTerms(
        required=_compile_all(near.required_during_scheduling_ignored_during_execution, namespace),
        required_anti=_compile_all(
            away.required_during_scheduling_ignored_during_execution, namespace
        ),
        preferred=(
            *_compile_weighted(near, namespace, sign=1),
            *_compile_weighted(away, namespace, sign=-1),
        ),
    )


def _compile_all(terms: Iterable[PodAffinityTerm], namespace: str) -> tuple[AffinityTerm, ...]:
    return tuple(_compile(term, namespace) for term in terms)


def _compile_weighted(
    affinity: PodAffinity, namespace: str, *, sign: int
) -> Iterable[WeightedTerm]:
    for each in affinity.preferred_during_scheduling_ignored_during_execution:
        yield WeightedTerm(_compile(each.pod_affinity_term, namespace), sign * each.weight)


def _compile(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    own_namespace_only = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        topology_key=term.topology_key,
        selector=labels.from_label_selector(term.label_selector),
        namespaces=frozenset((namespace,) if own_namespace_only else term.namespaces),
        namespace_selector=labels.from_label_selector(term.namespace_selector),
    )
