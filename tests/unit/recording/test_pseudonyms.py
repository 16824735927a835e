"""Pseudonyms: the same for the same, different for different, in order where order matters."""

from __future__ import annotations

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from kubesched.recording.pseudonyms import OrderedPseudonyms, Pseudonyms

NAMES = st.text(alphabet="abz019-.", max_size=6)


@given(st.lists(NAMES))
def test_pseudonyms_are_equal_if_and_only_if_names_are(names: list[str]) -> None:
    pseudonyms = Pseudonyms()
    found = [pseudonyms.of(each) for each in names]
    for name, hidden in zip(names, found, strict=True):
        assert pseudonyms.of(name) == hidden
        # As long as any other, and without what most of the names here have in them; among random
        # letters there may be any short word.
        assert re.fullmatch("x[a-z2-7]{13}", hidden) if name else hidden == ""
    assert len(set(found)) == len(set(names))


def test_a_pseudonym_is_a_valid_name_and_no_number() -> None:
    hidden = Pseudonyms().of("4711")
    assert hidden.isalnum()
    assert hidden.islower()
    assert hidden[0].isalpha()
    assert len(hidden) < 63


def test_nothing_stays_nothing() -> None:
    assert Pseudonyms().of("") == ""
    assert OrderedPseudonyms().of("") == ""


def test_each_process_has_pseudonyms_of_its_own() -> None:
    assert Pseudonyms().of("node-1") != Pseudonyms().of("node-1")


@given(NAMES, NAMES, st.sampled_from("-/"))
def test_the_pseudonym_of_joined_names_is_joined_pseudonyms(
    pod: str, volume: str, sign: str
) -> None:
    pseudonyms = Pseudonyms()
    joined = pseudonyms.joined(f"{pod}{sign}{volume}")
    assert joined == f"{pseudonyms.joined(pod)}{sign}{pseudonyms.joined(volume)}"


@given(st.lists(NAMES.filter(bool), unique=True))
def test_ordered_pseudonyms_have_the_order_of_the_names(names: list[str]) -> None:
    pseudonyms = OrderedPseudonyms()
    for each in names:
        pseudonyms.of(each)
    hidden = [pseudonyms.of(each) for each in sorted(names)]
    assert hidden == sorted(hidden)
    assert len(set(hidden)) == len(names)


def test_ordered_pseudonyms_stay_short() -> None:
    names = [f"pv-{number:05d}" for number in range(3000)]
    shuffled = random.Random(0).sample(names, len(names))
    for order in (names, names[::-1], shuffled):
        pseudonyms = OrderedPseudonyms()
        pseudonyms.of("zz-last")
        pseudonyms.of("aa-first")
        assert max(len(pseudonyms.of(each)) for each in order) < 30
        assert sorted(names, key=pseudonyms.of) == names


def test_between_any_two_there_is_always_room() -> None:
    pseudonyms = OrderedPseudonyms()
    low, high = pseudonyms.of("a"), pseudonyms.of("b")
    name = "a"
    for _ in range(200):
        name += "a"  # each is right after the last
        hidden = pseudonyms.of(name)
        assert low < hidden < high
        low = hidden
