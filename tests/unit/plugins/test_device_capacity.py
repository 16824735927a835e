"""How much of a device's capacities a request takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api import quantity
from kubesched.api.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)
from kubesched.plugins.device_capacity import CapacityError, consumed, fits

FROM_2_BY_3 = CapacityRequestPolicyRange(min="2", max="11", step="3")


def capacity(value: str = "20", **policy: object) -> dict[str, DeviceCapacity]:
    made = CapacityRequestPolicy(**policy) if policy else None  # type: ignore[arg-type]
    return {"m": DeviceCapacity(value=value, request_policy=made)}


def taken(
    request: str | None, of: dict[str, DeviceCapacity], *, fractional: bool = False
) -> object:
    asked = {} if request is None else {"m": request}
    return consumed(asked, of, fractional=fractional)["m"]


@pytest.mark.parametrize(
    ("request_", "of", "want"),
    [
        (None, capacity("5Gi"), "5Gi"),
        (None, capacity("5Gi", default="1Gi"), "1Gi"),
        ("2Gi", capacity("5Gi"), "2Gi"),
        ("1", capacity(valid_range=FROM_2_BY_3), "2"),
        ("2", capacity(valid_range=FROM_2_BY_3), "2"),
        ("3", capacity(valid_range=FROM_2_BY_3), "5"),
        ("6", capacity(valid_range=FROM_2_BY_3), "8"),
        ("3", capacity(valid_range=CapacityRequestPolicyRange(min="2")), "3"),
        (
            "1500Mi",
            capacity("9Gi", valid_range=CapacityRequestPolicyRange(min="1Gi", step="1Gi")),
            "2Gi",
        ),
        ("3", capacity(valid_values=("1", "4", "8")), "4"),
        ("9", capacity(valid_values=("1", "4", "8")), "9"),
    ],
)
def test_a_request_is_rounded_up_to_what_may_be_asked_for(
    request_: str | None, of: dict[str, DeviceCapacity], want: str
) -> None:
    assert taken(request_, of) == want


@pytest.mark.parametrize(
    ("request_", "of", "want"),
    [
        ("20", capacity(), True),
        ("21", capacity(), False),
        ("11", capacity(valid_range=FROM_2_BY_3), True),
        ("12", capacity(valid_range=FROM_2_BY_3), False),
        ("9", capacity(valid_values=("1", "4", "8")), False),
        (None, capacity(default="7", valid_values=("1", "4")), True),
    ],
)
def test_what_may_not_be_asked_for_or_is_not_there_does_not_fit(
    request_: str | None, of: dict[str, DeviceCapacity], want: bool
) -> None:
    asked = {} if request_ is None else {"m": request_}
    assert fits(asked, of, taken={}, fractional=False) == want


def test_what_others_have_taken_counts() -> None:
    assert fits({"m": "5"}, capacity(), taken={"m": quantity.nano("15")}, fractional=False)
    assert not fits({"m": "5"}, capacity(), taken={"m": quantity.nano("16")}, fractional=False)


def test_another_device_may_have_a_capacity_that_this_one_lacks() -> None:
    assert not fits({"other": "1"}, capacity(), taken={}, fractional=False)


def test_thousandths_are_counted_if_the_range_has_them() -> None:
    halves = capacity(valid_range=CapacityRequestPolicyRange(min="500m", step="500m"))
    assert taken("600m", halves, fractional=True) == "1"
    assert taken("1100m", halves, fractional=True) == "1500m"
    assert taken("600m", halves) == "1"
    with pytest.raises(CapacityError, match="request 1n is not a representable milli value"):
        taken(
            "1n",
            capacity(valid_range=CapacityRequestPolicyRange(min="0", step="1m")),
            fractional=True,
        )


@pytest.mark.parametrize(
    ("request_", "of", "text"),
    [
        (
            "10E",
            capacity(valid_range=CapacityRequestPolicyRange(min="0", step="1")),
            "request 10E exceeds MaxInt64",
        ),
        (
            "9223372036854775807",
            capacity(valid_range=CapacityRequestPolicyRange(min="0", step="2")),
            "rounding request 9223372036854775807 up to the next step passes MaxInt64",
        ),
        ("-1", capacity(), "capacity value is negative"),
    ],
)
def test_what_cannot_be_counted_is_an_error_that_names_the_capacity(
    request_: str, of: dict[str, DeviceCapacity], text: str
) -> None:
    with pytest.raises(CapacityError, match=text) as failed:
        taken(request_, of)
    assert str(failed.value).startswith('capacity "m": ')


@given(st.integers(0, 1000), st.integers(0, 50), st.integers(1, 50))
def test_rounding_up_gives_the_next_step(asked: int, least: int, step: int) -> None:
    valid = CapacityRequestPolicyRange(min=str(least), step=str(step))
    got = quantity.value(str(taken(str(asked), capacity("9999", valid_range=valid))))
    assert got >= max(asked, least)
    assert (got - least) % step == 0
    assert got - max(asked, least) < step
    assert fits({"m": str(asked)}, capacity("9999", valid_range=valid), taken={}, fractional=False)
