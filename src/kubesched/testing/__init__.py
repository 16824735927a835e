"""Tests of plugins and configurations: a cluster in the test's own process, on the very engine.

    cluster.nodes(10, cpu=4, zones=3)          fixture `cluster` ──> columns, framework, cycle
    cluster.pod(cpu=1).lands_on("n1")                  └──> Placement: node, reasons, score table

pytest finds the fixture by itself once the package is installed. So this is imported by every
pytest there, and whoever tests something else should not wait for NumPy: names are looked up when
they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubesched.testing.placement import Placement, Placements
    from kubesched.testing.workbench import PodUnderTest, Workbench

__all__ = ["Placement", "Placements", "PodUnderTest", "Workbench"]

_MODULES = {
    "Placement": "placement",
    "Placements": "placement",
    "PodUnderTest": "workbench",
    "Workbench": "workbench",
}


def __getattr__(name: str) -> object:
    """Import what is asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found
