"""Terms that placed pods carry: counted once for each, found by the labels that they select."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Pod
from kubesched.api.meta import LabelSelector
from kubesched.cluster.pod_info import PodCompiler, PodInfo
from kubesched.cluster.term_counters import TermCounters
from kubesched.errors import InvariantError
from tests.support.objects import must, pod, pod_term

ZONE, HOST = names.LABEL_ZONE, names.LABEL_HOSTNAME
COMPILER = PodCompiler()


def carrying(name: str, *labels: str, namespace: str = "default") -> PodInfo:
    """A pod that stays away from pods with any of some labels."""
    terms = (pod_term(ZONE, app=each) for each in labels)
    return COMPILER.placed(pod(name, namespace=namespace, away_from=must(*terms)))


def info(asking: Pod) -> PodInfo:
    return COMPILER.pending(asking)


def counts(counters: TermCounters, asking: PodInfo) -> list[list[int]]:
    """The counts on three rows, of each term that selects a pod."""
    return [each.counts(3).tolist() for each in counters.about(asking.labels)]


WEB = info(pod("web", labels={"app": "web"}))


def test_each_distinct_term_has_one_counter() -> None:
    counters = TermCounters()
    for row, name in ((0, "p"), (2, "q"), (2, "r")):
        counters.add(row, carrying(name, "web").terms)

    assert len(counters) == 1
    assert counts(counters, WEB) == [[1, 0, 2]]

    counters.remove(2, carrying("q", "web").terms)
    assert counts(counters, WEB) == [[1, 0, 1]]


def test_a_term_that_no_pod_carries_any_more_is_gone() -> None:
    counters = TermCounters()
    terms = carrying("p", "web").terms
    counters.add(0, terms)
    version = counters.version
    counters.add(1, terms)
    assert counters.version == version, "the terms are the same"

    counters.remove(0, terms)
    assert counters.version == version
    counters.remove(1, terms)
    assert counters.version == version + 1
    assert len(counters) == 0
    assert counts(counters, WEB) == []


def test_terms_that_select_a_pod_are_listed_by_appearance() -> None:
    counters = TermCounters()
    anything = COMPILER.placed(pod("any", away_from=must(pod_term(HOST))))
    for row, each in enumerate((anything, carrying("p", "db"), carrying("q", "web"))):
        counters.add(row, each.terms)

    assert counts(counters, WEB) == [[1, 0, 0], [0, 0, 1]]
    assert counts(counters, info(pod("none"))) == [[1, 0, 0]]


def test_a_term_is_about_the_namespace_of_its_pod_unless_it_selects_others() -> None:
    counters = TermCounters()
    counters.add(0, carrying("p", "web").terms)
    of_team = replace(
        pod_term(ZONE, app="web"), namespace_selector=LabelSelector(match_labels={"team": "a"})
    )
    counters.add(1, COMPILER.placed(pod("q", away_from=must(of_team))).terms)
    elsewhere = info(pod("web", namespace="shop", labels={"app": "web"}))
    assert counts(counters, elsewhere) == []

    epoch, version = counters.epoch, counters.version
    counters.put_namespace("shop", {"team": "a"})
    assert (counters.epoch, counters.version) == (epoch + 1, version + 1)
    assert counts(counters, elsewhere) == [[0, 1, 0]]

    counters.put_namespace("shop", {"team": "a"})
    assert counters.epoch == epoch + 1, "nothing changed"
    counters.remove_namespace("shop")
    counters.remove_namespace("shop")
    assert counters.epoch == epoch + 2
    assert counts(counters, elsewhere) == []


def test_a_term_that_names_namespaces_is_about_them_too() -> None:
    counters = TermCounters()
    selector = LabelSelector(match_labels={"team": "a"})
    term = replace(pod_term(ZONE, app="web"), namespaces=("bank",), namespace_selector=selector)
    counters.add(0, COMPILER.placed(pod("p", away_from=must(term))).terms)

    assert counts(counters, info(pod("web", namespace="bank", labels={"app": "web"}))) == [
        [1, 0, 0]
    ]
    assert counts(counters, WEB) == []


def test_an_own_term_selects_namespaces_that_are_there() -> None:
    counters = TermCounters()
    counters.put_namespace("shop", {"team": "a"})
    counters.put_namespace("bank", {"team": "b"})

    def namespaces(selector: LabelSelector | None) -> frozenset[str] | None:
        term = replace(pod_term(ZONE, app="web"), namespace_selector=selector)
        asking = info(pod("p", away_from=must(term)))
        return counters.namespaces_of(asking.terms.required_anti[0])

    assert namespaces(None) == frozenset({"default"})
    assert namespaces(LabelSelector(match_labels={"team": "a"})) == frozenset({"shop"})
    assert namespaces(LabelSelector()) is None


def test_terms_of_nominated_pods_count_unless_a_placed_pod_carries_them() -> None:
    counters = TermCounters()
    counters.add(0, carrying("placed", "web").terms)
    nominated = carrying("nominated", "web", "db").terms.required_anti
    both = info(pod("both", labels={"app": "db"}))

    assert list(counters.of_nominated(WEB.labels, nominated)) == []
    (found,) = counters.of_nominated(both.labels, nominated)
    assert found.counts(3).tolist() == [0, 0, 0]
    assert found.counts_pod(carrying("p", "db"))
    assert not found.counts_pod(carrying("p", "web"))


def test_counts_that_are_not_those_of_the_pods_are_found() -> None:
    counters = TermCounters()
    terms = carrying("p", "web").terms
    counters.add(1, terms)
    counters.validate(3, [(1, terms)])

    with pytest.raises(InvariantError, match="carriers"):
        counters.validate(3, [(2, terms)])
    with pytest.raises(InvariantError, match="terms that pods carry"):
        counters.validate(3, [])
