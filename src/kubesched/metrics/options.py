"""Options of the flag group metrics, validated with Kubernetes' messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml
from msgspec import Struct

from kubesched.config.features import BINARY_VERSION
from kubesched.config.field_errors import aggregate, invalid, shown
from kubesched.errors import ConfigError

_METRIC: Final = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL: Final = "[a-zA-Z_][a-zA-Z0-9_]*"
_METRIC_AND_LABEL: Final = re.compile(f"{_METRIC},{_LABEL}")
_NAME: Final = re.compile(_METRIC)
_HIDDEN_VERSION: Final = f"{BINARY_VERSION[0]}.{BINARY_VERSION[1] - 1}"

#: metric → label → its allowed values
AllowLists = dict[str, dict[str, frozenset[str]]]


class MetricsOptions(Struct, frozen=True, kw_only=True):
    """Which families are exported, and with which label values."""

    #: ``--disabled-metrics``: full names
    disabled_metrics: tuple[str, ...] = ()
    #: ``--allow-metric-labels``: "metric,label" → "value,value"; None if not given
    allow_metric_labels: Mapping[str, str] | None = None
    #: ``--allow-metric-labels-manifest``: a YAML file with the same
    allow_metric_labels_manifest: str = ""
    #: ``--show-hidden-metrics-for-version``: if given, families that are hidden are shown
    show_hidden_metrics_for_version: str = ""

    def check(self) -> None:
        """Raise ConfigError if the options are invalid."""
        if errors := self.errors():
            raise ConfigError(aggregate(errors))

    def errors(self) -> list[str]:
        """Return all errors, one line each."""
        found = [*_version_errors(self), *_name_errors(self.disabled_metrics)]
        found += _mapping_errors(self.allow_metric_labels or {}, "metrics.allowListMapping")
        if self.allow_metric_labels_manifest:
            found += _manifest_errors(self.allow_metric_labels_manifest)
            if self.allow_metric_labels is not None:
                both = "cannot specify both allowListMapping and allowListMappingManifest"
                found.append(invalid("metrics", self._as_configuration(), both))
        return found

    def allow_lists(self) -> AllowLists:
        """Return the allowed values of each label, from the flag, else from the file."""
        mapping = self.allow_metric_labels
        if mapping is None and self.allow_metric_labels_manifest:
            mapping = _read_manifest(self.allow_metric_labels_manifest)
        lists: AllowLists = {}
        for key, values in (mapping or {}).items():
            metric, label = key.split(",")
            lists.setdefault(metric, {})[label] = frozenset(values.split(","))
        return lists

    def _as_configuration(self) -> dict[str, object]:
        fields = {
            "showHiddenMetricsForVersion": self.show_hidden_metrics_for_version,
            "disabledMetrics": list(self.disabled_metrics),
            "allowListMapping": dict(sorted((self.allow_metric_labels or {}).items())),
            "allowListMappingManifest": self.allow_metric_labels_manifest,
        }
        return {name: value for name, value in fields.items() if value}


def _version_errors(options: MetricsOptions) -> list[str]:
    version = options.show_hidden_metrics_for_version
    if version in {"", _HIDDEN_VERSION}:
        return []
    detail = (
        f"must be omitted or have the value '{_HIDDEN_VERSION}'; "
        "only the previous minor version is allowed"
    )
    return [invalid("metrics.showHiddenMetricsForVersion", version, detail)]


def _name_errors(names: tuple[str, ...]) -> list[str]:
    for name in names:
        if not _NAME.fullmatch(name):
            detail = (
                f'must be fully qualified metric names matching "^{_METRIC}$", got {shown(name)}'
            )
            return [invalid("metrics.disabledMetrics", list(names), detail)]
    return []


def _mapping_errors(mapping: Mapping[str, str], path: str) -> list[str]:
    if all(_METRIC_AND_LABEL.fullmatch(key) for key in mapping):
        return []
    detail = (
        "must have keys with format `metricName,labelName` where metricName matches "
        f'"{_METRIC}" and labelName matches "{_LABEL}"'
    )
    return [invalid(path, dict(sorted(mapping.items())), detail)]


def _manifest_errors(path: str) -> list[str]:
    field = "metrics.allowListMappingManifest"
    try:
        errors = _mapping_errors(_read_manifest(path), field)
    except ConfigError as error:
        return [invalid(field, path, str(error))]
    if errors:
        detail = f"invalid allow list mapping in manifest: [{' '.join(errors)}]"
        return [invalid(field, path, detail)]
    return []


def _read_manifest(path: str) -> dict[str, str]:
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        what = "read" if isinstance(error, IsADirectoryError) else "open"
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"failed to read allow list manifest: {what} {path}: {reason}") from error
    unreadable = "failed to parse allow list manifest: yaml: "
    try:
        # Every value is text, even if it looks like a number.
        mapping = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 (makes only texts and lists)
    except yaml.YAMLError as error:
        raise ConfigError(unreadable + " ".join(str(error).split())) from error
    except RecursionError as error:
        raise ConfigError(f"{unreadable}nested too deep") from error
    if mapping in (None, ""):
        return {}
    if not isinstance(mapping, dict):
        raise ConfigError(f"{unreadable}the file must map metricName,labelName to values")
    for key, values in mapping.items():
        if not isinstance(key, str) or not isinstance(values, str):
            raise ConfigError(f"{unreadable}the values of {key} must be one text, with commas")
    return mapping
