"""Decodes the arguments of out-of-tree plugins to the plugin's own type.

A plugin with arguments has a class attribute ``Args``: a struct (derived from `Arguments`), or a
dataclass. The profile's JSON is converted strictly: no unknown field, every value of its type, and
a ``__post_init__`` may reject the rest with a ValueError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import inspect

from kubesched.config.defaults import IN_TREE_PLUGINS
from kubesched.config.profiles import Profile
from kubesched.errors import ConfigError, PluginError
from kubesched.framework.plugin import Plugin

#: Type fields of Kubernetes objects, ignored here.
_TYPE_FIELDS: Final = frozenset({"apiVersion", "kind"})


class Arguments(msgspec.Struct, kw_only=True, rename="camel"):
    """Base of a plugin's ``Args``; ``price_label`` is ``priceLabel`` in the configuration."""


def arguments_of(profile: Profile, plugin: type[Plugin]) -> Any:  # noqa: ANN401 (of type plugin.Args)
    """Return a plugin's arguments in a profile, an instance of its ``Args``; None without one.

    Raises ConfigError, which names profile, plugin and field, if they cannot be used.
    """
    given = next((each.args for each in profile.plugin_config if each.name == plugin.name), None)
    try:
        return decode(getattr(plugin, "Args", None), cast("object", given))
    except ConfigError as refused:
        raise ConfigError(
            f'profile "{profile.scheduler_name}": plugin "{plugin.name}": {refused}'
        ) from None


def check_arguments(profiles: Iterable[Profile], plugins: Mapping[str, type[Plugin]]) -> None:
    """Raise ConfigError if arguments of out-of-tree plugins in these profiles are invalid."""
    for profile in profiles:
        for name in profile.plugins.names():
            if name in plugins and name not in IN_TREE_PLUGINS:
                arguments_of(profile, plugins[name])


def check_type(plugin: type[Plugin]) -> None:
    """Raise PluginError if an ``Args`` cannot hold arguments."""
    kind = getattr(plugin, "Args", None)
    if kind is None:
        return
    try:
        described = inspect.type_info(kind)
    except (TypeError, NameError) as unusable:
        raise PluginError(f"plugin {plugin.name}: Args cannot be used: {unusable}") from None
    if not isinstance(described, inspect.StructType | inspect.DataclassType):
        raise PluginError(f"plugin {plugin.name}: Args must be a msgspec Struct or a dataclass")


def decode(kind: type | None, given: object) -> Any:  # noqa: ANN401 (an instance of `kind`)
    """Convert arguments to a type; a ConfigError names the invalid field."""
    if given is not None and not isinstance(given, dict):
        raise ConfigError(f"args: expected an object, got {type(given).__name__}")
    if kind is None:
        if given and set(given) - _TYPE_FIELDS:
            raise ConfigError(f"takes no args, got {', '.join(sorted(given))}")
        return None
    described = inspect.type_info(kind)
    known = set(_fields(described))
    fields = {
        key: each for key, each in (given or {}).items() if key in known or key not in _TYPE_FIELDS
    }
    unknown = list(_unknown(fields, described, "args"))
    if unknown:
        raise ConfigError(
            f"unknown field {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        )
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as wrong:
        what, _, path = str(wrong).partition(" - at `$")
        raise ConfigError(f"args{path.rstrip('`')}: {what.replace('`', '')}") from None


def _fields(described: inspect.Type) -> dict[str, inspect.Type]:
    if isinstance(described, inspect.StructType | inspect.DataclassType):
        return {field.encode_name: field.type for field in described.fields}
    return {}


def _unknown(value: object, described: inspect.Type, path: str) -> Iterator[str]:
    """Yield the path of each unknown field, at any depth."""
    if isinstance(described, inspect.UnionType):
        # Of a union, at most one type has fields: msgspec ensures that.
        made_of_fields = [each for each in described.types if _fields(each)]
        described = made_of_fields[0] if made_of_fields else described.types[0]
    fields = _fields(described)
    if isinstance(value, dict) and fields:
        for key, item in value.items():
            if key in fields:
                yield from _unknown(item, fields[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(value, dict) and isinstance(described, inspect.DictType):
        for key, item in value.items():
            yield from _unknown(item, described.value_type, f"{path}.{key}")
    elif isinstance(value, list) and isinstance(described, inspect.CollectionType):
        for index, item in enumerate(value):
            yield from _unknown(item, described.item_type, f"{path}[{index}]")
