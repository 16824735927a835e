"""Tests of plugins and configurations: an in-process cluster on the real engine.

    cluster.nodes(10, cpu=4, zones=3)          fixture `cluster` ──> columns, framework, cycle
    cluster.pod(cpu=1).lands_on("n1")                  └──> Placement: node, reasons, score table
    check_plugin(Cheapest)                     random clusters ──> PluginCheckError, or nothing

pytest finds the fixture by itself once the package is installed. So every pytest there imports this
module, and unrelated tests should not wait for NumPy: names are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubesched.testing.conformance import check_plugin, plugin_checks
    from kubesched.testing.objects import (
        make_claim,
        make_node,
        make_pod,
        make_storage_class,
        make_volume,
    )
    from kubesched.testing.placement import Placement, Placements
    from kubesched.testing.trial import PluginCheckError
    from kubesched.testing.workbench import PodUnderTest, Workbench

__all__ = [
    "Placement",
    "Placements",
    "PluginCheckError",
    "PodUnderTest",
    "Workbench",
    "check_plugin",
    "make_claim",
    "make_node",
    "make_pod",
    "make_storage_class",
    "make_volume",
    "plugin_checks",
]

_MODULES = {
    "Placement": "placement",
    "Placements": "placement",
    "PluginCheckError": "trial",
    "PodUnderTest": "workbench",
    "Workbench": "workbench",
    "check_plugin": "conformance",
    "make_claim": "objects",
    "make_node": "objects",
    "make_pod": "objects",
    "make_storage_class": "objects",
    "make_volume": "objects",
    "plugin_checks": "conformance",
}


def __getattr__(name: str) -> object:
    """Import on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found
