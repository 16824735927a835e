"""Semantic versions, as a device attribute of type version has them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar, Final

from kubesched.cel.functions import Function, Overload, member
from kubesched.cel.types import BOOL, INT, SEMVER, STRING, Type
from kubesched.cel.values import NO_SUCH_OVERLOAD, UINT_MAX, Err, Object, Value
from kubesched.go_text import quoted

_NUMBER: Final = re.compile(r"[0-9]+")
_IDENTIFIER: Final = re.compile(r"[0-9A-Za-z-]+")


class Semver(Object):
    """A version: ``text`` as it was written, ``key`` for comparisons."""

    __slots__ = ("key", "major", "minor", "patch", "text")
    type: ClassVar[Type] = SEMVER

    def __init__(
        self, major: int, minor: int, patch: int, prerelease: tuple[str, ...], text: str
    ) -> None:
        self.major, self.minor, self.patch = major, minor, patch
        self.text = text
        # Numbers come before names, and any prerelease before the release.
        parts = tuple((0, int(it), "") if it.isdigit() else (1, 0, it) for it in prerelease)
        self.key = (major, minor, patch, not prerelease, parts)

    def equals(self, other: Value) -> Value:
        """Whether both have the same precedence: build metadata does not count."""
        return self.key == other.key if isinstance(other, Semver) else NO_SUCH_OVERLOAD


@lru_cache(maxsize=4096)
def parse(text: str) -> Semver | Err:
    """Return the version that a text spells, or upstream's error."""
    if not text:
        return Err("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        return Err("No Major.Minor.Patch elements found")
    patch, plus, build = parts[2].partition("+")
    patch, dash, prerelease = patch.partition("-")
    numbers = []
    for name, part in (("major", parts[0]), ("minor", parts[1]), ("patch", patch)):
        number = _number(name, part)
        if isinstance(number, Err):
            return number
        numbers.append(number)
    pre = tuple(prerelease.split(".")) if dash else ()
    problem = next(filter(None, map(_prerelease_problem, pre)), None)
    if problem is None and plus:
        problem = next(filter(None, map(_build_problem, build.split("."))), None)
    return Semver(numbers[0], numbers[1], numbers[2], pre, text) if problem is None else problem


def _number(name: str, text: str) -> int | Err:
    if text and not _NUMBER.fullmatch(text):
        return Err(f"Invalid character(s) found in {name} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        return Err(f"{name.capitalize()} number must not contain leading zeroes {quoted(text)}")
    return _go_uint(text)


def _go_uint(text: str) -> int | Err:
    if not text:
        return Err('strconv.ParseUint: parsing "": invalid syntax')
    value = int(text) if len(text) <= 20 else UINT_MAX + 1
    if value > UINT_MAX:
        return Err(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return value


def _prerelease_problem(text: str) -> Err | None:
    if not text:
        return Err("Prerelease is empty")
    if _NUMBER.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            return Err(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        number = _go_uint(text)
        return number if isinstance(number, Err) else None
    if not _IDENTIFIER.fullmatch(text):
        return Err(f"Invalid character(s) found in prerelease {quoted(text)}")
    return None


def _build_problem(text: str) -> Err | None:
    if not text:
        return Err("Build meta data is empty")
    if not _IDENTIFIER.fullmatch(text):
        return Err(f"Invalid character(s) found in build meta data {quoted(text)}")
    return None


def _parse_normalized(text: str, normalize: bool = False) -> Semver | Err:
    """Parse a version; if asked to, without a leading v, leading zeros, and with parts left out."""
    if not normalize:
        return parse(text)
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            if not stripped or stripped[0] not in "0123456789":
                stripped = "0" + stripped
            parts[index] = stripped
    if len(parts) < 3:
        if any(char in parts[-1] for char in "+-"):
            return Err("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse(".".join(parts))


def _is_semver(text: str, normalize: bool = False) -> bool:
    return isinstance(_parse_normalized(text, normalize), Semver)


def compare(left: Semver, right: Semver) -> int:
    """Return -1, 0 or 1."""
    return (left.key > right.key) - (left.key < right.key)


def _signed(number: int) -> int:
    """Convert as upstream does, where a number beyond int64 becomes negative."""
    return number - 2**64 if number >= 2**63 else number


_PAIR: Final = (SEMVER, SEMVER)

FUNCTIONS: Final = [
    Function(
        "semver",
        (
            Overload("string_to_semver", (STRING,), SEMVER, parse),
            Overload("string_bool_to_semver", (STRING, BOOL), SEMVER, _parse_normalized),
        ),
    ),
    Function(
        "isSemver",
        (
            Overload("is_semver_string", (STRING,), BOOL, _is_semver),
            Overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver),
        ),
    ),
    Function(
        "isGreaterThan",
        (member("semver_is_greater_than", _PAIR, BOOL, lambda a, b: a.key > b.key),),
    ),
    Function(
        "isLessThan", (member("semver_is_less_than", _PAIR, BOOL, lambda a, b: a.key < b.key),)
    ),
    Function("compareTo", (member("semver_compare_to", _PAIR, INT, compare),)),
    Function("major", (member("semver_major", (SEMVER,), INT, lambda it: _signed(it.major)),)),
    Function("minor", (member("semver_minor", (SEMVER,), INT, lambda it: _signed(it.minor)),)),
    Function("patch", (member("semver_patch", (SEMVER,), INT, lambda it: _signed(it.patch)),)),
]
