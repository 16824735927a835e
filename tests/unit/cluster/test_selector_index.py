"""Selectors find the label sets that they match, and the other way round."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubesched.api.labels import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, NOTHING, Requirement, Selector
from kubesched.cluster import selector_index
from kubesched.cluster.label_sets import LabelSet
from kubesched.cluster.selector_index import SelectorIndex
from kubesched.errors import InvariantError

NAMESPACES = ("red", "blue")
KEYS = ("app", "tier", "pod")
VALUES = ("a", "b", "c")

requirements = st.one_of(
    st.builds(
        lambda key, operator, values: Requirement(key, operator, tuple(values)),
        st.sampled_from(KEYS),
        st.sampled_from((IN, NOT_IN)),
        st.lists(st.sampled_from(VALUES), max_size=3),
    ),
    st.builds(Requirement, st.sampled_from(KEYS), st.sampled_from((EXISTS, DOES_NOT_EXIST))),
)
selectors = st.just(NOTHING) | st.lists(requirements, max_size=3).map(Selector.of)
namespaces = st.none() | st.frozensets(st.sampled_from(NAMESPACES))
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))


def label_set(namespace: str = "red", **pairs: str) -> LabelSet:
    return LabelSet(namespace, pairs, terminating=False)


def selector(*parts: Requirement, **pairs: str) -> Selector:
    return Selector.of((*parts, *(Requirement(key, IN, (pairs[key],)) for key in pairs)))


class Matches(RuleBasedStateMachine):
    """Selectors and label sets come and go; every pair is compared."""

    def __init__(self) -> None:
        super().__init__()
        self.index: SelectorIndex[int] = SelectorIndex()
        self.selectors: dict[int, tuple[Selector, frozenset[str] | None]] = {}
        self.label_sets: list[LabelSet] = []
        self.made = 0

    @rule(selector=selectors, namespaces=namespaces)
    def put_selector(self, selector: Selector, namespaces: frozenset[str] | None) -> None:
        self.made += 1
        self.selectors[self.made] = selector, namespaces
        self.index.put(self.made, selector, namespaces)

    @precondition(lambda self: self.selectors)
    @rule(data=st.data())
    def remove_selector(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(sorted(self.selectors)))
        del self.selectors[item]
        self.index.remove(item)

    @rule(namespace=st.sampled_from(NAMESPACES), pairs=labels)
    def add_label_set(self, namespace: str, pairs: Mapping[str, str]) -> None:
        self.label_sets.append(label_set(namespace, **pairs))
        self.index.add(self.label_sets[-1])

    @precondition(lambda self: self.label_sets)
    @rule(data=st.data())
    def discard_label_set(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.label_sets) - 1))
        self.index.discard(self.label_sets.pop(number))

    @invariant()
    def each_matches_what_it_would_compared_one_by_one(self) -> None:
        def matches(item: int, labels: LabelSet) -> bool:
            selector, namespaces = self.selectors[item]
            in_namespace = namespaces is None or labels.namespace in namespaces
            return in_namespace and selector.matches(labels.labels)

        for each in self.label_sets:
            expected = [item for item in self.selectors if matches(item, each)]
            assert sorted(self.index.matching(each)) == expected
        for item in self.selectors:
            found = self.index.matched(item)
            assert len(found) == len(set(found))
            assert set(found) == {each for each in self.label_sets if matches(item, each)}
        self.index.validate(self.label_sets)

    def teardown(self) -> None:
        for item in self.selectors:
            self.index.remove(item)
        assert not self.index._shelves, "places are freed with the last selector"


TestMatches = Matches.TestCase
TestMatches.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def compared(index: SelectorIndex[int], monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list to which each comparison of a selector with a label set adds."""
    seen: list[object] = []
    matches = selector_index._SelectorPlace.matches

    def counting(place: selector_index._SelectorPlace, labels: LabelSet) -> bool:
        seen.append((place, labels))
        return matches(place, labels)

    monkeypatch.setattr(selector_index._SelectorPlace, "matches", counting)
    return seen


def test_a_label_set_is_compared_with_the_selectors_of_its_application(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index: SelectorIndex[int] = SelectorIndex()
    for number in range(1000):
        index.put(number, selector(app=f"app-{number}"), frozenset({"red"}))
    seen = compared(index, monkeypatch)

    assert index.matching(label_set(app="app-7", pod="p-1")) == [7]
    assert index.matching(label_set("blue", app="app-7")) == []

    assert len(seen) == 1


def test_a_selector_is_compared_with_the_label_sets_of_its_application(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index: SelectorIndex[int] = SelectorIndex()
    index.put(0, selector(app="app-0"), None)
    for number in range(1000):
        index.add(label_set(app=f"app-{number}", pod=f"p-{number}"))
    seen = compared(index, monkeypatch)

    index.put(7, selector(app="app-7"), frozenset({"red"}))

    assert [each.labels["pod"] for each in index.matched(7)] == ["p-7"]
    assert len(seen) == 1


def test_a_requirement_that_all_selectors_have_is_no_place_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index: SelectorIndex[int] = SelectorIndex()
    for number in range(1000):
        exists = Requirement("tier", EXISTS)
        index.put(number, selector(exists, **{"a-part": "server", "app": f"app-{number}"}), None)
    seen = compared(index, monkeypatch)

    found = index.matching(label_set(app="app-999", tier="x", **{"a-part": "server"}))

    assert found == [999]
    assert len(seen) <= selector_index.CROWDED + 1


def test_labels_that_no_selector_is_placed_by_take_no_memory() -> None:
    index: SelectorIndex[int] = SelectorIndex()
    index.put(0, selector(app="web"), None)
    for number in range(100):
        index.add(label_set(app="web", pod=f"p-{number}"))

    (shelf,) = index._shelves.values()
    assert [list(values) for values in shelf.label_sets.values()] == [["web"]]


def test_validate_finds_a_label_set_that_was_not_added() -> None:
    index: SelectorIndex[int] = SelectorIndex()
    index.put(0, selector(app="web"), None)

    with pytest.raises(InvariantError, match="label sets in the index"):
        index.validate([label_set(app="web")])


def test_validate_finds_a_label_set_at_the_wrong_place() -> None:
    index: SelectorIndex[int] = SelectorIndex()
    index.put(0, selector(app="web"), None)
    added = label_set(app="web")
    index.add(added)
    index._shelves["app"].remove(added, "web")

    with pytest.raises(InvariantError, match="label sets of app=web"):
        index.validate([added])
