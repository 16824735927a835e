"""Shapes of the files that say what is to happen, and how their values are read.

A time or a duration is a number of seconds, or Go's notation: ``90``, ``"1h30m"``. Whatever is
wrong with a file is an ObjectError of one line that says where.
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


class Form(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of everything that files say."""


class NodeChange(Form, frozen=True, kw_only=True):
    """Nodes that come or go; one of `add`, `lose`, `lose_zone` and `drain`."""

    #: how many nodes come, like one that is there or as a manifest says
    add: int | None = None
    like: str = ""
    node: JsonObject | None = None
    #: name of a node, "any" for one of them by chance
    lose: str = ""
    lose_zone: str = ""
    drain: str = ""
    #: after which time they are there again
    for_: Time | None = field(default=None, name="for")


def decoded(tree: object, kind: type[T], where: str) -> T:
    """Return a value as a type; raises ObjectError, which says where it does not fit."""
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError as wrong:
        what, _, path = str(wrong).partition(" - at `$")
        at = path.strip("`.")
        what = what.replace("`", "")
        raise ObjectError(f"{where}: {at}: {what}" if at else f"{where}: {what}") from None


def seconds(value: Time, where: str) -> float:
    """Return a length of time in seconds; raises ObjectError if it is none."""
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
