"""Which devices may draw on the same counters at the same time."""

from __future__ import annotations

from kubesched.api.resource import DeviceCounterConsumption
from kubesched.plugins.compatibility_groups import NO_GROUP, groups_of, joined, seeded

A, B, AB = frozenset("a"), frozenset("b"), frozenset("ab")


def test_devices_without_groups_are_a_group_of_their_own() -> None:
    assert groups_of(DeviceCounterConsumption()) == NO_GROUP
    assert groups_of(DeviceCounterConsumption(compatibility_groups=("a", "b"))) == AB


def test_any_device_may_be_the_first() -> None:
    assert joined(None, A) == A
    assert joined(None, NO_GROUP) == NO_GROUP


def test_all_devices_need_a_group_in_common() -> None:
    assert joined(AB, A) == A
    assert joined(A, B) is None


def test_devices_with_groups_and_without_do_not_go_together() -> None:
    assert joined(NO_GROUP, NO_GROUP) == NO_GROUP
    assert joined(NO_GROUP, A) is None
    assert joined(A, NO_GROUP) is None


def test_of_allocated_devices_that_do_not_go_together_the_first_decides() -> None:
    assert seeded(None, A) == A
    assert seeded(AB, B) == B
    assert seeded(NO_GROUP, A) == NO_GROUP
    assert seeded(A, NO_GROUP) == A
    assert seeded(A, B) == frozenset(), "with which no device goes together"
