"""What is taken of devices, by claims and by decisions that are not written yet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.resource import DeviceRequestAllocationResult
from kubesched.cluster.device_uses import DEDICATED, UNUSED, DeviceUses
from kubesched.errors import InvariantError
from tests.support.device_objects import DRIVER, result

A = (DRIVER, "n1", "a")
GIB = 2**30 * 10**9


def shared(name: str, share: str, memory: str) -> DeviceRequestAllocationResult:
    return result(name, share=share, consumed={"memory": memory})


def test_a_device_is_taken_as_a_whole_or_in_shares() -> None:
    uses = DeviceUses()
    uses.take((result("a"), shared("b", "1", "1Gi"), shared("b", "2", "2Gi")))
    whole, parts = uses.of(A), uses.of((DRIVER, "n1", "b"))
    assert whole is not None
    assert parts is not None
    assert (whole.dedicated, whole.shares) == (1, 0)
    assert (parts.dedicated, parts.shares, parts.consumed) == (0, 2, {"memory": 3 * GIB})
    uses.give_back((shared("b", "1", "1Gi"),))
    assert parts.consumed == {"memory": 2 * GIB}


def test_levels_are_equal_where_equal_amounts_are_taken() -> None:
    uses = DeviceUses()
    uses.take((result("a"), result("b"), shared("c", "1", "1Gi"), shared("d", "2", "1Gi")))
    uses.take((shared("e", "3", "2Gi"),))
    a, b, c, d, e, free = uses.levels((DRIVER, "n1", name) for name in "abcdef")
    assert (free, a, b) == (UNUSED, DEDICATED, DEDICATED)
    assert c == d
    assert len({free, a, c, e}) == 4


def test_what_is_given_back_is_free() -> None:
    uses = DeviceUses()
    uses.take((result("a"),))
    uses.give_back((result("a"),))
    assert uses.of(A) is None
    assert len(uses) == 0


def test_pools_are_in_use_while_something_of_a_device_is_taken() -> None:
    uses = DeviceUses()
    uses.take((result("a"), shared("b", "1", "1Gi"), shared("b", "2", "1Gi")))
    assert list(uses.pools) == [A[:2]]
    uses.give_back((result("a"), shared("b", "1", "1Gi")))
    assert list(uses.pools) == [A[:2]]
    uses.give_back((shared("b", "2", "1Gi"),))
    assert not uses.pools


def test_administrators_take_nothing() -> None:
    uses = DeviceUses()
    uses.take((result("a", admin=True),))
    assert uses.of(A) is None
    assert uses.changes.position == 0


def test_each_change_of_a_pool_is_recorded_and_numbered() -> None:
    uses = DeviceUses()
    start, pool = uses.changes.position, (DRIVER, "n1")
    uses.take((result("a"), result("x", "n2")))
    assert uses.changes.since(start) == [pool, (DRIVER, "n2")]
    before = uses.version_of(pool)
    uses.give_back((result("a"),))
    assert uses.version_of(pool) != before


def test_an_amount_that_cannot_be_read_takes_nothing() -> None:
    uses = DeviceUses()
    uses.take((shared("a", "1", "much"),))
    found = uses.of(A)
    assert found is not None
    assert (found.shares, found.consumed) == (1, {})


results = st.builds(
    lambda name, share: result(name) if not share else shared(name, share, "1Gi"),
    st.sampled_from("ab"),
    st.sampled_from(["", "1", "2"]),
)


@given(st.lists(st.lists(results, max_size=3).map(tuple), max_size=6), st.data())
def test_the_sum_is_what_is_left(
    taken: list[tuple[DeviceRequestAllocationResult, ...]], data: st.DataObject
) -> None:
    uses, left = DeviceUses(), list(taken)
    for each in taken:
        uses.take(each)
    while left:
        uses.validate(left)
        uses.give_back(left.pop(data.draw(st.integers(0, len(left) - 1))))
    uses.validate([])
    assert len(uses) == 0


def test_validation_finds_what_is_not_so() -> None:
    uses = DeviceUses()
    uses.take((result("a"),))
    with pytest.raises(InvariantError):
        uses.validate([])
