"""What concerns a pod is found once, and stays true whatever happens."""

from __future__ import annotations

import gc
from itertools import product

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from kubesched.api.core import Affinity
from kubesched.api.names import LABEL_ZONE
from kubesched.cluster.pod_counters import LIMIT_BYTES
from kubesched.cluster.pod_info import PodInfo
from kubesched.plugins.pod_relations import MOST_OTHERS, PodRelations, Relations
from tests.support.counted_pods import (
    APPS,
    NAMESPACES,
    NODES,
    Counters,
    affinities,
    make_pod,
    pod_labels,
    selection_of,
)
from tests.support.objects import must, node, pod, pod_term
from tests.support.scheduling import Lab

HARD_WEIGHT = 3


def described(relations: Relations, asking: PodInfo) -> tuple[object, ...]:
    """Return all that relations say of the rows, for a pod that asks."""
    near = [
        [each.near().tolist() for each in neighbours]
        for neighbours in (relations.company, relations.avoided, relations.avoiding)
    ]
    attractions = [
        None if (weights := each.by_domain()) is None else weights.take(each.domains.ids).tolist()
        for each in relations.attractions
    ]
    return relations.are_own_company(asking.labels), near, attractions


class RelationsOfPods(Counters):
    """Pods wait, and are asked about again and again, while the cluster changes."""

    def __init__(self) -> None:
        super().__init__()
        self.relations = PodRelations(self.cluster.table, hard_weight=HARD_WEIGHT)
        self.waiting: list[PodInfo] = []

    @rule(namespace=st.sampled_from(NAMESPACES), with_labels=pod_labels, affinity=affinities)
    def a_pod_waits(
        self, namespace: str, with_labels: dict[str, str], affinity: Affinity | None
    ) -> None:
        name = f"w{len(self.waiting)}"
        made = make_pod(
            name, namespace=namespace, on="", with_labels=with_labels, affinity=affinity
        )
        self.waiting.append(self.cluster.compiler.pending(made))

    @rule(on=st.sampled_from(NODES), zone=st.sampled_from("ab"))
    def pods_of_all_kinds_come_after_counters_were_pushed_out(self, on: str, zone: str) -> None:
        counters = self.cluster.table.pod_counters
        counters._limit_bytes = -1
        counters.counter(selection_of(f"nobody-has-{self.made}"))
        counters._limit_bytes = LIMIT_BYTES
        self.put_node(name=on, zone=zone)
        for namespace, app in product(NAMESPACES, APPS):
            self.add_pod(namespace=namespace, on=on, with_labels={"app": app}, affinity=None)

    @invariant()
    def what_is_known_is_what_would_be_found_now(self) -> None:
        for pod_info in self.waiting:
            known = described(self.relations.of(pod_info), pod_info)
            anew = PodRelations(self.cluster.table, hard_weight=HARD_WEIGHT)
            assert known == described(anew.of(pod_info), pod_info)


TestRelationsOfPods = RelationsOfPods.TestCase
TestRelationsOfPods.settings = settings(max_examples=60, stateful_step_count=30)


def test_pods_that_the_same_terms_concern_have_the_same_relations() -> None:
    lab = Lab(node("n1"))
    relations = PodRelations(lab.cluster.table, hard_weight=HARD_WEIGHT)
    term = must(pod_term("zone", app="web"))
    first, second = (
        lab.pending(pod(name, labels={"app": "web", "pod-name": name}, away_from=term))
        for name in ("a", "b")
    )

    assert relations.of(first) is relations.of(second), "whatever label is their own"

    before = relations.of(first)
    lab.cluster.put_pod(pod("c", node="n1", labels={"app": "web"}))
    assert relations.of(second) is before, "counts follow by themselves"
    lab.cluster.put_pod(pod("d", node="n1", away_from=must(pod_term("zone", app="db"))))
    assert relations.of(second) is before, "a term about others"
    lab.cluster.put_pod(pod("e", node="n1", away_from=term))
    assert relations.of(second) is not before


def test_many_different_terms_may_be_about_pods_with_the_same_terms() -> None:
    lab = Lab(node("n1", zone="a"))
    relations = PodRelations(lab.cluster.table, hard_weight=HARD_WEIGHT)
    asking = []
    for number in range(2 * MOST_OTHERS):
        app = f"app-{number}"
        away = must(pod_term(LABEL_ZONE, app=app))
        lab.cluster.put_pod(pod(f"away-from-{number}", node="n1", away_from=away))
        asking.append(lab.pending(pod(f"p{number}", labels={"app": app})))

    found = [relations.of(each) for each in asking]

    assert len(relations._known[asking[0].terms].answers) == MOST_OTHERS
    assert all(each.avoiding[0].near().all() for each in found)
    assert [described(relations.of(each), each) for each in asking] == [
        described(each, one) for each, one in zip(found, asking, strict=True)
    ]


def test_relations_go_with_the_last_pod_that_has_the_terms() -> None:
    lab = Lab(node("n1"))
    relations = PodRelations(lab.cluster.table, hard_weight=HARD_WEIGHT)
    asking = lab.pending(pod("p", away_from=must(pod_term("zone", app="web"))))
    relations.of(asking)
    assert len(relations._known) == 1

    del asking
    gc.collect()

    assert not relations._known


def test_a_counter_that_was_pushed_out_is_asked_for_again() -> None:
    lab = Lab(node("n1", zone="a"))
    table = lab.cluster.table
    relations = PodRelations(table, hard_weight=HARD_WEIGHT)
    asking = lab.pending(pod("p", away_from=must(pod_term(LABEL_ZONE, app="web"))))
    assert not relations.of(asking).avoided[0].near().any()

    table.pod_counters._limit_bytes = 0
    table.pod_counter(selection_of("another"))
    lab.cluster.put_pod(pod("web", node="n1", labels={"app": "web"}))

    assert relations.of(asking).avoided[0].near().any()
