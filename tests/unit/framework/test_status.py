"""Statuses: codes, reasons, and what they mean together."""

from __future__ import annotations

import pytest

from kubesched.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)


@pytest.mark.parametrize(
    ("code", "number", "label", "rejected"),
    [
        (Code.SUCCESS, 0, "Success", False),
        (Code.ERROR, 1, "Error", False),
        (Code.UNSCHEDULABLE, 2, "Unschedulable", True),
        (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 3, "UnschedulableAndUnresolvable", True),
        (Code.WAIT, 4, "Wait", False),
        (Code.SKIP, 5, "Skip", False),
        (Code.PENDING, 6, "Pending", True),
    ],
)
def test_codes_are_kubernetes_codes(code: Code, number: int, label: str, rejected: bool) -> None:
    assert (int(code), code.label) == (number, label)
    assert Status(code).rejected is rejected
    assert Status(code).ok is (code is Code.SUCCESS)


def test_the_message_is_all_reasons() -> None:
    assert unschedulable("one", "two").message == "one, two"
    assert SUCCESS.message == ""


def test_equal_answers_are_equal_and_the_author_counts() -> None:
    assert unresolvable("a") == unresolvable("a")
    assert unresolvable("a") != unschedulable("a")
    assert unresolvable("a").by("X") == Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("a",), plugin="X"
    )
    assert unresolvable("a").by("X") != unresolvable("a").by("Y")
    assert error("a").code is Code.ERROR
    assert SKIP.code is Code.SKIP
