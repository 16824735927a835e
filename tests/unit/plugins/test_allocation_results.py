"""What is written into a claim."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import NodeSelector
from kubesched.api.resource import (
    AllocationResult,
    DeviceClaimConfiguration,
    DeviceClassConfiguration,
    OpaqueDeviceConfiguration,
    ResourceClaim,
)
from kubesched.errors import ObjectError
from kubesched.plugins.allocation_results import allocation_result
from kubesched.plugins.device_rules import SearchRules
from kubesched.plugins.device_search import Pick
from tests.support.device_objects import (
    alternative,
    capacity,
    claim,
    device,
    device_class,
    first_of,
    request,
    slice_of,
)
from tests.support.objects import node, requirement, term

from .device_lab import Bench

SSD, ZONE = requirement("disk", "In", "ssd"), requirement("zone", "In", "b", "a")
OF_CLASS = OpaqueDeviceConfiguration(driver="of class")
OF_CLAIM = OpaqueDeviceConfiguration(driver="of claim")


def got(asked: ResourceClaim, *objects: Any) -> AllocationResult:
    bench = Bench(*objects)
    found = bench.solve(asked)
    assert found is not None
    (wanted,) = bench.wanted(asked).claims
    chosen = [group[n] for group, n in zip(wanted.requests, found.chosen[0], strict=True)]
    return allocation_result(
        asked.spec.devices,
        found.picks[0],
        chosen,
        table=bench.cluster.devices.table,
        node_name="n1",
        rules=SearchRules(),
    )


def on(*terms: Any) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


def test_a_result_names_request_and_device() -> None:
    made = got(
        claim("c", first_of("r", alternative("s")), request("admin", admin=True)),
        slice_of(
            "s", device("a", conditions=["Ready"], failures=["Failed"]), device("b"), node="n1"
        ),
    )
    one, two = made.devices.results
    assert (one.request, one.driver, one.pool, one.device) == ("r/s", "gpu.example.com", "n1", "a")
    assert (one.binding_conditions, one.binding_failure_conditions) == (("Ready",), ("Failed",))
    assert (one.admin_access, two.admin_access) == (None, True)
    assert one.share_id is None


def test_a_share_has_an_id_of_its_own_and_says_what_it_takes() -> None:
    policy = {"m": capacity("4", default="1")}
    shared = slice_of("s", device("a", capacities=policy, shareable=True), node="n1")
    one, two = got(claim("c", request("r0"), request("r1")), shared).devices.results
    assert one.share_id != two.share_id
    assert one.consumed_capacity == {"m": "1"}


@pytest.mark.parametrize(
    ("made", "want"),
    [
        (slice_of("s", device("a"), node="n1"), "n1"),
        (slice_of("s", device("a"), everywhere=True), None),
        (slice_of("s", device("a", binds=True), everywhere=True), "n1"),
        (slice_of("s", device("a", node="n1"), per_device=True), "n1"),
        (slice_of("s", device("a", everywhere=True), per_device=True), None),
    ],
)
def test_devices_of_one_node_are_for_that_node(made: Any, want: str | None) -> None:
    selector = got(claim("c", request()), made).node_selector
    fields = [] if selector is None else selector.node_selector_terms[0].match_fields
    assert [each.values for each in fields] == ([] if want is None else [(want,)])


def test_what_devices_ask_of_nodes_is_joined() -> None:
    bench = [
        slice_of("s", device("a"), selector=on(term(SSD))),
        slice_of("t", device("b"), selector=on(term(SSD, ZONE))),
    ]
    with_labels = Bench(*bench)
    with_labels.cluster.put_node(node("n1", labels={"disk": "ssd", "zone": "a"}))
    found = with_labels.solve(claim("c", request(count=2)))
    assert found is not None
    made = allocation_result(
        claim("c", request(count=2)).spec.devices,
        found.picks[0],
        [],
        table=with_labels.cluster.devices.table,
        node_name="n1",
        rules=SearchRules(),
    )
    assert made.node_selector == on(term(SSD, ZONE))


def test_more_than_one_term_cannot_be_written() -> None:
    bench = Bench(slice_of("s", device("a"), selector=on(term(SSD), term(ZONE))))
    table = bench.cluster.devices.table
    (wanted,) = bench.wanted(claim("c", request())).claims
    with pytest.raises(ObjectError, match=r"unsupported ResourceSlice\.NodeSelector with 2 terms"):
        allocation_result(
            claim("c").spec.devices,
            [Pick(wanted.requests[0][0], 0, None)],
            [],
            table=table,
            node_name="n1",
            rules=SearchRules(),
        )


def configured(*about: tuple[str, ...]) -> ResourceClaim:
    made = claim("c", request("r0"), first_of("r1", alternative("s"), alternative("t")))
    config = tuple(DeviceClaimConfiguration(requests=each, opaque=OF_CLAIM) for each in about)
    devices = replace(made.spec.devices, config=config)
    return replace(made, spec=replace(made.spec, devices=devices))


def test_configuration_of_classes_comes_once_and_then_that_of_the_claim() -> None:
    with_config = device_class()
    spec = replace(with_config.spec, config=(DeviceClassConfiguration(opaque=OF_CLASS),))
    gpus = slice_of("s", device("a"), device("b"), node="n1")
    asked = configured((), ("r0",), ("r1/s",), ("r1/t",), ("r0", "r1"), ("r0", "r1/s"))
    config = got(asked, replace(with_config, spec=spec), gpus).devices.config
    assert [(each.source, each.requests) for each in config] == [
        ("FromClass", ()),
        ("FromClaim", ()),
        ("FromClaim", ("r0",)),
        ("FromClaim", ("r1/s",)),
        ("FromClaim", ()),
        ("FromClaim", ()),
    ]
