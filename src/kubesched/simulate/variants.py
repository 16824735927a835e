"""Configurations to compare: files, and fields of them with several values.

    base configurations, values of each ``--set`` ──> Variant: a name and the text of a file

A variant is an ordinary configuration file, and is decoded and validated as one.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml
from msgspec import Struct

from kubesched.config import untrusted_yaml
from kubesched.config.args import ARGS_KINDS
from kubesched.config.defaults import IN_TREE_PLUGINS
from kubesched.config.schema import GROUP, VERSION
from kubesched.errors import ConfigError, UsageError

JsonObject = dict[str, Any]


class Variant(Struct, frozen=True):
    """One configuration."""

    name: str
    #: the text of its file
    text: str


class Base(NamedTuple):
    """A configuration to start from."""

    name: str
    tree: JsonObject


class _Setting(NamedTuple):
    path: tuple[str, ...]
    values: tuple[object, ...]


def default() -> Base:
    """Return the default configuration."""
    tree = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "KubeSchedulerConfiguration"}
    return Base("default", tree)


def read(path: Path) -> Base:
    """Read a configuration file to start from."""
    try:
        tree = untrusted_yaml.load(path.read_text(encoding="utf-8"))
    except OSError as failed:
        raise ConfigError(f"cannot read {path}: {failed.strerror}") from None
    except UnicodeDecodeError as malformed:
        raise ConfigError(f"{path}: not YAML: {malformed}") from None
    except yaml.YAMLError as malformed:
        raise ConfigError(f"{path}: not YAML: {untrusted_yaml.problem(malformed)}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: not a configuration")
    return Base(str(path), tree)


def combined(bases: Sequence[Base], settings: Sequence[str]) -> list[Variant]:
    """Return every base with every combination of values, each with its own name."""
    parsed = [_setting(text) for text in settings]
    found: dict[str, Variant] = {}
    for base in bases:
        for values in product(*(each.values for each in parsed)):
            tree = copy.deepcopy(base.tree)
            names = [base.name] if len(bases) > 1 or not parsed else []
            for setting, value in zip(parsed, values, strict=True):
                _set(tree, setting.path, value)
                names.append(f"{'.'.join(setting.path)}={_shown(value)}")
            name = ", ".join(names)
            found[name] = Variant(name, msgspec.json.encode(tree).decode())
    return list(found.values())


def _setting(text: str) -> _Setting:
    path, equals, values = text.partition("=")
    parts = tuple(part.strip() for part in path.split("."))
    if not equals or not all(parts) or not values.strip():
        raise UsageError(f"--set {text}: expected PATH=VALUE or PATH=VALUE,VALUE,…")
    try:
        parsed = untrusted_yaml.load(f"[{values}]")
    except yaml.YAMLError:
        raise UsageError(f"--set {text}: {values} are no values in YAML") from None
    if not isinstance(parsed, list) or not parsed:
        raise UsageError(f"--set {text}: {values} are no values in YAML")
    return _Setting(parts, tuple(parsed))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# --- setting ----------------------------------------------------------------------------------


def _set(tree: JsonObject, path: tuple[str, ...], value: object) -> None:
    if not path[0][:1].isupper():
        _assign(tree, path, value)
        return
    # A plugin: in all profiles.
    profiles = tree.setdefault("profiles", [])
    if not profiles:
        profiles.append({})
    name, *rest = path
    _check_plugin(name, rest, tree)
    for profile in profiles:
        if rest == ["weight"]:
            _set_weight(profile, name, value)
        elif rest == ["enabled"]:
            _switch(profile, name, value)
        else:
            _assign(_args(profile, name), tuple(rest), value)


def _check_plugin(name: str, rest: Sequence[str], tree: JsonObject) -> None:
    if not rest:
        raise UsageError(f"--set {name}: say what of it, such as {name}.weight or {name}.enabled")
    if rest[0] in ("weight", "enabled") or name in ARGS_KINDS:
        return
    if name in IN_TREE_PLUGINS:
        raise UsageError(f"--set {name}.{'.'.join(rest)}: plugin {name} takes no arguments")
    text = msgspec.json.encode(tree).decode()
    if f'"{name}"' not in text:
        raise UsageError(f"--set {name}.{'.'.join(rest)}: no profile enables a plugin {name}")


def _set_weight(profile: JsonObject, name: str, value: object) -> None:
    plugins = profile.setdefault("plugins", {})
    entries = [
        entry
        for point in ("score", "multiPoint")
        for entry in (plugins.get(point) or {}).get("enabled") or ()
        if entry.get("name") == name
    ]
    for entry in entries:
        entry["weight"] = value
    if not entries:
        _listed(plugins, "multiPoint", "enabled").append({"name": name, "weight": value})


def _switch(profile: JsonObject, name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise UsageError(f"--set {name}.enabled: true or false, not {_shown(value)}")
    plugins = profile.setdefault("plugins", {})
    for point in list(plugins):
        for which in ("enabled", "disabled"):
            found = (plugins[point] or {}).get(which)
            if found:
                plugins[point][which] = [entry for entry in found if entry.get("name") != name]
    if name not in IN_TREE_PLUGINS and value:
        _listed(plugins, "multiPoint", "enabled").append({"name": name})
    elif not value and name in IN_TREE_PLUGINS:
        _listed(plugins, "multiPoint", "disabled").append({"name": name})


def _listed(plugins: JsonObject, point: str, which: str) -> list[JsonObject]:
    found: list[JsonObject] = plugins.setdefault(point, {}).setdefault(which, [])
    return found


def _args(profile: JsonObject, name: str) -> JsonObject:
    configs = profile.setdefault("pluginConfig", [])
    for config in configs:
        if config.get("name") == name:
            found: JsonObject = config.setdefault("args", {})
            return found
    made: JsonObject = {}
    configs.append({"name": name, "args": made})
    return made


def _assign(tree: JsonObject, path: tuple[str, ...], value: object) -> None:
    *parents, last = path
    for name in parents:
        inner = tree.setdefault(name, {})
        if not isinstance(inner, dict):
            raise UsageError(f"--set {'.'.join(path)}: {name} has no fields")
        tree = inner
    tree[last] = value
