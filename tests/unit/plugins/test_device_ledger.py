"""Whether a device may join those that a search has chosen, with the features that are alpha."""

from __future__ import annotations

from kubesched.cluster.visible_devices import OPTIONAL_NODE_OPERATIONS
from kubesched.plugins.device_rules import SearchRules
from tests.support.device_objects import claim, device, different, request, same, slice_of

from .device_lab import Bench

LISTS = SearchRules(list_attributes=True)
OPTIONAL = SearchRules(optional_node_operations=True)


# --- lists --------------------------------------------------------------------------------------

LISTED = slice_of(
    "s",
    device("a", sockets=[0, 1]),
    device("b", sockets=[2]),
    device("c", sockets=[1, 2]),
    device("d", sockets=1),
    node="n1",
)


def test_matching_lists_have_a_value_in_common() -> None:
    asked = claim("c", request(count=3), constraints=[same("sockets")])
    assert Bench(LISTED, rules=LISTS).names(asked) == [["a", "c", "d"]]
    assert Bench(LISTED).names(asked) is None, "without the gate, lists cannot be compared"


def test_distinct_lists_have_none_in_common() -> None:
    asked = claim("c", request(count=2), constraints=[different("sockets")])
    assert Bench(LISTED, rules=LISTS).names(asked) == [["a", "b"]]
    assert (
        Bench(LISTED, rules=LISTS).names(
            claim("c", request(count=3), constraints=[different("sockets")])
        )
        is None
    )


def test_selectors_look_into_lists_with_the_gate_and_without() -> None:
    expression = 'device.attributes["gpu.example.com"].sockets.includes(2)'
    for rules in (LISTS, SearchRules()):
        bench = Bench(LISTED, rules=rules)
        assert bench.names(claim("c", request("r", expression, count=2))) == [["b", "c"]]


# --- operations that kubelets leave out ---------------------------------------------------------

SKIPPING = slice_of("s", device("a"), device("b"), node="n1", pool="p", skips=["Prepare"])
OTHER = slice_of("t", device("c"), node="n1", pool="q")


def test_nodes_have_to_be_able_to_leave_operations_out() -> None:
    asked = claim("c", request())
    able = [OPTIONAL_NODE_OPERATIONS]
    assert Bench(SKIPPING, OTHER, rules=OPTIONAL).names(asked) == [["c"]]
    assert Bench(SKIPPING, OTHER, rules=OPTIONAL, features=able).names(asked) == [["a"]]
    assert Bench(SKIPPING, OTHER, rules=LISTS, features=able).names(asked) == [["c"]]
    assert Bench(SKIPPING, OTHER).names(asked) == [["a"]], "the usual allocator does not look"


def test_a_request_for_all_fails_with_a_device_that_cannot_be_taken() -> None:
    asked = claim("c", request(every=True))
    assert Bench(SKIPPING, OTHER, rules=OPTIONAL).names(asked) is None
    able = Bench(SKIPPING, OTHER, rules=OPTIONAL, features=[OPTIONAL_NODE_OPERATIONS])
    assert able.names(asked) == [["a", "b", "c"]]
