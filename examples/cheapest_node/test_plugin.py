"""CheapestNode, on a cluster of a few nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubesched.errors import ConfigError
from kubesched.testing import Workbench, make_node, plugin_checks

from .plugin import CheapestNode

PRICE = "example.com/price"


def test_the_cheapest_node_wins(cluster: Workbench) -> None:
    cluster.use(CheapestNode, weight=5)
    cluster.node("dear", labels={PRICE: "1.20"})
    cluster.node("cheap", labels={PRICE: "0.34"})
    cluster.node("unknown")

    cluster.pod(cpu=1).lands_on("cheap")


def test_a_node_that_is_full_is_no_bargain(cluster: Workbench) -> None:
    cluster.use(CheapestNode, weight=5)
    cluster.node("dear", labels={PRICE: "1.20"})
    cluster.node("cheap", cpu=2, labels={PRICE: "0.34"})
    cluster.pod(cpu=2, node="cheap")

    placement = cluster.pod(cpu=1).lands_on("dear")

    assert placement.refused == {"cheap": "Insufficient cpu"}


def test_the_label_can_be_another_one(cluster: Workbench) -> None:
    cluster.use(CheapestNode, weight=5, args={"priceLabel": "cost"})
    cluster.node("dear", labels={"cost": "7", PRICE: "1"})
    cluster.node("cheap", labels={"cost": "3", PRICE: "2"})

    cluster.pod(cpu=1).lands_on("cheap")


def test_a_price_that_is_none_is_told_with_file_and_line(cluster: Workbench) -> None:
    cluster.use(CheapestNode)
    cluster.nodes(2, labels={PRICE: "free"})

    cluster.pod().stays_pending_because("ValueError: could not convert string to float: 'free'")


def test_arguments_that_make_no_sense_are_refused(cluster: Workbench) -> None:
    cluster.use(CheapestNode, args={"unknownPrice": -1})
    cluster.nodes(2)

    with pytest.raises(ConfigError, match='plugin "CheapestNode": args: unknownPrice must not be'):
        cluster.schedule(cluster.pod())


CHECKS = plugin_checks(
    CheapestNode,
    nodes=[make_node(f"at-{price}", labels={PRICE: price}) for price in ("0.34", "1.2")],
)


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in CHECKS])
def test_it_keeps_its_promises(check: Callable[[], None]) -> None:
    check()
