"""Reads scheduler_perf's files: ``performance-config.yaml`` to workloads.

    file ──read──> TestCase … ──select(test, workload)──> BenchWorkload: operations with numbers

A test case has a list of operations with parameters (``countParam: $initNodes``) and a list of
workloads with their values. Paths are relative to the file. A test case is validated when it is
built, so that an unsupported one does not hide the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from kubesched.bench.operations import BenchWorkload, Operation
from kubesched.bench.performance_operations import OperationContext, read_operations
from kubesched.config import untrusted_yaml
from kubesched.errors import ConfigError, UsageError

#: The usual names of the parameters that --nodes and --pods change.
NODES = "initNodes"
PODS = "measurePods"
#: What workloads with devices call them.
_SYNONYMS = {NODES: "nodesWithDRA"}

_TEST_FIELDS = frozenset(
    {"name", "featureGates", "metricsCollectorConfig", "workloadTemplate", "workloads", "labels"}
    | {"schedulerConfigPath", "defaultPodTemplatePath", "defaultThresholdMetricSelector"}
)
_WORKLOAD_FIELDS = frozenset(
    {"name", "params", "labels", "threshold", "thresholdMetricSelector", "featureGates"}
)


@dataclass(frozen=True, kw_only=True)
class WorkloadEntry:
    """One workload of a test case: its parameters."""

    name: str
    params: Mapping[str, object]
    labels: frozenset[str]
    threshold: float
    feature_gates: Mapping[str, bool]


@dataclass(frozen=True, kw_only=True)
class TestCase:
    """One test case of a file."""

    #: prevents collection by pytest
    __test__ = False

    path: Path
    name: str
    entries: tuple[WorkloadEntry, ...]
    feature_gates: Mapping[str, bool]
    template: tuple[object, ...]
    default_pod_template: Path | None
    scheduler_config: Path | None

    def _names(self, parameter: str) -> bool:
        """Tell whether operations name a parameter, be it that a workload forgets its value."""
        return any(_holds(each, f"${parameter}") for each in self.template)

    def build(
        self, entry: WorkloadEntry, overrides: Mapping[str, int] | None = None
    ) -> BenchWorkload:
        """Resolve the numbers; ``overrides`` replace parameters that the workload has, or lacks."""
        name = f"{self.name}/{entry.name}"
        changed: dict[str, object] = {}
        for parameter, value in (overrides or {}).items():
            synonym = _SYNONYMS.get(parameter, parameter)
            known = synonym if synonym in entry.params else parameter
            if known not in entry.params and not self._names(parameter):
                have = ", ".join(sorted(entry.params)) or "none"
                raise UsageError(f"{name} has no parameter {parameter} to change; it has {have}")
            changed[known] = value
        reading = OperationContext(
            where=f"{self.path}: {name}",
            folder=self.path.parent,
            params={**entry.params, **changed},
            default_pod_template=self.default_pod_template,
        )
        operations: tuple[Operation, ...] = read_operations(self.template, reading)
        return BenchWorkload(
            name=name,
            operations=operations,
            feature_gates={**self.feature_gates, **entry.feature_gates},
            threshold=entry.threshold,
            scheduler_config=self.scheduler_config,
        )


def _holds(tree: object, text: str) -> bool:
    if isinstance(tree, dict):
        return any(_holds(each, text) for each in tree.values())
    return tree == text


def read(path: Path) -> tuple[TestCase, ...]:
    """Read a file; raises ConfigError with the place of the error."""
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as wrong:
        raise ConfigError(f"{path}: this is not YAML: {wrong}") from None
    except OSError as failed:
        raise ConfigError(f"{path}: {failed.strerror}") from None
    except yaml.YAMLError as wrong:
        raise ConfigError(f"{path}: this is not YAML: {untrusted_yaml.problem(wrong)}") from None
    if not isinstance(tree, list):
        raise ConfigError(f"{path}: a list of test cases was expected")
    return tuple(_test_case(path, place, each) for place, each in enumerate(tree))


def select(
    cases: tuple[TestCase, ...],
    *,
    test: str = "*",
    workload: str = "*",
    overrides: Mapping[str, int] | None = None,
) -> list[BenchWorkload]:
    """Build the workloads whose names match the patterns."""
    chosen = [
        (case, entry)
        for case in cases
        if fnmatchcase(case.name, test)
        for entry in case.entries
        if fnmatchcase(entry.name, workload)
    ]
    if not chosen:
        known = ", ".join(case.name for case in cases) or "none"
        raise UsageError(
            f"no workload {workload!r} of a test {test!r}; there are the tests {known}"
        )
    return [case.build(entry, overrides) for case, entry in chosen]


def _test_case(path: Path, place: int, tree: object) -> TestCase:
    where = f"{path}: test case {place}"
    fields = _mapping(tree, where, _TEST_FIELDS)
    name = str(fields.get("name") or "")
    if not name:
        raise ConfigError(f"{where}: it has no name")
    where = f"{path}: {name}"
    default_pod = fields.get("defaultPodTemplatePath")
    config = fields.get("schedulerConfigPath")
    selector = fields.get("defaultThresholdMetricSelector")
    return TestCase(
        path=path,
        name=name,
        entries=tuple(_entry(where, each, selector) for each in _list(fields, "workloads", where)),
        feature_gates=_gates(fields, where),
        template=tuple(_list(fields, "workloadTemplate", where)),
        default_pod_template=path.parent / str(default_pod) if default_pod else None,
        scheduler_config=path.parent / str(config) if config else None,
    )


def _entry(where: str, tree: object, default_selector: object) -> WorkloadEntry:
    fields = _mapping(tree, f"{where}: workload", _WORKLOAD_FIELDS)
    name = str(fields.get("name") or "")
    if not name:
        raise ConfigError(f"{where}: a workload has no name")
    where = f"{where}/{name}"
    selector = fields.get("thresholdMetricSelector") or default_selector
    return WorkloadEntry(
        name=name,
        params=_mapping(fields.get("params") or {}, f"{where}: params"),
        labels=frozenset(map(str, fields.get("labels") or ())),
        threshold=_threshold(fields.get("threshold"), where) if _is_rate(selector) else 0.0,
        feature_gates=_gates(fields, where),
    )


def _is_rate(selector: object) -> bool:
    """Whether a threshold is in pods per second: without a selector, it is."""
    if not isinstance(selector, dict):
        return True
    return selector.get("name") == "SchedulingThroughput"


def _threshold(value: object, where: str) -> float:
    """Parse a number, or the smallest of those for several topics."""
    if value is None:
        return 0.0
    values = list(value.values()) if isinstance(value, dict) else [value]
    numbers = [float(each) for each in values if isinstance(each, int | float)]
    if len(numbers) != len(values) or not numbers or min(numbers) < 0:
        raise ConfigError(f"{where}: threshold: {value!r} is not a number of pods per second")
    return min(numbers)


def _gates(fields: Mapping[str, Any], where: str) -> dict[str, bool]:
    gates = _mapping(fields.get("featureGates") or {}, f"{where}: featureGates")
    for name, value in gates.items():
        if not isinstance(value, bool):
            raise ConfigError(f"{where}: featureGates: {name} is {value!r}, not true or false")
    return gates


def _mapping(tree: object, where: str, known: frozenset[str] | None = None) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise ConfigError(f"{where}: fields were expected, not {tree!r}")
    for name in tree:
        if known is not None and name not in known:
            raise ConfigError(f"{where}: there is no field {name!r}")
    return tree


def _list(fields: Mapping[str, Any], name: str, where: str) -> list[Any]:
    found = fields.get(name)
    if not isinstance(found, list):
        raise ConfigError(f"{where}: {name}: a list was expected")
    return found
