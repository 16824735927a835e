"""When drivers have the devices of a claim ready, when they failed, and when they are late."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceCondition,
    ResourceClaim,
)
from kubesched.plugins.binding_conditions import (
    BindingFailedError,
    has_conditions,
    is_late,
    is_ready,
    with_conditions,
)
from tests.support.device_objects import DRIVER, allocated, claim, result

SLOW = result("a", conditions=["Attached", "Ready"], failures=["Broken"])


def said(made: ResourceClaim, device: str, message: str = "", **conditions: str) -> ResourceClaim:
    """A claim of whose device a driver says something."""
    status = AllocatedDeviceStatus(
        driver=DRIVER,
        pool="n1",
        device=device,
        conditions=tuple(
            DeviceCondition(type=name, status=value, reason="Why", message=message)
            for name, value in conditions.items()
        ),
    )
    return replace(made, status=replace(made.status, devices=(*made.status.devices, status)))


def test_devices_without_conditions_are_ready_at_once() -> None:
    made = allocated(claim("c"), result("a"))
    assert not has_conditions(made)
    assert is_ready(made)


def test_a_claim_without_devices_is_not_ready() -> None:
    assert not has_conditions(claim("c"))
    assert not is_ready(claim("c"))


def test_all_conditions_of_all_devices_have_to_be_true() -> None:
    made = allocated(claim("c"), SLOW, result("b", conditions=["Ready"]), result("plain"))
    assert [each.device for each in with_conditions(made)] == ["a", "b"]
    assert not is_ready(made), "no driver says anything"
    made = said(made, "a", Attached="True", Ready="False")
    assert not is_ready(made)
    made = said(
        replace(made, status=replace(made.status, devices=())), "a", Attached="True", Ready="True"
    )
    assert not is_ready(made), "the other device is not"
    assert is_ready(said(made, "b", Ready="True"))


def test_a_failure_is_told_in_the_drivers_words() -> None:
    made = said(allocated(claim("c"), SLOW), "a", message='no "x"\n', Broken="True", Ready="True")
    text = r'device binding failed: claim=c, reason=Why, message="no \\"x\\"\\n"'
    with pytest.raises(BindingFailedError, match=text):
        is_ready(made)
    assert not is_ready(said(allocated(claim("c"), SLOW), "a", Broken="False", Ready="True"))


@pytest.mark.parametrize(
    ("allocated_at", "now", "want"),
    [
        ("2025-01-01T00:00:00Z", 1735689600 + 600, False),
        ("2025-01-01T00:00:00Z", 1735689600 + 601, True),
        ("no time", 1735689600 + 10**9, False),
        (None, 1735689600 + 10**9, False),
    ],
)
def test_drivers_have_their_time_from_the_allocation_on(
    allocated_at: str | None, now: float, want: bool
) -> None:
    made = allocated(claim("c"), SLOW)
    allocation = made.status.allocation
    assert isinstance(allocation, AllocationResult)
    given = replace(allocation, allocation_timestamp=allocated_at)
    made = replace(made, status=replace(made.status, allocation=given))
    assert is_late(made, now=now, timeout_s=600) is want


def test_a_claim_that_nothing_has_to_be_done_for_is_never_late() -> None:
    made = allocated(claim("c"), result("a"))
    assert not is_late(made, now=10.0**10, timeout_s=1)
