"""Pods, nodes and namespaces that change at random, while the cluster counts pods and terms."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from kubesched.api import labels, names
from kubesched.api.core import (
    Affinity,
    Namespace,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from kubesched.cluster.affinity_terms import compile_terms
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.label_sets import LabelSets
from kubesched.cluster.pod_counters import Selection
from tests.support.objects import node, pod

NODES = ("n1", "n2", "n3", "n4")
NAMESPACES = ("red", "blue")
APPS = ("web", "api", "db")
pod_labels = st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from(APPS), max_size=2)
selectors = st.builds(
    lambda app, operator: LabelSelector(
        match_expressions=(
            LabelSelectorRequirement(key="app", operator=operator, values=(app,))
            if operator in ("In", "NotIn")
            else LabelSelectorRequirement(key="app", operator=operator),
        )
    ),
    st.sampled_from(APPS),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
)
affinity_terms = st.builds(
    PodAffinityTerm,
    topology_key=st.sampled_from((names.LABEL_ZONE, "nobody-has-it")),
    label_selector=st.none() | selectors,
    namespaces=st.sampled_from([(), ("red",), ("red", "blue")]),
    namespace_selector=st.none() | st.just(LabelSelector(match_labels={"team": "a"})),
)
affinities = st.none() | st.builds(
    lambda near, away, liked: Affinity(
        pod_affinity=PodAffinity(
            required_during_scheduling_ignored_during_execution=tuple(near),
            preferred_during_scheduling_ignored_during_execution=tuple(
                WeightedPodAffinityTerm(weight=7, pod_affinity_term=each) for each in liked
            ),
        ),
        pod_anti_affinity=PodAffinity(
            required_during_scheduling_ignored_during_execution=tuple(away)
        ),
    ),
    st.lists(affinity_terms, max_size=1),
    st.lists(affinity_terms, max_size=2),
    st.lists(affinity_terms, max_size=1),
)


def make_pod(
    name: str, *, namespace: str, on: str, with_labels: dict[str, str], affinity: Affinity | None
) -> Pod:
    made = pod(name, namespace=namespace, node=on, labels=with_labels)
    return replace(made, spec=replace(made.spec, affinity=affinity))


class Counters(RuleBasedStateMachine):
    """Pods, nodes and namespaces come, go and change while somebody asks for counts."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, str] = {}
        #: namespace → its labels
        self.labelled: dict[str, dict[str, str]] = {}
        self.made = 0

    @rule(name=st.sampled_from(NODES), zone=st.sampled_from(("a", "b")))
    def put_node(self, name: str, zone: str) -> None:
        self.nodes[name] = zone
        self.cluster.put_node(node(name, zone=zone))

    @rule(name=st.sampled_from(NODES))
    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.cluster.remove_node(name)

    @rule(
        namespace=st.sampled_from(NAMESPACES),
        on=st.sampled_from(NODES),
        with_labels=pod_labels,
        affinity=affinities,
    )
    def add_pod(
        self, namespace: str, on: str, with_labels: dict[str, str], affinity: Affinity | None
    ) -> None:
        self.made += 1
        name = f"p{self.made}"
        made = make_pod(
            name, namespace=namespace, on=on, with_labels=with_labels, affinity=affinity
        )
        self.pods[name] = made
        self.cluster.put_pod(made)

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), with_labels=pod_labels, deleting=st.booleans())
    def change_pod(self, data: st.DataObject, with_labels: dict[str, str], deleting: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.pods)))
        old = self.pods[name]
        stamp = "2026-01-01T00:00:00Z" if deleting else None
        meta = replace(old.metadata, labels=with_labels, deletion_timestamp=stamp)
        self.pods[name] = replace(old, metadata=meta)
        self.cluster.put_pod(self.pods[name])

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), zone=st.sampled_from(("a", "b")))
    def label_as_bound(self, data: st.DataObject, zone: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.pods)))
        old = self.pods[name]
        more = {**(old.metadata.labels or {}), names.LABEL_ZONE: zone}
        self.pods[name] = replace(old, metadata=replace(old.metadata, labels=more))
        self.cluster.put_pod(self.pods[name])

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.pods)))
        del self.pods[name]
        self.cluster.remove_pod(name)

    @rule(name=st.sampled_from(NAMESPACES), team=st.sampled_from(("a", "b")))
    def label_namespace(self, name: str, team: str) -> None:
        self.labelled[name] = {"team": team}
        labelled = Namespace(metadata=ObjectMeta(name=name, labels=self.labelled[name]))
        self.cluster.namespaces.put(labelled)

    @rule(
        selector=selectors,
        namespaces=st.sampled_from([None, frozenset({"red"}), frozenset(NAMESPACES)]),
        with_terminating=st.booleans(),
    )
    def ask_for_a_count(
        self, selector: LabelSelector, namespaces: frozenset[str] | None, with_terminating: bool
    ) -> None:
        compiled = labels.from_label_selector(selector)
        selection = Selection(compiled, namespaces, with_terminating)
        counter = self.cluster.table.pod_counter(selection)
        zones = self.cluster.table.domains(names.LABEL_ZONE)
        # Kept from now on: the invariant compares it with a recount after every step.
        assert counter.by_domain(zones)[1:].sum() == counter.total
        assert zones.number == len(set(self.nodes.values()))

        assert counter.total == sum(self._counts(selection, each) for each in self._pods_on_nodes())

    @rule(namespace=st.sampled_from(NAMESPACES), with_labels=pod_labels)
    def ask_which_terms_are_about_a_pod(self, namespace: str, with_labels: dict[str, str]) -> None:
        about = LabelSets().of(ObjectMeta(namespace=namespace, labels=with_labels))
        counters = self.cluster.table.term_counters
        namespace_labels = self.labelled.get(namespace, {})
        expected = 0
        for each in self._pods_on_nodes():
            terms = compile_terms(each.spec.affinity, each.metadata.namespace)
            preferred = (weighted.term for weighted in terms.preferred)
            for term in (*terms.required, *terms.required_anti, *preferred):
                expected += term.is_about(
                    with_labels, namespace=namespace, namespace_labels=namespace_labels
                )

        assert sum(counter.total for counter in counters.about(about)) == expected

    def _pods_on_nodes(self) -> list[Pod]:
        table = self.cluster.table
        return [
            each for each in self.pods.values() if table.row_of(each.spec.node_name) is not None
        ]

    def _counts(self, selection: Selection, each: Pod) -> bool:
        return selection.matches(LabelSets().of(each.metadata))

    @invariant()
    def all_counts_equal_a_recount(self) -> None:
        self.cluster.validate()


def selection_of(app: str) -> Selection:
    selector = labels.from_match_labels({"app": app})
    return Selection(selector, frozenset({"default"}), with_terminating=True)
