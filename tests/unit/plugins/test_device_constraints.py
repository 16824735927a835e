"""Which devices may be chosen together, given a constraint."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubesched.api.resource import DeviceAttribute, DeviceConstraint
from kubesched.plugins.device_constraints import Constraint, comparable, find_attribute
from tests.support.device_objects import DRIVER, attribute, device, different, same

VERSION = DeviceAttribute(version_value="1.0.0")
UNKNOWN = DeviceAttribute()


def matching(*, has_lists: bool = False) -> Constraint:
    return Constraint(same("x"), has_lists=has_lists)


def distinct(*, has_lists: bool = False) -> Constraint:
    return Constraint(different("x"), has_lists=has_lists)


@pytest.mark.parametrize("has_lists", [False, True])
def test_devices_match_by_type_and_value(has_lists: bool) -> None:
    constraint = matching(has_lists=has_lists)
    assert constraint.add(attribute(1))
    assert constraint.add(attribute(1))
    assert not constraint.add(attribute(2))
    assert not constraint.add(attribute(value=True)), "True is not 1"
    assert not constraint.add(attribute("1"))
    assert not constraint.add(VERSION)
    assert not constraint.add(None), "a device without the attribute never matches"


@pytest.mark.parametrize("has_lists", [False, True])
def test_distinct_devices_differ_from_all_that_were_chosen(has_lists: bool) -> None:
    constraint = distinct(has_lists=has_lists)
    assert constraint.add(attribute("a"))
    assert constraint.add(attribute("b"))
    assert not constraint.add(attribute("a"))
    assert constraint.add(attribute(1))
    assert not constraint.add(None)


def test_a_choice_can_be_taken_back() -> None:
    constraint = matching()
    assert constraint.add(attribute("a"))
    constraint.remove()
    assert constraint.add(attribute("b"))


def test_lists_have_to_share_a_value_among_all_of_them() -> None:
    constraint = matching(has_lists=True)
    assert constraint.add(attribute([1, 2, 3]))
    assert constraint.add(attribute([2, 3, 4]))
    assert not constraint.add(attribute([1, 4])), "each shares a value with one of the two only"
    assert constraint.add(attribute(3)), "a value is a list of one"
    assert not constraint.add(attribute([2]))
    constraint.remove()
    assert constraint.add(attribute([2])), "what was narrowed is wide again"
    assert not constraint.add(attribute(["2"]))


def test_distinct_lists_share_no_value_pairwise() -> None:
    constraint = distinct(has_lists=True)
    assert constraint.add(attribute(["a", "b"]))
    assert constraint.add(attribute(["c"]))
    assert not constraint.add(attribute(["d", "b"]))
    assert constraint.add(attribute([1]))
    constraint.remove()
    constraint.remove()
    assert constraint.add(attribute(["c", "d"]))


@pytest.mark.parametrize("constraint", [matching(), distinct()])
def test_without_the_gate_a_list_can_only_be_alone(constraint: Constraint) -> None:
    assert constraint.add(attribute([1, 2]))
    assert not constraint.add(attribute([1, 2]))


@pytest.mark.parametrize("make", [matching, distinct])
def test_with_the_gate_an_attribute_without_a_value_is_refused(
    make: Callable[..., Constraint],
) -> None:
    assert make(has_lists=False).add(UNKNOWN)
    assert not make(has_lists=True).add(UNKNOWN)


def test_a_constraint_concerns_the_requests_that_it_names() -> None:
    everything = Constraint(DeviceConstraint(match_attribute="d/x"))
    assert everything.concerns("r", "")
    some = Constraint(DeviceConstraint(match_attribute="d/x", requests=("r", "s/one")))
    assert some.concerns("r", "")
    assert some.concerns("r", "any")
    assert some.concerns("s", "one")
    assert not some.concerns("s", "two")
    assert not some.concerns("s", "")


def test_what_matters_of_a_device_is_its_values() -> None:
    with_lists, without = matching(has_lists=True), matching()
    assert with_lists.value_of(attribute([2, 1])) == ("int", frozenset({1, 2}))
    assert without.value_of(attribute([2, 1])) is None
    assert without.value_of(None) is False
    assert comparable(VERSION) == ("version", frozenset({"1.0.0"}))


def test_an_attribute_without_a_domain_has_the_drivers() -> None:
    made = device("a", x=1)
    assert find_attribute(made, DRIVER, f"{DRIVER}/x") == attribute(1)
    assert find_attribute(made, DRIVER, "other.example.com/x") is None
    assert find_attribute(made, DRIVER, "x") == attribute(1)
