"""Which existing volume a claim takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api import quantity
from kubesched.api.core import Node
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.api.storage import (
    ANNOTATION_BOUND_BY_CONTROLLER,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.incremental import Log
from kubesched.cluster.storage import Volumes
from kubesched.errors import ObjectError
from kubesched.plugins.volume_index import VolumeIndex
from kubesched.plugins.volume_matching import (
    Candidates,
    CandidateVolume,
    VolumeChoice,
    bound_to_claim,
    capacity_nano,
    choose,
    is_bound_to,
)
from kubesched.plugins.volume_topology import Topology, TopologyRows
from tests.support.scheduling import cluster_of
from tests.support.volume_scheduling import claim, host, in_zones, on_hosts, volume


def index_of(
    volumes: Sequence[PersistentVolume], *, attributes_classes: bool = True
) -> VolumeIndex:
    store = Volumes()
    for each in volumes:
        store.put(each)
    return VolumeIndex(store, attributes_classes=attributes_classes)


def candidates(
    wanted: PersistentVolumeClaim,
    volumes: Sequence[PersistentVolume],
    *,
    attributes_classes: bool = True,
) -> Candidates:
    index = index_of(volumes, attributes_classes=attributes_classes)
    found = index.candidates(wanted)
    index.validate()
    return found


def names(found: Sequence[CandidateVolume]) -> list[str]:
    return [each.volume.metadata.name for each in found]


def free(wanted: PersistentVolumeClaim, *volumes: PersistentVolume) -> list[str]:
    return names(candidates(wanted, volumes).free)


# --- what a claim could take --------------------------------------------------------------------


def test_the_smallest_volume_that_is_large_enough_comes_first() -> None:
    sizes = {"huge": "1Ti", "exact": "1024Mi", "small": "1Gi", "tiny": "1023Mi", "odd": "1.5Gi"}
    volumes = [volume(name, size=size) for name, size in sizes.items()]

    assert free(claim(size="1Gi"), *volumes) == ["exact", "small", "odd", "huge"]


def test_a_claim_that_names_no_size_takes_anything() -> None:
    assert free(claim(size=None), volume(size="1")) == ["v"]


def test_what_is_beyond_counting_is_more_than_anything() -> None:
    assert free(claim(size="1e80"), volume(size="1Ei")) == []
    assert free(claim(size="1Ei"), volume("large", size="1e80"), volume("v", size="2E")) == [
        "v",
        "large",
    ]


@pytest.mark.parametrize(
    "refused",
    [
        volume(size="512Mi"),
        volume(phase="Released"),
        volume(phase=""),
        volume(deleting=True),
        volume(volume_mode="Block"),
        volume(modes=["ReadOnlyMany"]),
        volume(attributes_class="gold"),
        volume(kept_for="another"),
        volume(kept_for="c", kept_for_uid="an earlier claim of the name"),
    ],
)
def test_volumes_that_will_not_do_are_left_alone(refused: PersistentVolume) -> None:
    assert free(claim(), refused, volume("good")) == ["good"]
    assert candidates(claim(), [refused]).prebound == ()


@pytest.mark.parametrize(
    ("wanted", "offered"),
    [
        (claim(volume_mode="Filesystem"), volume()),
        (claim(), volume(volume_mode="Filesystem")),
        (claim(volume_mode="Block"), volume(volume_mode="Block")),
        (claim(attributes_class=""), volume()),
        (claim(attributes_class="gold"), volume(attributes_class="gold")),
        (claim(modes=["ReadWriteOnce"]), volume(modes=["ReadOnlyMany", "ReadWriteOnce"])),
        (claim(modes=[]), volume(modes=[])),
    ],
)
def test_volumes_that_will_do(wanted: PersistentVolumeClaim, offered: PersistentVolume) -> None:
    assert free(wanted, offered) == ["v"]


def test_a_claim_may_select_volumes_by_their_labels() -> None:
    fast = LabelSelector(
        match_labels={"speed": "fast"},
        match_expressions=(LabelSelectorRequirement(key="old", operator="DoesNotExist"),),
    )
    volumes = [
        volume("a", labels={"speed": "fast"}),
        volume("b", labels={"speed": "fast", "old": ""}),
        volume("c", labels={"speed": "slow"}),
        volume("d"),
    ]

    assert free(claim(selector=fast), *volumes) == ["a"]
    assert free(claim(selector=LabelSelector()), *volumes) == ["a", "b", "c", "d"]


def test_a_claim_with_a_malformed_selector_is_refused() -> None:
    broken = LabelSelector(match_labels={"not a key": "x"})

    with pytest.raises(
        ObjectError, match=r"^error creating internal label selector for claim: default/c: "
    ):
        candidates(claim(selector=broken), [])


def test_without_the_feature_gate_attributes_classes_are_refused() -> None:
    with pytest.raises(ObjectError, match=r"^unsupported volumeAttributesClassName .* default/c "):
        candidates(claim(attributes_class="gold"), [], attributes_classes=False)
    found = candidates(
        claim(), [volume("a", attributes_class="gold"), volume("b")], attributes_classes=False
    )
    assert names(found.free) == ["b"]


def test_a_volume_that_is_kept_for_the_claim_need_not_be_available() -> None:
    kept = volume(kept_for="c", phase="Bound", modes=[], labels={"other": "labels"})
    selector = LabelSelector(match_labels={"speed": "fast"})

    assert names(candidates(claim(selector=selector), [kept]).prebound) == ["v"]


@pytest.mark.parametrize(
    "unfit",
    [
        volume(kept_for="c", size="1Mi"),
        volume(kept_for="c", deleting=True),
        volume(kept_for="c", volume_mode="Block"),
        volume(kept_for="c", attributes_class="gold"),
    ],
)
def test_but_it_must_be_what_the_claim_asks_for(unfit: PersistentVolume) -> None:
    assert candidates(claim(), [unfit]) == Candidates()


def test_what_can_be_taken_follows_what_happens_to_volumes() -> None:
    store = Volumes()
    index = VolumeIndex(store)

    def found() -> tuple[list[str], list[str]]:
        index.validate()
        now = index.candidates(claim())
        return names(now.prebound), names(now.free)

    assert found() == ([], [])
    store.put(volume("a", size="2Gi"))
    store.put(volume("b", size="3Gi"))
    store.put(volume("c", phase="Pending"))
    assert found() == ([], ["a", "b"])
    store.put(volume("c", size="1Gi", version="2"))
    store.put(volume("a", size="4Gi", version="2"))
    assert found() == ([], ["c", "b", "a"])
    taken, _ = bound_to_claim(volume("c", version="2"), claim("another"))
    store.assume(taken)
    assert found() == ([], ["b", "a"])
    store.restore("c")
    assert found() == ([], ["c", "b", "a"])
    store.put(volume("b", kept_for="c", size="3Gi", version="2"))
    assert found() == (["b"], ["c", "a"])
    store.put(volume("a", storage_class="other", version="3"))
    store.remove(volume("c"))
    assert found() == (["b"], [])


def test_whoever_comes_too_late_to_the_journal_looks_at_everything() -> None:
    store = Volumes(Log(4))
    index = VolumeIndex(store)
    for number in range(50):
        store.put(volume(f"v{number % 10}", version=str(number)))
        if number == 20:
            index.validate()
    index.validate()
    assert names(index.candidates(claim()).free) == [f"v{number}" for number in range(10)]


# --- binding ------------------------------------------------------------------------------------


def test_binding_names_the_claim_and_says_who_did_it() -> None:
    bound, changed = bound_to_claim(volume(annotations={"a": "b"}), claim(version="7"))

    assert changed
    reference = bound.spec.claim_ref
    assert reference is not None
    assert (reference.kind, reference.api_version) == ("PersistentVolumeClaim", "v1")
    assert (reference.namespace, reference.name, reference.uid) == ("default", "c", "c")
    assert reference.resource_version == "7"
    assert bound.metadata.annotations == {"a": "b", ANNOTATION_BOUND_BY_CONTROLLER: "yes"}
    assert is_bound_to(bound, claim())


def test_a_volume_that_its_author_kept_for_the_claim_only_gets_the_uid() -> None:
    bound, changed = bound_to_claim(volume(kept_for="c"), claim())

    assert changed
    assert bound.spec.claim_ref is not None
    assert bound.spec.claim_ref.uid == "c"
    assert bound.metadata.annotations is None


def test_a_bound_volume_stays_as_it_is() -> None:
    already = volume(kept_for="c", kept_for_uid="c")
    assert bound_to_claim(already, claim()) == (already, False)


# --- on all rows at once ------------------------------------------------------------------------


def rows(*numbers: int) -> IndexArray:
    return np.array(numbers, dtype=np.intp)


class Reach:
    """Volumes by name with the rows that can reach them."""

    def __init__(self, rows_of: Mapping[str, Sequence[int]]) -> None:
        self._places = {name: Topology(()) for name in rows_of}
        self._rows = {self._places[name]: rows(*found) for name, found in rows_of.items()}

    def __call__(self, topology: Topology | None) -> IndexArray:
        assert topology is not None
        return self._rows[topology]

    def candidate(self, found: PersistentVolume) -> CandidateVolume:
        return CandidateVolume(found, capacity_nano(found), self._places[found.metadata.name])

    def all(self, found: Sequence[PersistentVolume]) -> tuple[CandidateVolume, ...]:
        return tuple(self.candidate(each) for each in found)


def chosen(choice: VolumeChoice, size: int) -> list[str | None]:
    found = [choice.at(row) for row in range(size)]
    return [None if each is None else each.metadata.name for each in found]


def test_each_row_gets_the_smallest_volume_that_it_can_reach() -> None:
    reach = Reach({"a": [0, 1], "b": [1, 2], "c": [3]})
    found = Candidates(free=reach.all([volume("a"), volume("b"), volume("c")]))

    assert chosen(choose(claim(), found, reach, size=5), 5) == ["a", "a", "b", "c", None]


def test_what_is_kept_for_the_claim_wins_where_it_can_be_reached_and_nothing_does_elsewhere() -> (
    None
):
    reach = Reach({"kept": [1], "free": [0, 1, 2]})
    found = Candidates(prebound=reach.all([volume("kept")]), free=reach.all([volume("free")]))

    assert chosen(choose(claim(), found, reach, size=3), 3) == [None, "kept", None]


def test_two_claims_of_a_pod_do_not_get_the_same_volume() -> None:
    reach = Reach({"a": [0, 1], "b": [1]})
    found = Candidates(free=reach.all([volume("a"), volume("b")]))

    first = choose(claim("x"), found, reach, size=2)
    second = choose(claim("y"), found, reach, size=2, taken=[first])

    assert chosen(first, 2) == ["a", "a"]
    assert chosen(second, 2) == [None, "b"]


SIZE = 6
_volumes = st.lists(
    st.builds(
        volume,
        st.sampled_from("abcdefgh"),
        size=st.sampled_from(["1Gi", "2Gi", "3Gi"]),
        kept_for=st.sampled_from(["", "", "", "c0", "c1"]),
        phase=st.sampled_from(["Available", "Available", "Released"]),
    ),
    unique_by=lambda each: each.metadata.name,
    max_size=8,
)
_claims = st.lists(st.sampled_from(["1Gi", "2Gi", "3Gi"]), min_size=1, max_size=3)
_reach = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from(range(SIZE)), unique=True) for name in "abcdefgh"}
)


def on_one_node(
    wanted: PersistentVolumeClaim,
    volumes: Sequence[PersistentVolume],
    reached: set[str],
    taken: set[str],
) -> PersistentVolume | None:
    """Choose for one claim and one node, one volume after the other."""
    best: PersistentVolume | None = None
    for each in sorted(volumes, key=lambda one: one.metadata.name):
        if each.metadata.name in taken or _size(each) < _asked(wanted):
            continue
        if is_bound_to(each, wanted):
            return each if each.metadata.name in reached else None
        if each.spec.claim_ref is not None or each.status.phase != "Available":
            continue
        if each.metadata.name in reached and (best is None or _size(each) < _size(best)):
            best = each
    return best


def _size(of: PersistentVolume) -> int:
    return quantity.value((of.spec.capacity or {})["storage"])


def _asked(of: PersistentVolumeClaim) -> int:
    assert of.spec.resources is not None
    return quantity.value((of.spec.resources.requests or {})["storage"])


@given(volumes=_volumes, sizes=_claims, reach=_reach)
@settings(max_examples=300)
def test_all_rows_at_once_are_as_each_row_alone(
    volumes: list[PersistentVolume], sizes: list[str], reach: dict[str, list[int]]
) -> None:
    volumes = sorted(volumes, key=lambda one: one.metadata.name)
    claims = [claim(f"c{number}", size=size) for number, size in enumerate(sizes)]
    index, places = index_of(volumes), Reach(reach)
    choices: list[VolumeChoice] = []
    for wanted in claims:
        noted = index.candidates(wanted)
        found = Candidates(
            places.all([each.volume for each in noted.prebound]),
            places.all([each.volume for each in noted.free]),
        )
        choices.append(choose(wanted, found, places, size=SIZE, taken=choices))
    for row in range(SIZE):
        reached = {name for name, places in reach.items() if row in places}
        taken: set[str] = set()
        for wanted, choice in zip(claims, choices, strict=True):
            expected = on_one_node(wanted, volumes, reached, taken)
            assert choice.at(row) == expected, (wanted.metadata.name, row)
            if expected is not None:
                taken.add(expected.metadata.name)


# --- the smallest of many, in one operation -----------------------------------------------------


class Smallest:
    """One index that lives through everything, asked both ways."""

    def __init__(self, *volumes: PersistentVolume, hosts: int = 4) -> None:
        self.cluster = cluster_of(*(host(f"n{number}", zone="a") for number in range(hosts)))
        self.store = self.cluster.storage.volumes
        for each in volumes:
            self.store.put(each)
        self.index = VolumeIndex(self.store)
        self.places = TopologyRows(self.cluster.table)

    def at_once(self, wanted: PersistentVolumeClaim) -> list[str | None] | None:
        """Return the names of the volumes, by row; None if that is not how to find them."""
        size = self.cluster.table.size
        choice = self.index.smallest(wanted, self.places, table_size=size)
        return None if choice is None else chosen(choice, size)

    def one_by_one(self, wanted: PersistentVolumeClaim) -> list[str | None]:
        """Return the same, from all candidates and from an index that remembers nothing."""
        size, fresh = self.cluster.table.size, VolumeIndex(self.store)
        rows_of = TopologyRows(self.cluster.table).rows
        return chosen(choose(wanted, fresh.candidates(wanted), rows_of, size=size), size)


def local(name: str, number: int, **given: Any) -> PersistentVolume:
    """Make a volume of one host."""
    return volume(name, reach=[on_hosts(f"n{number}")], **given)


def test_each_row_gets_its_smallest_volume_and_of_equal_ones_the_first_by_name() -> None:
    lab = Smallest(
        local("large", 0, size="3Gi"),
        local("b", 0, size="2Gi"),
        local("a", 0, size="2Gi"),
        local("tiny", 1, size="1Gi"),
        local("fine", 1, size="3Gi"),
        local("too small", 2, size="1Gi"),
    )
    assert lab.at_once(claim(size="2Gi")) == ["a", "fine", None, None]
    assert lab.at_once(claim(size="3Gi")) == ["large", "fine", None, None]
    assert lab.at_once(claim(size="4Gi")) == [None, None, None, None]


def test_a_choice_stays_what_it_was() -> None:
    lab = Smallest(local("a", 0), local("b", 1))
    before = lab.index.smallest(claim(), lab.places, table_size=4)
    assert before is not None
    lab.store.remove(volume("a"))
    assert lab.at_once(claim()) == [None, "b", None, None]
    assert chosen(before, 4) == ["a", "b", None, None]


@pytest.mark.parametrize(
    ("wanted", "more"),
    [
        (claim(selector=LabelSelector(match_labels={"a": "b"})), []),
        (claim("kept"), [volume("k", kept_for="kept")]),
        (claim(), [local("several", 1, modes=["ReadWriteOnce", "ReadOnlyMany"])]),
        (claim(storage_class="other"), []),
    ],
    ids=["selector", "kept for it", "of several kinds", "no volumes"],
)
def test_claims_with_something_particular_are_left_to_others(
    wanted: PersistentVolumeClaim, more: list[PersistentVolume]
) -> None:
    assert Smallest(local("a", 0), *more).at_once(wanted) is None


def test_without_the_feature_an_attributes_class_is_left_to_others() -> None:
    lab = Smallest(local("a", 0, attributes_class="gold"))
    wanted = claim(attributes_class="gold")
    assert lab.at_once(wanted) == ["a", None, None, None]
    lab.index = VolumeIndex(lab.store, attributes_classes=False)
    assert lab.at_once(wanted) is None


def test_many_volumes_of_many_rows_are_left_to_others() -> None:
    everywhere = [volume(f"v{number}") for number in range(20)]
    lab = Smallest(*everywhere, hosts=20)
    assert lab.at_once(claim()) is None
    for each in everywhere[1:]:
        lab.store.put(local(each.metadata.name, 3, version="2"))
    assert lab.at_once(claim()) == ["v0"] * 20


_changes = st.lists(
    st.one_of(
        st.builds(
            volume,
            st.sampled_from("abcdefgh"),
            size=st.sampled_from(["1Gi", "2Gi", "3Gi"]),
            reach=st.one_of(
                st.none(),
                st.integers(0, 5).map(lambda number: [on_hosts(f"n{number}")]),
                st.sampled_from("ab").map(lambda zone: [in_zones(zone)]),
            ),
            kept_for=st.sampled_from(["", "", "", "c", "another"]),
            phase=st.sampled_from(["Available", "Available", "Released"]),
            volume_mode=st.sampled_from([None, None, "Block"]),
        ),
        st.sampled_from("abcdefgh"),
        st.builds(host, st.sampled_from(["n0", "n4", "n5"]), zone=st.sampled_from("ab")),
        st.sampled_from(["n0", "n3"]).map(lambda name: ("remove", name)),
    ),
    max_size=30,
)


@given(changes=_changes, wanted=st.sampled_from(["1Gi", "2Gi", "3Gi"]))
@settings(max_examples=150, deadline=None)
def test_in_one_operation_is_as_one_by_one_whatever_happens(
    changes: list[PersistentVolume | Node | str | tuple[str, str]], wanted: str
) -> None:
    lab = Smallest(local("first", 0), local("second", 1))
    for change in changes:
        match change:
            case PersistentVolume():
                lab.store.put(change)
            case Node():
                lab.cluster.put_node(change)
            case str():
                lab.store.remove(volume(change))
            case (_, name) if lab.cluster.table.row_of(name) is not None:
                lab.cluster.remove_node(name)
        found = lab.at_once(claim(size=wanted))
        if found is not None:
            assert found == lab.one_by_one(claim(size=wanted))
        lab.index.validate()
