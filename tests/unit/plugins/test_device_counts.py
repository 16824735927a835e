"""Devices of a class by node, as scoring by an extended resource counts them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kubesched.api.core import NodeSelector
from kubesched.cluster.cluster import Cluster
from kubesched.plugins.device_counts import CountedDevices
from kubesched.plugins.device_selectors import compile_selector
from tests.support.device_objects import (
    DRIVER,
    allocated,
    claim,
    device,
    device_class,
    fill,
    request,
    result,
    slice_of,
    taint,
)
from tests.support.objects import named, node

RESOURCE = "example.com/gpu"
LARGE = f"device.attributes['{DRIVER}'].size == 'large'"
BACKED = device_class("gpu", resource=RESOURCE)


class Counted:
    """A cluster of three nodes, and the devices that back a resource on each."""

    def __init__(self, *objects: Any) -> None:
        self.cluster = Cluster()
        for name in ("n1", "n2", "n3"):
            self.cluster.put_node(node(name))
        fill(self.cluster, *objects)
        self.devices = CountedDevices(self.cluster.table, self.cluster.devices, compile_selector)

    def __call__(self) -> dict[str, tuple[int, int]]:
        """Node → devices, and how many of them are allocated; only nodes with devices."""
        counts = self.devices.of(RESOURCE)
        assert counts is not None
        there, taken = counts.at(np.arange(self.cluster.table.size))
        counts.validate()
        rows = {name: self.cluster.table.row_of(name) for name in ("n1", "n2", "n3")}
        return {
            name: (int(there[row]), int(taken[row]))
            for name, row in rows.items()
            if row is not None and there[row]
        }


def test_a_resource_that_no_class_backs_has_no_devices() -> None:
    counted = Counted(device_class("gpu"), slice_of("s", device("a"), node="n1"))
    assert counted.devices.of(RESOURCE) is None
    assert counted.devices.epoch([RESOURCE]) is None


def test_devices_count_on_the_node_of_their_slice() -> None:
    counted = Counted(
        BACKED,
        slice_of("one", device("a"), node="n1"),
        slice_of("two", device("a"), device("b"), node="n2"),
    )
    assert counted() == {"n1": (1, 0), "n2": (2, 0)}


def test_selectors_are_not_told_which_devices_can_be_shared() -> None:
    backed = device_class("gpu", "!device.allowMultipleAllocations", resource=RESOURCE)
    slices = slice_of("s", device("a", shareable=True), device("b"), node="n1")
    assert Counted(backed, slices)() == {"n1": (2, 0)}


def test_allocated_devices_are_counted_as_such() -> None:
    counted = Counted(BACKED, slice_of("s", device("a"), device("b"), node="n1"))
    counted()
    made = allocated(claim("c", request()), result("a"))
    fill(counted.cluster, made)
    assert counted() == {"n1": (2, 1)}
    counted.cluster.devices.claims.remove(made)
    assert counted() == {"n1": (2, 0)}


def test_only_devices_that_the_class_selects_count() -> None:
    large = device_class("gpu", LARGE, resource=RESOURCE)
    counted = Counted(
        large, slice_of("s", device("a", size="large"), device("b", size="small"), node="n1")
    )
    assert counted() == {"n1": (1, 0)}


def test_taints_do_not_matter() -> None:
    counted = Counted(BACKED, slice_of("s", device("a", taints=[taint()]), node="n1"))
    assert counted() == {"n1": (1, 0)}


def test_a_node_with_a_device_whose_selector_fails_has_none() -> None:
    large = device_class("gpu", LARGE, resource=RESOURCE)
    counted = Counted(
        large,
        slice_of("bad", device("a", size="large"), device("b"), node="n1"),
        slice_of("good", device("a", size="large"), node="n2"),
    )
    assert counted() == {"n2": (1, 0)}


def test_devices_of_several_nodes_count_on_each() -> None:
    counted = Counted(
        BACKED,
        slice_of("all", device("a"), everywhere=True),
        slice_of(
            "some",
            device("b", node="n1"),
            device("c", selector=NodeSelector(node_selector_terms=(named("n2"),))),
            per_device=True,
        ),
    )
    assert counted() == {"n1": (2, 0), "n2": (2, 0), "n3": (1, 0)}


def test_incomplete_pools_and_old_generations_count_unlike_in_allocation() -> None:
    counted = Counted(
        BACKED,
        slice_of("part", device("a"), node="n1", slices=2),
        slice_of("old", device("a"), node="n2", pool="p", generation=1),
        slice_of("new", device("b"), node="n2", pool="p", generation=2),
    )
    assert counted() == {"n1": (1, 0), "n2": (2, 0)}


def test_a_slice_that_is_deleted_no_longer_counts() -> None:
    published = slice_of("s", device("a"), node="n1")
    counted = Counted(BACKED, published)
    assert counted() == {"n1": (1, 0)}
    counted.cluster.devices.slices.remove(published)
    assert counted() == {}


def test_a_node_that_is_added_later_gets_its_devices() -> None:
    counted = Counted(BACKED, slice_of("s", device("a"), everywhere=True))
    assert counted() == {"n1": (1, 0), "n2": (1, 0), "n3": (1, 0)}
    counted.cluster.remove_node("n3")
    assert counted() == {"n1": (1, 0), "n2": (1, 0)}
    counted.cluster.put_node(node("n3"))
    assert counted() == {"n1": (1, 0), "n2": (1, 0), "n3": (1, 0)}


def test_another_version_of_the_class_is_counted_anew() -> None:
    devices = slice_of("s", device("a", size="large"), device("b", size="small"), node="n1")
    counted = Counted(BACKED, devices)
    assert counted() == {"n1": (2, 0)}
    fill(counted.cluster, device_class("gpu", LARGE, resource=RESOURCE))
    assert counted() == {"n1": (1, 0)}


def test_scores_are_invalidated_by_what_the_counts_depend_on() -> None:
    counted = Counted(BACKED, slice_of("s", device("a"), node="n1"))
    before = counted.devices.epoch([RESOURCE])
    assert before == counted.devices.epoch([RESOURCE, "example.com/other"])
    fill(counted.cluster, allocated(claim("c", request()), result("a")))
    assert counted.devices.epoch([RESOURCE]) != before
