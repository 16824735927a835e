"""Types of flags: how values are parsed and formatted.

A type parses one occurrence of a flag at a time, given the value of earlier occurrences: a list
grows, anything else is replaced. Invalid text is a UsageError with kube-scheduler's message.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from kubesched import KUBERNETES_VERSION
from kubesched.api import quantity
from kubesched.cli.flag_csv import read_csv, write_csv
from kubesched.cli.flag_numbers import (
    format_float,
    parse_bool,
    parse_float,
    parse_int,
    parse_uint,
)
from kubesched.config.durations import Duration
from kubesched.config.features import check_reported_version
from kubesched.errors import ConfigError, QuantityError, UsageError
from kubesched.logs import ModuleVerbosity, quote
from kubesched.server.options import SniCertificate

#: Pairs of a component and a ``Gate=value``, in the order given.
GatePairs = tuple[tuple[str, str], ...]

ALL_INTERFACES: Final = "0.0.0.0"  # noqa: S104 (kube-scheduler's default)

_QUANTITY: Final = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
_VERBOSITY_BITS: Final = 31


class FlagKind(msgspec.Struct, frozen=True):
    """The type of a flag's values."""

    #: as in the help; empty for booleans
    title: str
    #: (text, value of earlier occurrences or None) → value
    read: Callable[[str, Any], Any]
    show: Callable[[Any], str] = str
    #: the value of a flag without an argument
    alone: str = ""
    #: defaults that the help does not show
    unsaid: frozenset[str] = frozenset({"", "0", "false"})


def _shown_bool(value: bool) -> str:
    return "true" if value else "false"


def _duration(text: str, _before: object) -> Duration:
    try:
        return Duration.parse(text)
    except ConfigError as wrong:
        raise UsageError(str(wrong)) from None


def _strings(text: str, before: tuple[str, ...] | None) -> tuple[str, ...]:
    return (*(before or ()), *read_csv(text))


def _integers(text: str, before: tuple[int, ...] | None) -> tuple[int, ...]:
    return (*(before or ()), *(parse_int(each, bits=32) for each in text.split(",")))


def _mapping(text: str, before: Mapping[str, str] | None) -> dict[str, str]:
    pairs = [text.strip('"')] if text.count("=") <= 1 else read_csv(text)
    read = dict(before or {})
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{pair} must be formatted as key=value")
        read[key] = value
    return read


def _shown_mapping(mapping: Mapping[str, str]) -> str:
    return f"[{write_csv(f'{key}={value}' for key, value in sorted(mapping.items()))}]"


def _address(text: str, before: str | None) -> str:
    """Parse an IP address; the empty text changes nothing, and zones are not allowed."""
    if not text:
        return ALL_INTERFACES if before is None else before
    refused = UsageError(f"failed to parse IP: {quote(text)}")
    if "%" in text:
        raise refused
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        raise refused from None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _size(text: str, _before: object) -> str:
    """Validate a quantity; its spelling is kept."""
    if not _QUANTITY.fullmatch(text):
        raise UsageError(f"quantities must match the regular expression '^{_QUANTITY.pattern}$'")
    try:
        quantity.value(text)
    except QuantityError as wrong:
        raise UsageError(str(wrong)) from None
    return text


def _modules(text: str, before: tuple[ModuleVerbosity, ...] | None) -> tuple[ModuleVerbosity, ...]:
    read = list(before or ())
    for item in filter(None, text.split(",")):
        pattern, equals, level = item.partition("=")
        if not (pattern and equals and level) or "=" in level:
            raise UsageError(f"{quote(item)} does not have the pattern=N format")
        try:
            verbosity = parse_uint(level, bits=_VERBOSITY_BITS)
        except UsageError as wrong:
            raise UsageError(f"parsing verbosity in {quote(item)}: {wrong}") from None
        read.append(ModuleVerbosity(pattern, verbosity))
    return tuple(read)


def _shown_modules(modules: tuple[ModuleVerbosity, ...]) -> str:
    return ",".join(f"{each.pattern}={each.verbosity}" for each in modules)


def _certificate(
    text: str, before: tuple[SniCertificate, ...] | None
) -> tuple[SniCertificate, ...]:
    files, colon, names = (part.strip() for part in text.partition(":"))
    if colon and not names:
        raise UsageError("empty names list is not allowed")
    paths = [part.strip() for part in files.split(",")]
    if len(paths) != 2:
        raise UsageError("expected comma separated certificate and key file paths")
    patterns = tuple(name.strip() for name in names.split(",")) if colon else ()
    return (*(before or ()), SniCertificate(paths[0], paths[1], patterns))


def _shown_certificates(certificates: tuple[SniCertificate, ...]) -> str:
    shown = (
        f"{each.cert_file},{each.key_file}" + (f":{','.join(each.names)}" if each.names else "")
        for each in certificates
    )
    return f"[{';'.join(shown)}]"


def _gates(text: str, before: GatePairs | None) -> GatePairs:
    read = list(before or ())
    for pair in filter(None, text.split(",")):
        component, colon, gate = (part.strip() for part in pair.partition(":"))
        read.append((component, gate) if colon else ("", component))
    return tuple(read)


def _shown_gates(pairs: GatePairs) -> str:
    by_component = sorted(pairs, key=lambda pair: pair[0])
    return ",".join(f"{component}:{gate}" for component, gate in by_component)


class VersionFlag(msgspec.Struct, frozen=True):
    """The value of --version: whether to print our version, and which one to report."""

    #: true, raw, false, or the given version
    said: str = "false"
    reported: str = KUBERNETES_VERSION


def _version(text: str, before: VersionFlag | None) -> VersionFlag:
    reported = (before or VersionFlag()).reported
    if text == "raw":
        return VersionFlag(text, reported)
    if not text.startswith("v"):
        return VersionFlag(_shown_bool(parse_bool(text)), reported)
    try:
        check_reported_version(text)
    except ConfigError as wrong:
        raise UsageError(str(wrong)) from None
    return VersionFlag(text, reported=text)


STRING: Final = FlagKind("string", lambda text, _: text)
BOOL: Final = FlagKind("", lambda text, _: parse_bool(text), _shown_bool, alone="true")
INT: Final = FlagKind("int", lambda text, _: parse_int(text))
INT32: Final = FlagKind("int32", lambda text, _: parse_int(text, bits=32))
#: None is a value that was not given
OPTIONAL_INT: Final = FlagKind(
    "int", lambda text, _: parse_int(text), lambda value: "" if value is None else str(value)
)
FLOAT: Final = FlagKind("float", lambda text, _: parse_float(text), format_float)
FLOAT32: Final = FlagKind(
    "float32",
    lambda text, _: parse_float(text, single=True),
    lambda value: format_float(value, single=True),
)
DURATION: Final = FlagKind("duration", _duration, unsaid=frozenset({"0", "0s"}))
STRINGS: Final = FlagKind(
    "strings", _strings, lambda values: f"[{write_csv(values)}]", unsaid=frozenset({"[]"})
)
INT32S: Final = FlagKind(
    "int32Slice", _integers, lambda values: f"[{','.join(str(each) for each in values)}]"
)
MAPPING: Final = FlagKind("stringToString", _mapping, _shown_mapping)
ADDRESS: Final = FlagKind(
    "ip", _address, lambda value: value or "<nil>", unsaid=frozenset({"<nil>"})
)
QUANTITY: Final = FlagKind("quantity", _size)
LEVEL: Final = FlagKind("Level", lambda text, _: parse_uint(text, bits=_VERBOSITY_BITS))
MODULES: Final = FlagKind("pattern=N,...", _modules, _shown_modules)
CERTIFICATES: Final = FlagKind("namedCertKey", _certificate, _shown_certificates)
GATES: Final = FlagKind("colonSeparatedMultimapStringString", _gates, _shown_gates)
VERSION: Final = FlagKind("version", _version, lambda value: str(value.said), alone="true")
