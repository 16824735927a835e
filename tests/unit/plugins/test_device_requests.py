"""What claims ask for, compiled once for all that ask the same."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.resource import DeviceRequest, DeviceSelector, ExactDeviceRequest, ResourceClaim
from kubesched.plugins.device_requests import AllocationError, asked_for
from tests.support.device_objects import (
    DRIVER,
    alternative,
    claim,
    device,
    different,
    first_of,
    request,
    same,
    slice_of,
)

from .device_lab import Bench


def bench() -> Bench:
    return Bench(slice_of("s", device("a"), node="n1"))


def test_claims_that_differ_in_name_only_ask_for_the_same() -> None:
    assert asked_for(claim("a", request())) == asked_for(claim("b", request()))
    assert asked_for(claim("a", request())) != asked_for(claim("a", request(count=2)))
    one = claim("a", request(), constraints=[same("x")])
    assert asked_for(one) != asked_for(claim("a", request()))


def test_requests_with_the_same_selectors_share_what_is_known_of_devices() -> None:
    wanted = bench().wanted(
        claim("c", request("r0", "true"), request("r1", "true", count=3)),
        claim("d", request("r", "false")),
    )
    first, second = wanted.claims[0].requests[0][0], wanted.claims[0].requests[1][0]
    assert first.match is second.match
    assert len(wanted.matches) == 2


def test_attributes_that_constraints_compare_are_listed_once() -> None:
    claims = [
        claim("c", request(), constraints=[same("x"), different("y")]),
        claim("d", request(), constraints=[same("x")]),
    ]
    assert bench().wanted(*claims).compared == (f"{DRIVER}/x", f"{DRIVER}/y")


def test_alternatives_are_named_after_their_request() -> None:
    wanted = bench().wanted(claim("c", first_of("r", alternative("x"), alternative("y"))))
    names = [(each.own_name, each.full_name) for each in wanted.claims[0].requests[0]]
    assert names == [("x", "r/x"), ("y", "r/y")]
    assert wanted.has_alternatives


def exactly(**fields: object) -> ResourceClaim:
    made = request()
    assert made.exactly is not None
    return claim("c", replace(made, exactly=replace(made.exactly, **fields)))


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (
            exactly(device_class_name=""),
            "claim default/c, request r: missing device class name (unsupported request type?)",
        ),
        (
            exactly(device_class_name="x"),
            (
                "claim default/c, request r: could not retrieve device class x: "
                'deviceclass.resource.k8s.io "x" not found'
            ),
        ),
        (
            exactly(selectors=(DeviceSelector(),)),
            (
                "claim default/c, request r, selector #0: CEL expression empty (unsupported "
                "selector type?)"
            ),
        ),
        (
            exactly(allocation_mode="Some"),
            "claim default/c, request r: unsupported count mode Some",
        ),
    ],
)
def test_what_is_wrong_with_a_request_is_told(asked: ResourceClaim, text: str) -> None:
    assert bench().failure(asked) == text


def test_what_the_api_server_fills_in_is_filled_in() -> None:
    bare = DeviceRequest(name="r", exactly=ExactDeviceRequest(device_class_name="gpu"))
    (wanted,) = bench().wanted(claim("c", bare)).claims[0].requests[0]
    assert (wanted.count, wanted.is_all, wanted.problem) == (1, False, "")


def test_an_error_names_the_claim_only_if_it_is_about_one() -> None:
    about = AllocationError(": broken", claim=1)
    assert about.message(["default/a", "default/b"]) == "claim default/b: broken"
    assert AllocationError("class x: broken").message(["default/a"]) == "class x: broken"
