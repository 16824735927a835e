"""Loads a configuration file: decodes strictly, applies defaults, validates.

text -> tree (``documents``) -> fields (``strict``) -> defaults -> structs -> validation. Every
failure is a ConfigError of one line that starts with the name of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kubesched.api.names import DEFAULT_SCHEDULER
from kubesched.config import documents, strict, validation
from kubesched.config.args import ARGS_KINDS
from kubesched.config.defaults import complete_args, complete_profile
from kubesched.config.documents import Document, Json, Members
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginConfig, Plugins, Profile
from kubesched.config.schema import (
    CONFIGURATION,
    FIRST_GROUP,
    GROUP,
    KINDS,
    VERSION,
    Message,
)
from kubesched.config.types import (
    ClientConnection,
    Extender,
    LeaderElection,
    SchedulerConfiguration,
)
from kubesched.errors import ConfigError, OldKindError

Fields = dict[str, Any]

_META_TYPE: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)
_SHOWN_TEXT_LENGTH: Final = 80
#: fields whose value is used as it is, if given
_PLAIN_FIELDS: Final = (
    "parallelism",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "delayCacheUntilActive",
)
_ATTRIBUTES: Final = {
    info.encode_name: info.name for info in msgspec.structs.fields(SchedulerConfiguration)
}


def load(
    path: str | Path,
    *,
    gates: FeatureGates,
    amend: Callable[[SchedulerConfiguration], SchedulerConfiguration] | None = None,
) -> SchedulerConfiguration:
    """Load a configuration file; ``amend`` applies the flags that override it."""
    source = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        action = "read" if isinstance(error, IsADirectoryError) else "open"
        raise ConfigError(f"{action} {source}: {(error.strerror or '').lower()}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: yaml: invalid UTF-8 at byte {error.start}") from error
    return decode(text, source, gates=gates, amend=amend)


def decode(
    text: str,
    source: str = "",
    *,
    gates: FeatureGates,
    amend: Callable[[SchedulerConfiguration], SchedulerConfiguration] | None = None,
) -> SchedulerConfiguration:
    """Load a configuration from text; messages name it ``source``."""
    try:
        config = _complete(_decode_document(documents.parse(text), text), gates)
        if amend is not None:
            config = amend(config)
        validation.validate(config, gates)
    except ConfigError as error:
        message = " ".join(str(error).split("\n"))
        if isinstance(error, OldKindError):
            message += f"; 'kubesched config convert {source}' makes v1 of it" if source else ""
        raise ConfigError(f"{source}: {message}" if source else message) from error
    return config


def profile_from_fragment(fragment: Mapping[str, Any], gates: FeatureGates) -> Profile:
    """Return the profile of an object with ``plugins`` and ``pluginConfig``, as in a file."""
    document = {"apiVersion": f"{GROUP}/{VERSION}", "kind": CONFIGURATION.name}
    tree = documents.tree({**document, "profiles": [dict(fragment)]})
    config = _complete(_decode_document(Document(tree), text=""), gates)
    validation.validate(config, gates)
    return config.profiles[0]


# --- decoding ---------------------------------------------------------------------------------


def _decode_document(document: Document, text: str) -> Fields:
    group, version, kind = identify(document.root)
    if not kind:
        raise ConfigError(f"Object 'Kind' is missing in '{_shown(text)}'")
    if not version:
        raise ConfigError(f"Object 'apiVersion' is missing in '{_shown(text)}'")
    message = _registered(group, version, kind)
    fields, strict_errors = strict.decode(document.root, message)
    if document.yaml_errors:
        strict_errors.insert(0, f"yaml: unmarshal errors: {' '.join(document.yaml_errors)}")
    if message is CONFIGURATION:
        strict_errors += _decode_args(fields)
    _refuse(strict_errors)
    if message is not CONFIGURATION:
        raise ConfigError(
            f"couldn't decode as {CONFIGURATION.name}, got {GROUP}/{VERSION}, Kind={kind}: "
        )
    return fields


def identify(tree: Json) -> tuple[str, str, str]:
    """Return group, version and kind; the case of the keys is ignored, as in Go."""
    found = {"apiversion": "", "kind": ""}
    problem = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    if tree is not None and not isinstance(tree, Members):
        raise ConfigError(f"{problem} {strict.go_kind(tree)} into Go value of type {_META_TYPE}")
    for key, value in tree or ():
        name = key.lower()
        if name not in found or value is None:
            continue
        if strict.go_kind(value) != "string":
            field = "apiVersion" if name == "apiversion" else name
            kind = strict.go_kind(value)
            raise ConfigError(f"{problem} {kind} into Go struct field .{field} of type string")
        found[name] = value
    group_version = found["apiversion"]
    if group_version.count("/") > 1:
        raise ConfigError(f"unexpected GroupVersion string: {group_version}")
    group, _, version = group_version.rpartition("/")
    return group, version, found["kind"]


def _registered(group: str, version: str, kind: str) -> Message:
    if (group, version) != (GROUP, VERSION) or kind not in KINDS:
        name = f"{group}/{version}" if group else version
        is_old = kind == "Policy" or (kind == CONFIGURATION.name and group in {GROUP, FIRST_GROUP})
        refusal = OldKindError if is_old else ConfigError
        raise refusal(
            f'no kind "{kind}" is registered for version "{name}" '
            'in scheme "pkg/runtime/scheme.go:111"'
        )
    return KINDS[kind]


def _decode_args(fields: Fields) -> list[str]:
    """Decode the arguments of in-tree plugins in place; returns their strict errors."""
    strict_errors = []
    for i, profile in enumerate(fields.get("profiles", ())):
        for j, config in enumerate(profile.get("pluginConfig", ())):
            where = f"decoding .profiles[{i}].pluginConfig[{j}]"
            try:
                config["args"], errors = _decode_plugin_args(config["name"], config.get("args"))
            except ConfigError as error:
                raise ConfigError(f"{where}: {error}") from error
            if errors:
                strict_errors.append(
                    f"{where}: strict decoding error: decoding args for plugin "
                    f"{config['name']}: strict decoding error: {', '.join(errors)}"
                )
    return strict_errors


def _decode_plugin_args(plugin: str, tree: Json) -> tuple[Json, list[str]]:
    if plugin not in ARGS_KINDS:
        return documents.plain(tree), []
    wanted = f"{plugin}Args"
    try:
        group, version, kind = identify(tree)
        # Without kind and version, arguments are of the plugin's kind.
        if not version and group in {"", GROUP}:
            group, version = GROUP, VERSION
        message = _registered(group, version, kind or wanted)
        fields, errors = strict.decode(tree or Members(), message)
    except ConfigError as error:
        raise ConfigError(f"decoding args for plugin {plugin}: {error}") from error
    if message.name != wanted:
        raise ConfigError(
            f"args for plugin {plugin} were not of type {wanted}.{GROUP}, "
            f"got {message.name}.{GROUP}"
        )
    return fields, errors


def _refuse(strict_errors: list[str]) -> None:
    if strict_errors:
        raise ConfigError(f"strict decoding error: {', '.join(strict_errors)}")


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_TEXT_LENGTH else f"{line[:_SHOWN_TEXT_LENGTH]}…"


# --- completing -------------------------------------------------------------------------------


def _complete(fields: Fields, gates: FeatureGates) -> SchedulerConfiguration:
    """Apply defaults."""
    profiles = fields.get("profiles") or [{}]
    if len(profiles) == 1:
        profiles[0].setdefault("schedulerName", DEFAULT_SCHEDULER)
    profiling: bool = fields.get("enableProfiling", True)
    contention: bool = fields.get("enableContentionProfiling", profiling)
    given = {_ATTRIBUTES[name]: fields[name] for name in _PLAIN_FIELDS if name in fields}
    return SchedulerConfiguration(
        profiles=tuple(_complete_profile(profile, gates) for profile in profiles),
        leader_election=msgspec.convert(_nonzero(fields["leaderElection"]), LeaderElection),
        client_connection=msgspec.convert(_nonzero(fields["clientConnection"]), ClientConnection),
        enable_profiling=profiling,
        enable_contention_profiling=contention,
        extenders=msgspec.convert(fields.get("extenders", ()), tuple[Extender, ...]),
        **given,
    )


def _complete_profile(fields: Fields, gates: FeatureGates) -> Profile:
    given_args = tuple(
        PluginConfig(
            name=config["name"],
            args=complete_args(config["name"], config["args"], gates)
            if config["name"] in ARGS_KINDS
            else config["args"],
        )
        for config in fields.get("pluginConfig", ())
    )
    profile = Profile(
        scheduler_name=fields.get("schedulerName", ""),
        percentage_of_nodes_to_score=fields.get("percentageOfNodesToScore"),
        plugins=msgspec.convert(fields.get("plugins", {}), Plugins),
    )
    return complete_profile(profile, given_args=given_args, gates=gates)


def _nonzero(fields: Fields) -> Fields:
    """Drop fields with a zero value, which means the default, except booleans."""
    zeros = ("", 0, Duration())
    return {
        name: value
        for name, value in fields.items()
        if isinstance(value, bool) or value not in zeros
    }
