"""Tables of configurations with what kube-scheduler v1.37.1 itself answered for each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubesched.config.features import FeatureGates

DATA: Final = Path(__file__).parents[1] / "unit" / "config" / "data"
GATES: Final = FeatureGates.parse()

HEADER: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""

#: The extension points that kube-scheduler's own plugins implement.
IN_TREE_POINTS: Final = {
    "DefaultBinder": {"bind"},
    "DefaultPreemption": {"podGroupPostFilter", "postFilter", "preEnqueue"},
    "DeferredPodScheduling": {"filter", "permit", "preFilter"},
    "DynamicResources": {
        "filter", "podGroupPostFilter", "postFilter", "preBind", "preEnqueue", "preFilter",
        "reserve", "score",
    },
    "GangScheduling": {"permit", "preEnqueue"},
    "ImageLocality": {"score"},
    "InterPodAffinity": {"filter", "preFilter", "preScore", "score"},
    "NodeAffinity": {"filter", "preFilter", "preScore", "score"},
    "NodeDeclaredFeatures": {"filter", "preFilter"},
    "NodeName": {"filter", "preFilter"},
    "NodePorts": {"filter", "preFilter"},
    "NodeResourcesBalancedAllocation": {"preScore", "score"},
    "NodeResourcesFit": {"filter", "placementScore", "preFilter", "preScore", "score"},
    "NodeUnschedulable": {"filter", "preFilter"},
    "NodeVolumeLimits": {"filter", "preFilter"},
    "PodGroupPodsCount": {"placementScore"},
    "PodTopologySpread": {"filter", "preFilter", "preScore", "score"},
    "PrioritySort": {"queueSort"},
    "SchedulingGates": {"preEnqueue"},
    "TaintToleration": {"filter", "preFilter", "preScore", "score"},
    "TopologyPlacementGenerator": {"placementGenerate"},
    "VolumeBinding": {"filter", "preBind", "preFilter", "preScore", "reserve", "score"},
    "VolumeRestrictions": {"filter", "preFilter"},
    "VolumeZone": {"filter", "preFilter"},
}  # fmt: skip


def rows(table: str) -> list[Any]:
    """Read a table as pytest parameters, one a row, with the row's name as its id."""
    loaded = yaml.safe_load((DATA / f"{table}.yaml").read_text(encoding="utf-8"))
    return [pytest.param(row, id=row["name"]) for row in loaded]
