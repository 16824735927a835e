"""Devices that drivers have to get ready before a pod that claims them can be bound."""

from __future__ import annotations

from datetime import datetime

from kubesched.api.resource import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from kubesched.errors import ObjectError

FAILED = "device binding failed"
TIMED_OUT = "device binding timeout"


class BindingFailedError(ObjectError):
    """A driver reports that it cannot prepare a device."""


class BindingTimeoutError(ObjectError):
    """A driver did not get a device ready in time."""


def has_conditions(claim: ResourceClaim) -> bool:
    """Return whether drivers have to prepare devices of a claim."""
    return bool(with_conditions(claim))


def with_conditions(claim: ResourceClaim) -> list[DeviceRequestAllocationResult]:
    """Return the devices of a claim that drivers have to get ready."""
    allocation = claim.status.allocation
    if allocation is None:
        return []
    return [each for each in allocation.devices.results if each.binding_conditions]


def is_ready(claim: ResourceClaim) -> bool:
    """Return whether all devices of a claim are ready; raises BindingFailedError if one failed."""
    if claim.status.allocation is None:
        return False
    for result in with_conditions(claim):
        status = _status_of(claim, result)
        if status is None:
            return False
        true = {each.type: each for each in status.conditions if each.status == "True"}
        for failure in result.binding_failure_conditions:
            if failure in true:
                what = true[failure]
                raise BindingFailedError(
                    f"{FAILED}: claim={claim.metadata.name}, reason={what.reason}, "
                    f"message={_quoted(what.message)}"
                )
        if not all(each in true for each in result.binding_conditions):
            return False
    return True


def is_late(claim: ResourceClaim, *, now: float, timeout_s: float) -> bool:
    """Return whether drivers exceeded the timeout for preparing the devices of a claim."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not has_conditions(claim):
        return False
    try:
        allocated_at = datetime.fromisoformat(allocation.allocation_timestamp).timestamp()
    except ValueError:
        return False
    return allocated_at + timeout_s < now


def _status_of(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> AllocatedDeviceStatus | None:
    wanted = result.driver, result.pool, result.device
    found = (
        each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted
    )
    return next(found, None)


def _quoted(text: str) -> str:
    """Quote a text as Go does."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    )
    return f'"{escaped}"'
