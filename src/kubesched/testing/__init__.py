"""Tests of plugins and configurations: an in-process cluster on the real engine.

    cluster.nodes(10, cpu=4, zones=3)          fixture `cluster` ──> columns, framework, cycle
    cluster.pod(cpu=1).lands_on("n1")                  └──> PodPlacement: node, reasons, score table
    check_plugin(Cheapest)                     random clusters ──> PluginCheckError, or nothing

pytest finds the fixture by itself once the package is installed. So every pytest there imports this
module, and unrelated tests should not wait for NumPy: names are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubesched.testing.conformance import check_plugin, plugin_checks
    from kubesched.testing.device_objects import make_device_claim, make_device_class
    from kubesched.testing.group_under_test import GroupOutcome, GroupUnderTest, make_pod_group
    from kubesched.testing.objects import (
        make_claim,
        make_node,
        make_pod,
        make_storage_class,
        make_volume,
    )
    from kubesched.testing.placement import PodPlacement, PodPlacements
    from kubesched.testing.trial import PluginCheckError
    from kubesched.testing.workbench import PodUnderTest, Workbench

__all__ = [
    "GroupOutcome",
    "GroupUnderTest",
    "PluginCheckError",
    "PodPlacement",
    "PodPlacements",
    "PodUnderTest",
    "Workbench",
    "check_plugin",
    "make_claim",
    "make_device_claim",
    "make_device_class",
    "make_node",
    "make_pod",
    "make_pod_group",
    "make_storage_class",
    "make_volume",
    "plugin_checks",
]

_MODULES = {
    "GroupOutcome": "group_under_test",
    "GroupUnderTest": "group_under_test",
    "make_device_claim": "device_objects",
    "make_device_class": "device_objects",
    "make_pod_group": "group_under_test",
    "PodPlacement": "placement",
    "PodPlacements": "placement",
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
