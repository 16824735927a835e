"""Queueing hints of InterPodAffinity.

An added pod may satisfy affinity; a deleted or relabelled pod may end a violation of anti-affinity.
Whether a term selects the changed pod is evaluated once per term, not once per parked pod.

As in kube-scheduler, a pod satisfies affinity only if *all* terms select it, while one
anti-affinity term suffices for a violation. Unlike there, namespace selectors are resolved:
kube-scheduler's hints compare them with no labels, and miss pods in namespaces that only a selector
names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

from msgspec import Struct

from kubesched.api.core import Node, Pod
from kubesched.cluster.affinity_terms import NO_TERMS, AffinityTerm, compile_terms
from kubesched.cluster.label_sets import LabelSet
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.plugins.changes import Prepared, has_place
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration

#: Returns the namespaces that a term selects; None means all.
NamespacesOf = Callable[[AffinityTerm], frozenset[str] | None]


class AffinityPodChange:
    """A change of another pod, and which terms select it; results are cached by term."""

    def __init__(self, change: Change[Pod], namespaces_of: NamespacesOf) -> None:
        versions = [each for each in (change.old, change.new) if each is not None]
        self.had_place = all(map(has_place, versions))
        self._old, self._new = change.old, change.new
        self._namespaces_of = namespaces_of
        #: term → whether it selected the pod before, and after
        self._answers: dict[AffinityTerm, tuple[bool, bool]] = {}
        #: the terms of a deleted pod, and whether its anti-affinity selected a label set
        self._terms_gone = NO_TERMS
        self._kept_away: dict[LabelSet, bool] = {}
        if change.old is not None and change.new is None:
            meta = change.old.metadata
            self._terms_gone = compile_terms(change.old.spec.affinity, meta.namespace)

    def came_near(self, terms: Sequence[AffinityTerm]) -> bool:
        """Return whether there are terms, and all of them select the pod only now."""
        answers = [self._answer(term) for term in terms]
        return (
            bool(answers)
            and all(now for _, now in answers)
            and not all(before for before, _ in answers)
        )

    def went_away(self, terms: Iterable[AffinityTerm]) -> bool:
        """Return whether one of some terms selected the pod, and none does now."""
        answers = [self._answer(term) for term in terms]
        return any(before for before, _ in answers) and not any(now for _, now in answers)

    def kept_away(self, labels: LabelSet) -> bool:
        """Return whether the pod was deleted and its anti-affinity selected these labels."""
        terms = self._terms_gone.required_anti
        if not terms:
            return bool(self._terms_gone.error)
        cached = self._kept_away.get(labels)
        if cached is None:
            cached = self._kept_away[labels] = any(
                term.selector.matches(labels.labels) and self._covers(term, labels.namespace)
                for term in terms
            )
        return cached

    def _answer(self, term: AffinityTerm) -> tuple[bool, bool]:
        cached = self._answers.get(term)
        if cached is None:
            cached = (self._is_about(term, self._old), self._is_about(term, self._new))
            self._answers[term] = cached
        return cached

    def _is_about(self, term: AffinityTerm, pod: Pod | None) -> bool:
        if pod is None or not term.selector.matches(pod.metadata.labels or {}):
            return False
        return self._covers(term, pod.metadata.namespace)

    def _covers(self, term: AffinityTerm, namespace: str) -> bool:
        if namespace in term.namespaces:
            return True
        if term.namespace_selector.nothing:
            return False
        namespaces = self._namespaces_of(term)
        return namespaces is None or namespace in namespaces


class TopologyKeys(Struct, frozen=True):
    """The topology keys of a pod's required terms."""

    near: tuple[str, ...]
    away: tuple[str, ...]
    #: whether the terms are malformed
    malformed: bool


class AffinityHints:
    """The hints of InterPodAffinity."""

    def __init__(self, namespaces_of: NamespacesOf) -> None:
        def prepare(change: Change[Pod]) -> AffinityPodChange:
            return AffinityPodChange(change, namespaces_of)

        self._prepared = Prepared(prepare)
        self._keys: WeakKeyDictionary[PodSignature, TopologyKeys] = WeakKeyDictionary()

    def registrations(self) -> list[Registration]:
        """Return the registrations."""
        pods = ClusterEvent(
            Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        )
        nodes = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return [
            Registration(pods, hint=self.after_pod_change),
            # Anti-affinity of other pods may not select the new labels.
            Registration(ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_LABEL)),
            Registration(nodes, signature_hint=self.after_node_change),
        ]

    def after_pod_change(self, pod: PodInfo, change: Change[Pod]) -> bool:
        """Return whether the change may satisfy affinity, or end a violation of anti-affinity."""
        other, terms = self._prepared(change), pod.terms
        if not other.had_place:
            return False
        if terms.error:
            return True
        return (
            other.came_near(terms.required)
            or other.went_away(terms.required_anti)
            or other.kept_away(pod.labels)
        )

    def after_node_change(self, signature: PodSignature, change: Change[Node]) -> bool:
        """Return whether a node entered or left a domain of the pod's own terms."""
        if change.new is None:
            return False
        keys = self._keys_of(signature)
        if keys.malformed:
            return True
        now = change.new.metadata.labels or {}
        if change.old is None:
            # A node in no domain violates no anti-affinity.
            return bool(keys.away) or any(key in now for key in keys.near)
        before = change.old.metadata.labels or {}
        return any(key in now and _moved(key, before, now) for key in keys.near) or any(
            key in before and _moved(key, before, now) for key in keys.away
        )

    def _keys_of(self, signature: PodSignature) -> TopologyKeys:
        keys = self._keys.get(signature)
        if keys is None:
            # The topology keys of terms do not depend on the namespace.
            terms = compile_terms(signature.spec.affinity, "")
            keys = self._keys[signature] = TopologyKeys(
                near=tuple({term.topology_key: None for term in terms.required}),
                away=tuple({term.topology_key: None for term in terms.required_anti}),
                malformed=bool(terms.error),
            )
        return keys


def _moved(key: str, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Return whether a node is in another domain than before, or in none, or was in none."""
    return before.get(key) != now.get(key)
