"""Schemas of the input files of simulations, and parsing of their values.

A time or a duration is a number of seconds, or Go's notation: ``90``, ``"1h30m"``. Any error in a
file is an ObjectError of one line that names the place.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from kubesched.config.durations import Duration
from kubesched.errors import ConfigError, ObjectError

T = TypeVar("T")
JsonObject = dict[str, Any]
Time = float | str


class InputSchema(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of all schemas."""


class Gang(InputSchema, frozen=True):
    """Pods that arrive together are a gang."""

    #: how many of them have to fit; None: all
    min_count: int | None = None
    #: label of which all their nodes must have the same value
    topology_key: str = ""


class NodeChange(InputSchema, frozen=True, kw_only=True):
    """Nodes that are added or removed; one of `add`, `lose`, `lose_zone` and `drain`."""

    #: number of nodes to add, like an existing one or from a manifest
    add: int | None = None
    like: str = ""
    node: JsonObject | None = None
    #: name of a node, "any" for a random one
    lose: str = ""
    lose_zone: str = ""
    drain: str = ""
    #: after this time they are back
    for_: Time | None = field(default=None, name="for")


def decoded(tree: object, kind: type[T], where: str) -> T:
    """Convert a value to a type; raises ObjectError with the place of the error."""
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError as wrong:
        what, _, path = str(wrong).partition(" - at `$")
        at = path.strip("`.")
        what = what.replace("`", "")
        raise ObjectError(f"{where}: {at}: {what}" if at else f"{where}: {what}") from None


def seconds(value: Time, where: str) -> float:
    """Parse a duration to seconds; raises ObjectError."""
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = _go_seconds(value, where)
    else:
        number = value
    if not math.isfinite(number) or number < 0:
        raise ObjectError(f"{where}: {value} is no length of time: it must be 0 or more seconds")
    return number


def _go_seconds(text: str, where: str) -> float:
    try:
        return Duration.parse(text.strip()).seconds
    except ConfigError:
        raise ObjectError(
            f"{where}: {text!r} is no length of time: write seconds, or for example 1h30m"
        ) from None
