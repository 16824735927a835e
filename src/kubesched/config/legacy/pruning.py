"""Removes defaults from a converted configuration."""

from __future__ import annotations

from typing import Any, Final

from kubesched.config import documents, encoding, strict
from kubesched.config.args import ARGS_KINDS
from kubesched.config.defaults import complete_args
from kubesched.config.features import FeatureGates
from kubesched.config.field_errors import shown
from kubesched.config.legacy.report import ConversionReport
from kubesched.config.schema import KINDS
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ConfigError

JsonObject = dict[str, Any]

_SECTIONS: Final = ("leaderElection", "clientConnection")
_TYPE_META: Final = ("apiVersion", "kind")


def drop_default_fields(
    document: JsonObject, gates: FeatureGates, report: ConversionReport
) -> None:
    """Drop fields that have their default value, in place."""
    default = encoding.to_json_object(SchedulerConfiguration.default(gates))
    _drop(document, default, "", report)
    for section in _SECTIONS:
        if section in document:
            _drop(document[section], default[section], f"{section}.", report)
            if not document[section]:
                del document[section]


def _drop(fields: JsonObject, default: JsonObject, path: str, report: ConversionReport) -> None:
    for name in [*fields]:
        value = fields[name]
        if isinstance(value, dict | list) or name in _TYPE_META:
            continue
        if value == default.get(name):
            report.is_default(f"{path}{name} {shown(value)}")
            del fields[name]


def drop_default_args(profile: JsonObject, gates: FeatureGates, report: ConversionReport) -> None:
    """Drop arguments that equal a plugin's defaults, in place."""
    kept = []
    for config in profile.get("pluginConfig", ()):
        name = config.get("name", "")
        args = config.get("args") or {}
        if name in ARGS_KINDS and _is_default(name, args, gates):
            said = {field: args[field] for field in args if field not in _TYPE_META}
            if said:
                report.is_default(f"{name} {shown(said)}")
        else:
            kept.append(config)
    profile["pluginConfig"] = kept
    if not kept:
        del profile["pluginConfig"]


def _is_default(plugin: str, args: JsonObject, gates: FeatureGates) -> bool:
    message = KINDS[ARGS_KINDS[plugin].__name__]
    try:
        fields, strict_errors = strict.decode(documents.tree(args), message)
        return not strict_errors and complete_args(plugin, fields, gates) == complete_args(
            plugin, {}, gates
        )
    except ConfigError:
        # Their errors are reported when the whole configuration is validated.
        return False
