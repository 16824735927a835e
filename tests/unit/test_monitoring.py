"""Alerts and dashboard ask for series that there are, by labels that they have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from kubesched.metrics.shared_table import HEALTH
from kubesched.metrics.spec import FamilySpec, MetricKind
from kubesched.metrics.table import FAMILIES
from tests.support.prometheus_queries import (
    DEPLOY,
    expressions,
    groupings,
    panels,
    rules,
    selectors,
)

CHART_FILES = DEPLOY / "helm" / "kubesched" / "files"

#: Made by Prometheus itself.
SYNTHETIC = {"up": frozenset[str]()}
#: Put on every series by whoever scrapes.
TARGET_LABELS = frozenset({"job", "namespace", "instance"})


def series_of(families: tuple[FamilySpec, ...]) -> Iterator[tuple[str, frozenset[str]]]:
    """Name and labels of each series of some families."""
    for family in families:
        labels = frozenset(family.labels)
        if family.kind is MetricKind.HISTOGRAM:
            yield f"{family.name}_bucket", labels | {"le"}
            yield f"{family.name}_count", labels
            yield f"{family.name}_sum", labels
        else:
            yield family.name, labels


#: What is shown by default.
SHOWN = tuple(family for family in (*FAMILIES, *HEALTH) if not family.deprecated_since)
SERIES = {**SYNTHETIC, **dict(series_of(SHOWN))}


class TestSelectors:
    """The reading of expressions that the tests below rely on."""

    def test_names_and_labels_are_found(self) -> None:
        text = (
            'sum by (job, le) (rate(a_total{x="1", y=~"b_total|c"}[5m])) > 0 and on (z) d offset 1h'
        )
        assert list(selectors(text)) == [
            ("a_total", frozenset({"x", "y"})),
            ("d", frozenset()),
        ]
        assert groupings(text) == {"job", "le", "z"}

    def test_functions_are_no_series(self) -> None:
        text = "histogram_quantile(0.99, min_over_time(a[$__rate_interval])) or vector(0)"
        assert list(selectors(text)) == [("a", frozenset())]


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
class TestExpressions:
    def test_ask_for_series_that_are_exported(self, where: str, expression: str) -> None:
        asked = list(selectors(expression))
        assert asked
        for name, labels in asked:
            assert name in SERIES, where
            assert labels <= SERIES[name] | TARGET_LABELS, where

    def test_group_by_labels_that_one_of_the_series_has(self, where: str, expression: str) -> None:
        known = TARGET_LABELS.union(*(SERIES[name] for name, _ in selectors(expression)))
        assert groupings(expression) <= known, where

    def test_are_about_our_job_alone(self, where: str, expression: str) -> None:
        for name, labels in selectors(expression):
            assert "job" in labels or where == "$job", f"{where}: {name}"


class TestAlerts:
    def test_have_what_people_need(self) -> None:
        for rule in rules():
            assert rule["labels"]["severity"] in ("warning", "critical")
            assert rule["annotations"].keys() == {"summary", "description"}

    def test_are_unique(self) -> None:
        names = [rule["alert"] for rule in rules()]
        assert sorted(set(names)) == sorted(names)

    def test_the_chart_has_the_same(self) -> None:
        (group,) = yaml.safe_load((CHART_FILES / "alerts.yaml").read_text())["groups"]
        assert group["rules"] == rules()

    def test_the_job_is_what_the_service_monitor_makes_it(self) -> None:
        monitor = yaml.safe_load((DEPLOY / "monitoring" / "service-monitor.yaml").read_text())
        assert monitor["spec"]["jobLabel"] == "app.kubernetes.io/name"
        selected = monitor["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"]
        assert all(f'job="{selected}"' in rule["expr"] for rule in rules())


class TestDashboard:
    def test_has_a_row_for_each_subject(self) -> None:
        rows = [panel["title"] for panel in panels() if panel["type"] == "row"]
        assert rows == [
            "Overview",
            "Throughput",
            "Latency",
            "Queue",
            "Preemption",
            "Plugins",
            "API client",
            "Process",
        ]

    def test_panels_do_not_overlap(self) -> None:
        taken: set[tuple[int, int]] = set()
        for panel in panels():
            at = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])
            }
            assert max(x for x, _ in cells) < 24
            assert not cells & taken, panel["title"]
            taken |= cells

    def test_every_panel_reads_the_data_source_that_is_chosen(self) -> None:
        for panel in panels():
            for target in panel.get("targets", ()):
                assert target["datasource"]["uid"] == "${datasource}"

    def test_numbers_are_unique(self) -> None:
        numbers = [panel["id"] for panel in panels()]
        assert len(set(numbers)) == len(numbers)
