"""The operations of scheduler_perf's files, opcode by opcode.

    {opcode: createPods, countParam: $measurePods, …} + parameters ──> CreatePods(count=1000, …)

An unknown field of an opcode is rejected, as in scheduler_perf: a typo would change what is
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from kubesched.bench import operations, templates
from kubesched.bench.objects import base_node, base_pod
from kubesched.bench.operations import JsonObject, Operation, Template
from kubesched.config.durations import Duration
from kubesched.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class OperationContext:
    """The context for reading operations."""

    where: str
    folder: Path
    params: Mapping[str, object]
    default_pod_template: Path | None = None


class Fields:
    """The fields of one operation; each is read once, and none may be left."""

    def __init__(self, tree: Mapping[str, Any], reading: OperationContext, where: str) -> None:
        self._left = {key: value for key, value in tree.items() if key != "opcode"}
        self.reading = reading
        self.where = where

    def done(self) -> None:
        """Reject unread fields."""
        for name in self._left:
            raise ConfigError(f"{self.where}: there is no field {name!r}")

    def count(self, name: str = "count", *, default: int = 0) -> int:
        """Read ``count``, or the parameter of ``countParam``."""
        value = self._settled(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConfigError(f"{self.where}: {name}: {value!r} is not a number of objects")
        return int(value)

    def number(self, name: str) -> float:
        """Read a non-negative number, 0 if missing."""
        value = self._left.pop(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConfigError(f"{self.where}: {name}: {value!r} is not a number from 0 on")
        return float(value)

    def flag(self, name: str) -> bool:
        """Read a boolean, or its parameter."""
        value = self._settled(name, False)
        if not isinstance(value, bool):
            raise ConfigError(f"{self.where}: {name}: {value!r} is neither true nor false")
        return value

    def duration_s(self) -> float:
        """Read ``duration``, or the parameter of ``durationParam``."""
        value = self._settled("duration", "0s")
        try:
            return Duration.parse(str(value)).seconds
        except ConfigError as wrong:
            raise ConfigError(f"{self.where}: duration: {wrong}") from None

    def text(self, name: str, *, required: bool = False) -> str:
        """Read a text, "" if missing."""
        value = self._left.pop(name, "")
        if required and not value:
            raise ConfigError(f"{self.where}: {name} is missing")
        return str(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Take a list of texts."""
        value = self._left.pop(name, None) or []
        if not isinstance(value, list):
            raise ConfigError(f"{self.where}: {name}: a list was expected, not {value!r}")
        return tuple(map(str, value))

    def labels(self) -> dict[str, str]:
        """Take ``labelSelector``, a plain map."""
        value = self._left.pop("labelSelector", None) or {}
        if not isinstance(value, dict):
            raise ConfigError(f"{self.where}: labelSelector: {value!r} is not a map of labels")
        return {str(key): str(label) for key, label in value.items()}

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Read one of several words; the first is the default."""
        value = self._left.pop(name, choices[0])
        if value not in choices:
            raise ConfigError(f"{self.where}: {name} is {value!r}, not {' or '.join(choices)}")
        return str(value)

    def template(self, name: str) -> Template | None:
        """Take the path of a template, and ``templateParams``."""
        path, params = self.text(name), self._template_params()
        return templates.file_template(self.reading.folder / path, params) if path else None

    def needed_template(self, name: str) -> Template:
        """Read the path of a required template, and ``templateParams``."""
        path, params = self.text(name, required=True), self._template_params()
        return templates.file_template(self.reading.folder / path, params)

    def _template_params(self) -> dict[str, object]:
        """Take the fields of a template: values, or ``$parameter``, or ``$parameter|default``."""
        found = dict(self.tree("templateParams") or {})
        for name, value in found.items():
            if isinstance(value, str) and value.startswith("$"):
                key, has_default, default = value[1:].partition("|")
                if key in self.reading.params:
                    found[name] = self.reading.params[key]
                elif has_default:
                    found[name] = yaml.safe_load(default)
                else:
                    where = f"{self.where}: templateParams: {name}"
                    raise ConfigError(f"{where}: there is no parameter {value!r}")
        return found

    def tree(self, name: str) -> JsonObject | None:
        """Read a group of fields."""
        value = self._left.pop(name, None)
        if value is not None and not isinstance(value, dict):
            raise ConfigError(f"{self.where}: {name}: fields were expected, not {value!r}")
        return value

    def _settled(self, name: str, default: object) -> object:
        """Read a value, or the parameter that ``<name>Param`` names, which has precedence."""
        value = self._left.pop(name, default)
        parameter = self._left.pop(f"{name}Param", "")
        if not parameter:
            return value
        key = str(parameter).removeprefix("$")
        if not str(parameter).startswith("$") or key not in self.reading.params:
            raise ConfigError(f"{self.where}: {name}Param: there is no parameter {parameter!r}")
        return self.reading.params[key]


def read_operations(tree: Sequence[object], reading: OperationContext) -> tuple[Operation, ...]:
    """Read all operations; a set of pods becomes one operation per namespace."""
    found: list[Operation] = []
    for place, each in enumerate(tree):
        where = f"{reading.where}: operation {place}"
        if not isinstance(each, dict) or "opcode" not in each:
            raise ConfigError(f"{where}: it has no opcode")
        opcode = str(each["opcode"])
        reader = _READERS.get(opcode)
        if reader is None:
            raise ConfigError(f"{where}: there is no opcode {opcode!r}")
        fields = Fields(each, reading, f"{where} ({opcode})")
        found.extend(reader(fields))
        fields.done()
    return tuple(found)


def _create_nodes(fields: Fields) -> list[Operation]:
    template = fields.template("nodeTemplatePath") or base_node
    allocatable = fields.tree("nodeAllocatableStrategy")
    label = fields.tree("labelNodePrepareStrategy")
    unique = fields.tree("uniqueNodeLabelStrategy")
    preparation: operations.NodePreparation | None = None
    if allocatable is not None:
        preparation = operations.AllocateOnNodes(
            allocatable={k: str(v) for k, v in (allocatable.get("nodeAllocatable") or {}).items()},
            csi_drivers=allocatable.get("csiNodeAllocatable") or {},
            migrated_plugins=tuple(allocatable.get("migratedPlugins") or ()),
        )
    elif label is not None:
        values = tuple(map(str, label.get("labelValues") or ()))
        if not values:
            raise ConfigError(f"{fields.where}: labelNodePrepareStrategy has no labelValues")
        preparation = operations.LabelNodes(key=str(label.get("labelKey")), values=values)
    elif unique is not None:
        preparation = operations.LabelNodesUniquely(key=str(unique.get("labelKey")))
    count = fields.count()
    return [operations.CreateNodes(count=count, template=template, preparation=preparation)]


def _create_namespaces(fields: Fields) -> list[Operation]:
    return [
        operations.CreateNamespaces(
            prefix=fields.text("prefix", required=True),
            count=fields.count(),
            template=fields.template("namespaceTemplatePath"),
        )
    ]


def _create_pods(fields: Fields) -> list[Operation]:
    return [_pods_of(fields)]


def _pods_of(fields: Fields) -> operations.CreatePods:
    default = fields.reading.default_pod_template
    template = fields.template("podTemplatePath")
    if template is None:
        template = templates.file_template(default) if default else base_pod
    steady, duration_s = fields.flag("steadyState"), fields.duration_s()
    found = operations.CreatePods(
        # Of groups, so many pods each.
        count=fields.count() * fields.count("countMultiplier", default=1),
        template=template,
        namespace=fields.text("namespace"),
        collect_metrics=fields.flag("collectMetrics"),
        skip_wait=fields.flag("skipWaitToCompletion"),
        steady_for_s=duration_s if steady else 0.0,
        volume=fields.template("persistentVolumeTemplatePath"),
        claim=fields.template("persistentVolumeClaimTemplatePath"),
    )
    if found.skip_wait and (found.collect_metrics or steady):
        both = "collectMetrics" if found.collect_metrics else "steadyState"
        raise ConfigError(f"{fields.where}: {both} and skipWaitToCompletion exclude each other")
    if steady and not duration_s:
        raise ConfigError(f"{fields.where}: a steady state needs a duration")
    return found


def _create_pod_sets(fields: Fields) -> list[Operation]:
    prefix = fields.text("namespacePrefix", required=True)
    count = fields.count()
    inner = Fields(fields.tree("createPodsOp") or {}, fields.reading, f"{fields.where}: pods")
    pods = _pods_of(inner)
    inner.done()
    return [replace(pods, namespace=f"{prefix}-{number}") for number in range(count)]


def _delete_pods(fields: Fields) -> list[Operation]:
    return [
        operations.DeletePods(
            namespace=fields.text("namespace", required=True),
            labels=fields.labels(),
            skip_wait=fields.flag("skipWaitToCompletion"),
            per_second=fields.number("deletePodsPerSecond"),
        )
    ]


def _churn(fields: Fields) -> list[Operation]:
    paths = fields.texts("templatePaths")
    if not paths:
        raise ConfigError(f"{fields.where}: templatePaths is missing")
    mode = fields.choice("mode", ("create", "recreate"))
    number = int(fields.number("number"))
    if mode == "recreate" and not number:
        raise ConfigError(f"{fields.where}: number is missing, recreate needs it")
    return [
        operations.Churn(
            mode="create" if mode == "create" else "recreate",
            templates=tuple(templates.file_template(fields.reading.folder / p) for p in paths),
            number=number,
            interval_s=(fields.number("intervalMilliseconds") or 500.0) / 1000,
            namespace=fields.text("namespace"),
        )
    ]


def _create_any(fields: Fields) -> list[Operation]:
    return [
        operations.CreateAny(
            template=fields.needed_template("templatePath"),
            count=fields.count(default=1),
            namespace=fields.text("namespace"),
        )
    ]


def _create_pod_groups(fields: Fields) -> list[Operation]:
    template = fields.needed_template("templatePath")

    def group(index: int, count: int) -> JsonObject:
        # scheduler_perf creates them in this version, whichever one the file names.
        return {**template(index, count), "apiVersion": "scheduling.k8s.io/v1beta1"}

    return [
        operations.CreateAny(
            template=group,
            count=fields.count(),
            namespace=fields.text("namespace", required=True),
        )
    ]


def _create_resource_driver(fields: Fields) -> list[Operation]:
    return [
        operations.CreateResourceDriver(
            driver=fields.text("driverName", required=True),
            nodes=fields.text("nodes", required=True),
            devices_per_node=fields.count("maxClaimsPerNode"),
        )
    ]


def _allocate_claims(fields: Fields) -> list[Operation]:
    return [operations.AllocateClaims(namespace=fields.text("namespace", required=True))]


def _update_any(fields: Fields) -> list[Operation]:
    return [
        operations.UpdateAny(
            template=fields.needed_template("templatePath"),
            count=fields.count(default=1),
            namespace=fields.text("namespace"),
            per_second=fields.number("updatePerSecond"),
            subresources=fields.texts("subresources"),
        )
    ]


def _barrier(fields: Fields) -> list[Operation]:
    stage = fields.choice("stageRequirement", ("Scheduled", "Attempted"))
    return [
        operations.Barrier(
            namespaces=fields.texts("namespaces"),
            labels=fields.labels(),
            stage="Scheduled" if stage == "Scheduled" else "Attempted",
        )
    ]


def _sleep(fields: Fields) -> list[Operation]:
    return [operations.Sleep(duration_s=fields.duration_s())]


def _start_collecting(fields: Fields) -> list[Operation]:
    namespaces = fields.texts("namespaces")
    if not namespaces:
        raise ConfigError(f"{fields.where}: namespaces is missing")
    return [
        operations.StartCollecting(
            name=fields.text("name"), namespaces=namespaces, labels=fields.labels()
        )
    ]


def _stop_collecting(_: Fields) -> list[Operation]:
    return [operations.StopCollecting()]


_READERS: Mapping[str, Callable[[Fields], list[Operation]]] = {
    "allocResourceClaims": _allocate_claims,
    "barrier": _barrier,
    "churn": _churn,
    "createAny": _create_any,
    "createNamespaces": _create_namespaces,
    "createNodes": _create_nodes,
    "createPodSets": _create_pod_sets,
    "createPodGroups": _create_pod_groups,
    "createPods": _create_pods,
    # Claims are objects like others; scheduler_perf only creates them with more concurrency.
    "createResourceClaims": _create_any,
    "createResourceDriver": _create_resource_driver,
    "deletePods": _delete_pods,
    "sleep": _sleep,
    "startCollectingMetrics": _start_collecting,
    "stopCollectingMetrics": _stop_collecting,
    "updateAny": _update_any,
}
