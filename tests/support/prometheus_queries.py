"""What the alerts and the dashboard ask of Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULE = DEPLOY / "monitoring" / "prometheus-rule.yaml"
DASHBOARD = DEPLOY / "monitoring" / "grafana-dashboard.json"
_WORDS = frozenset({"and", "offset", "or", "unless"})
_GROUPING = re.compile(r"\b(by|on|without|ignoring) \(([^)]*)\)")
_SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^}]*)\})?(?!\w*\s*\()")


def selectors(expression: str) -> Iterator[tuple[str, frozenset[str]]]:
    """What an expression selects: the names of series, and the labels that it looks at."""
    bare = _GROUPING.sub("", expression)
    bare = re.sub(r'"[^"]*"', '""', bare)
    bare = re.sub(r"\[[^\]]*\]|\b[0-9.]+[smhd]?\b|\$__\w+", "", bare)
    for name, matchers in _SELECTOR.findall(bare):
        if name not in _WORDS:
            yield name, frozenset(re.findall(r"(\w+)\s*[=!]", matchers))


def groupings(expression: str) -> set[str]:
    """The labels that an expression groups or matches by."""
    return {
        label.strip()
        for _, labels in _GROUPING.findall(expression)
        for label in labels.split(",")
        if label.strip()
    }


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULE.read_text())["spec"]["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> Iterator[tuple[str, str]]:
    """Everything that is asked of Prometheus, and where."""
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in panels():
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in json.loads(DASHBOARD.read_text())["templating"]["list"]:
        if variable["type"] == "query":
            inner = variable["definition"].removeprefix("label_values(").rpartition(",")[0]
            yield f"${variable['name']}", inner
