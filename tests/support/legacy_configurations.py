"""Old configurations, and what a converted one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from kubesched.config import loading
from kubesched.config.legacy.converting import Conversion, convert
from kubesched.config.legacy.plugin_sets import Today
from kubesched.config.plugins import expand
from kubesched.config.types import SchedulerConfiguration
from tests.support.configuration_tables import GATES, IN_TREE_POINTS

DATA: Final = Path(__file__).parents[1] / "unit" / "config" / "legacy" / "data"
FILES: Final = sorted(path.name for path in DATA.iterdir())
TODAY: Final = Today(GATES, IN_TREE_POINTS)


def converted(document: dict[str, Any] | str, **more: Any) -> Conversion:
    """Convert a document, or one of the files."""
    if isinstance(document, str):
        return convert((DATA / document).read_text(), document, TODAY, **more)
    return convert(yaml.safe_dump(document), "old.yaml", TODAY, **more)


def configuration(version: str, **fields: Any) -> dict[str, Any]:
    """A KubeSchedulerConfiguration of an old version."""
    header = {"apiVersion": f"kubescheduler.config.k8s.io/{version}"}
    return {**header, "kind": "KubeSchedulerConfiguration", **fields}


def policy(**fields: Any) -> dict[str, Any]:
    """A Policy."""
    return {"apiVersion": "v1", "kind": "Policy", **fields}


def loaded(conversion: Conversion) -> SchedulerConfiguration:
    """The converted configuration, decoded strictly."""
    return loading.decode(conversion.text, gates=GATES)


def running(conversion: Conversion, profile: int = 0) -> dict[str, dict[str, int]]:
    """The plugins of each point with their weights."""
    expansion = expand(loaded(conversion).profiles[profile], IN_TREE_POINTS)
    return {
        point: {ref.name: ref.weight for ref in refs} for point, refs in expansion.points.items()
    }


def arguments(conversion: Conversion, plugin: str, profile: int = 0) -> dict[str, Any] | None:
    """The arguments of a plugin as they were written; None if there are none."""
    configs = yaml.safe_load(conversion.text)["profiles"][profile].get("pluginConfig", [])
    return next((each["args"] for each in configs if each["name"] == plugin), None)
