"""A completed configuration as KubeSchedulerConfiguration v1, in YAML or JSON.

``--write-config-to`` and ``/configz`` show it. Fields, their omission and YAML's quoting are those
of kube-scheduler, so that the output of both can be compared as text.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from functools import cache
from typing import Any, Final

import msgspec
import yaml

from kubesched.config import documents
from kubesched.config.args import ARGS_KINDS
from kubesched.config.documents import Json
from kubesched.config.profiles import PluginConfig, Profile
from kubesched.config.schema import (
    CONFIGURATION,
    KINDS,
    RAW,
    Field,
    Form,
    ListOf,
    MapOf,
    Message,
    Scalar,
    WireType,
)
from kubesched.config.types import API_VERSION, SchedulerConfiguration

#: Go's JSON writes larger numbers with an exponent.
_FIRST_EXPONENT: Final = 1e21
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")


#: A surrogate: represents a byte that is not UTF-8, or comes from an invalid escape.
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def to_yaml(config: SchedulerConfiguration) -> str:
    """Encode as YAML, keys sorted."""
    return dump(to_json_object(config))


def dump(value: Json, *, sort_keys: bool = True) -> str:
    """Write JSON as YAML, quoted as kube-scheduler does it."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=False,
        allow_unicode=True,
        sort_keys=sort_keys,
    )
    return text


def in_order(value: Json, wire_type: WireType) -> Json:
    """Sort the fields of an object in the order of its message; unknown ones come last."""
    match wire_type:
        case ListOf() if isinstance(value, list):
            return [in_order(item, wire_type.item) for item in value]
        case Message() if isinstance(value, dict):
            types = {field.name: field.type for field in wire_type.fields if field.name in value}
            types |= {name: RAW for name in value if name not in types}
            args = KINDS.get(f"{value.get('name')}Args")
            if args is not None and "args" in types:
                types["args"] = args
            return {name: in_order(value[name], part) for name, part in types.items()}
    return value


def to_json(config: SchedulerConfiguration) -> str:
    """Encode as JSON on one line."""
    return json.dumps(to_json_object(config), ensure_ascii=False, separators=(",", ":"))


def to_json_object(config: SchedulerConfiguration) -> dict[str, Any]:
    """Encode as a JSON object of plain Python values."""
    return _encode_message(config, CONFIGURATION)


def used_profiles(config: SchedulerConfiguration) -> SchedulerConfiguration:
    """Drop arguments of plugins that no profile enables, and sort the others by plugin.

    This is the form that ``--write-config-to`` writes.
    """
    profiles = tuple(_used(profile) for profile in config.profiles)
    return msgspec.structs.replace(config, profiles=profiles)


def _used(profile: Profile) -> Profile:
    names = set(profile.plugins.names())
    used = [config for config in profile.plugin_config if config.name in names]
    used = [config for config in used if config.args is not None]
    return msgspec.structs.replace(
        profile, plugin_config=tuple(sorted(used, key=lambda config: config.name))
    )


# --- by schema --------------------------------------------------------------------------------


def _encode_message(value: msgspec.Struct, message: Message) -> dict[str, Any]:
    encoded: dict[str, Any] = {}
    if message.name in KINDS:
        encoded |= {"kind": message.name, "apiVersion": API_VERSION}
    attributes = _attributes(type(value))
    for field in message.fields:
        if field.name in encoded:
            continue
        part = getattr(value, attributes[field.name])
        if not _omitted(part, field):
            encoded[field.name] = _encode(part, field.type, value)
    return encoded


@cache
def _attributes(struct_type: type[msgspec.Struct]) -> dict[str, str]:
    return {info.encode_name: info.name for info in msgspec.structs.fields(struct_type)}


def _omitted(value: object, field: Field) -> bool:
    if not field.omit_empty:
        return False
    if field.pointer or isinstance(field.type, Message):
        return value is None
    if isinstance(field.type, Scalar) and field.type.form in {Form.DURATION, Form.RAW}:
        return False
    return not value


def _encode(value: Json, wire_type: WireType, owner: object) -> Json:
    match wire_type:
        case ListOf():
            return [_encode(item, wire_type.item, owner) for item in value or ()]
        case Message():
            return None if value is None else _encode_message(value, wire_type)
        case MapOf():
            return dict(value)
        case Scalar():
            return None if value is None else _encode_scalar(value, wire_type.form, owner)


def _encode_scalar(value: Json, form: Form, owner: object) -> Json:
    match form:
        case Form.RAW:
            return _encode_args(owner, value)
        case Form.DURATION:
            return str(value)
        case Form.BASE64:
            return base64.b64encode(value).decode()
        case Form.FLOAT:
            return _shortest_float32(value)
        case Form.STRING:
            return _text(value)
        case _:
            return value


def _encode_args(owner: object, args: Json) -> Json:
    if isinstance(owner, PluginConfig) and owner.name in ARGS_KINDS:
        return _encode_message(args, KINDS[type(args).__name__])
    return args


def _text(value: str) -> str:
    """Replace characters that are not valid Unicode, such as bytes of a file name."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)


def _shortest_float32(value: float) -> int | float:
    """Return the shortest decimal that rounds to the value in single precision."""
    single = struct.pack("<f", value)
    (rounded,) = struct.unpack("<f", single)
    texts = (f"{rounded:.{digits}g}" for digits in range(1, 10))
    shortest = next(float(text) for text in texts if _packed_single(text) == single)
    plain = shortest.is_integer() and abs(shortest) < _FIRST_EXPONENT
    return int(shortest) if plain else shortest


def _packed_single(text: str) -> bytes | None:
    """Return a number in single precision; None if it is too large after rounding."""
    try:
        return struct.pack("<f", float(text))
    except OverflowError:
        return None


class _Dumper(yaml.CSafeDumper):
    """Writes scalars as yaml.v2 does: quoted only where they would not be read as text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's way


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    ambiguous = not documents.is_text(text) or _BASE_60.fullmatch(text)
    style = "|" if "\n" in text else '"' if ambiguous else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_plain(dumper: _Dumper, value: float | None) -> yaml.ScalarNode:
    """Write null, a boolean or a number; the string tag keeps PyYAML from tagging it."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", json.dumps(value))


_Dumper.add_representer(str, _represent_text)
for _type in (bool, int, float, type(None)):
    _Dumper.add_representer(_type, _represent_plain)
