"""Which selectors match which label sets, found without comparing each with each.

    selector ──one of its requirements──> place: a key, and the values that it allows
    label set ──its labels──────────────> the same places

Nearly every selector requires one value, or one of a few, of some label, or at least that the label
is there. It is placed by that and by its namespaces; the few others share a place. Label sets are
placed under the same keys, and only under those: a label that differs from pod to pod costs nothing
unless a selector is placed by it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from msgspec import Struct

from kubesched.api.labels import EXISTS, IN, Requirement, Selector
from kubesched.cluster.label_sets import LabelSet
from kubesched.errors import require

#: With so many selectors at a place already, another requirement may give a better one.
CROWDED: Final = 8

S = TypeVar("S", bound=Hashable)

#: A namespace and a value; None for any.
Spot = tuple[str | None, str | None]


class _SelectorPlace(Struct, frozen=True):
    """Where a selector is."""

    selector: Selector
    #: None means all
    namespaces: frozenset[str] | None
    #: None for selectors that require no label
    key: str | None = None
    #: None means any
    values: tuple[str, ...] | None = None

    @property
    def is_nowhere(self) -> bool:
        """Whether the selector can match no label set."""
        no_namespace = self.namespaces is not None and not self.namespaces
        return self.selector.nothing or no_namespace or self.values == ()

    def spots(self) -> Iterator[Spot]:
        """Return each namespace with each value."""
        values = (None,) if self.values is None else self.values
        for namespace in (None,) if self.namespaces is None else self.namespaces:
            for value in values:
                yield namespace, value

    def matches(self, labels: LabelSet) -> bool:
        """Tell whether the selector matches."""
        if self.namespaces is not None and labels.namespace not in self.namespaces:
            return False
        return self.selector.matches(labels.labels)


class _Shelf(Generic[S]):
    """The places of one key: selectors, and the label sets that have a label of that key."""

    def __init__(self) -> None:
        self.selectors: dict[Spot, dict[S, _SelectorPlace]] = {}
        self.label_sets: dict[str, dict[str | None, dict[LabelSet, None]]] = {}

    def put(self, item: S, place: _SelectorPlace) -> None:
        """Add a selector."""
        for spot in place.spots():
            self.selectors.setdefault(spot, {})[item] = place

    def take(self, item: S, place: _SelectorPlace) -> None:
        """Remove a selector."""
        for spot in place.spots():
            here = self.selectors[spot]
            del here[item]
            if not here:
                del self.selectors[spot]

    def neighbours(self, place: _SelectorPlace) -> int:
        """Return how many selectors are at a place."""
        return sum(len(self.selectors.get(spot, ())) for spot in place.spots())

    def add(self, labels: LabelSet, value: str | None) -> None:
        """Add a label set that has this value."""
        self.label_sets.setdefault(labels.namespace, {}).setdefault(value, {})[labels] = None

    def remove(self, labels: LabelSet, value: str | None) -> None:
        """Remove a label set."""
        in_namespace = self.label_sets[labels.namespace]
        del in_namespace[value][labels]
        if not in_namespace[value]:
            del in_namespace[value]
        if not in_namespace:
            del self.label_sets[labels.namespace]

    def selectors_at(self, namespace: str, value: str | None) -> Iterator[tuple[S, _SelectorPlace]]:
        """Return the selectors that may match a value in a namespace."""
        spots: list[Spot] = [(namespace, None), (None, None)]
        if value is not None:
            spots += [(namespace, value), (None, value)]
        for spot in spots:
            here = self.selectors.get(spot)
            if here:
                yield from here.items()

    def label_sets_at(self, place: _SelectorPlace) -> Iterator[LabelSet]:
        """Return the label sets that a selector may match."""
        for namespace in self.label_sets if place.namespaces is None else place.namespaces:
            in_namespace = self.label_sets.get(namespace)
            if in_namespace is None:
                continue
            for value in in_namespace if place.values is None else place.values:
                yield from in_namespace.get(value, ())


class SelectorIndex(Generic[S]):
    """Selectors, each identified by an object that it belongs to, and label sets."""

    def __init__(self) -> None:
        self._places: dict[S, _SelectorPlace] = {}
        self._label_sets: dict[LabelSet, None] = {}
        #: key → what is placed under it; dropped with the last selector
        self._shelves: dict[str | None, _Shelf[S]] = {}

    def __len__(self) -> int:
        return len(self._places)

    # --- selectors --------------------------------------------------------------------------

    def selectors(self) -> dict[S, Selector]:
        """Return all selectors."""
        return {item: place.selector for item, place in self._places.items()}

    def put(self, item: S, selector: Selector, namespaces: frozenset[str] | None) -> None:
        """Add a selector of label sets in some namespaces, None for all."""
        place = self._places[item] = self._place_for(selector, namespaces)
        if place.is_nowhere:
            return
        shelf = self._shelves.get(place.key)
        if shelf is None:
            shelf = self._shelves[place.key] = _Shelf()
            for labels in self._label_sets:
                if place.key is None or place.key in labels.labels:
                    shelf.add(labels, _value(labels, place.key))
        shelf.put(item, place)

    def remove(self, item: S) -> None:
        """Remove a selector."""
        place = self._places.pop(item)
        if place.is_nowhere:
            return
        shelf = self._shelves[place.key]
        shelf.take(item, place)
        if not shelf.selectors:
            del self._shelves[place.key]

    def _place_for(self, selector: Selector, namespaces: frozenset[str] | None) -> _SelectorPlace:
        """Return the first place that is not crowded, else the one with the fewest selectors."""
        found = _SelectorPlace(selector, namespaces)
        fewest: int | None = None
        for requirement in sorted(selector.requirements, key=_by_use):
            if requirement.operator not in (IN, EXISTS):
                break
            values = requirement.values if requirement.operator == IN else None
            place = _SelectorPlace(selector, namespaces, requirement.key, values)
            shelf = self._shelves.get(requirement.key)
            neighbours = 0 if shelf is None else shelf.neighbours(place)
            if fewest is None or neighbours < fewest:
                found, fewest = place, neighbours
            if fewest < CROWDED:
                break
        return found

    # --- label sets -------------------------------------------------------------------------

    def add(self, labels: LabelSet) -> None:
        """Add a label set."""
        self._label_sets[labels] = None
        for shelf, value in self._shelves_of(labels):
            shelf.add(labels, value)

    def discard(self, labels: LabelSet) -> None:
        """Remove a label set."""
        del self._label_sets[labels]
        for shelf, value in self._shelves_of(labels):
            shelf.remove(labels, value)

    def _shelves_of(self, labels: LabelSet) -> Iterator[tuple[_Shelf[S], str | None]]:
        shelves = self._shelves
        if None in shelves:
            yield shelves[None], None
        for key, value in labels.labels.items():
            shelf = shelves.get(key)
            if shelf is not None:
                yield shelf, value

    # --- both -------------------------------------------------------------------------------

    def matching(self, labels: LabelSet) -> list[S]:
        """Return what the selectors that match a label set belong to."""
        if not self._shelves:
            return []
        return [
            item
            for shelf, value in self._shelves_of(labels)
            for item, place in shelf.selectors_at(labels.namespace, value)
            if place.matches(labels)
        ]

    def matched(self, item: S) -> list[LabelSet]:
        """Return the label sets that a selector matches."""
        place = self._places[item]
        if place.is_nowhere:
            return []
        candidates = self._shelves[place.key].label_sets_at(place)
        return [labels for labels in candidates if place.matches(labels)]

    def validate(self, there: Iterable[LabelSet]) -> None:
        """Compare each label set with each selector; `there` are all label sets."""
        label_sets = list(there)
        require(self._label_sets.keys() == set(label_sets), "label sets in the index")
        by_labels = {labels: self.matching(labels) for labels in label_sets}
        by_selector = {item: self.matched(item) for item in self._places}
        for item, place in self._places.items():
            for labels in label_sets:
                times = int(place.matches(labels))
                what = f"of {place.selector} and {labels}"
                require(by_labels[labels].count(item) == times, f"selectors {what}")
                require(by_selector[item].count(labels) == times, f"label sets {what}")
        keys = {place.key for place in self._places.values() if not place.is_nowhere}
        require(self._shelves.keys() == keys, "keys that selectors are placed by")
        for shelf in self._shelves.values():
            require(all(shelf.selectors.values()), "places without a selector")
            require(
                all(each for named in shelf.label_sets.values() for each in named.values()),
                "places without a label set",
            )


def _value(labels: LabelSet, key: str | None) -> str | None:
    return None if key is None else labels.labels[key]


def _by_use(requirement: Requirement) -> int:
    """Order requirements: one of some values, any value, and those that are no place."""
    return {IN: 0, EXISTS: 1}.get(requirement.operator, 2)
