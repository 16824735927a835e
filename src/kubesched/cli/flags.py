"""Command lines in kube-scheduler's syntax: a table of flags, and their parsed values.

    arguments ──parse──> ParsedFlags: values, given flags, positional arguments

``--flag value`` and ``--flag=value`` are the same, ``_`` in a name is ``-``, a boolean may have no
value, ``-v 2``, ``-v=2`` and ``-v2`` are ``--v=2``, ``--`` ends the flags. The last occurrence
counts, lists grow. Errors are UsageErrors with kube-scheduler's messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kubesched.cli.flag_kinds import FlagKind
from kubesched.cli.removed_flags import instead_of
from kubesched.errors import UsageError
from kubesched.logs import quote

T = TypeVar("T")


class Flag(msgspec.Struct, frozen=True):
    """A flag: its name without dashes, its type, and its help."""

    name: str
    kind: FlagKind
    default: Any
    help: str
    shorthand: str = ""
    #: why it has no effect here; empty if it has
    no_effect: str = ""

    @property
    def default_text(self) -> str:
        """The default as shown in the help."""
        return self.kind.show(self.default)


class Group(msgspec.Struct, frozen=True):
    """Flags that the help shows together."""

    title: str
    flags: tuple[Flag, ...]


class ParsedFlags:
    """The values of all flags, and which were given."""

    def __init__(
        self, flags: Mapping[str, Flag], given: Mapping[str, object], arguments: Sequence[str]
    ) -> None:
        self._flags = flags
        self._given = given
        #: positional arguments
        self.arguments = tuple(arguments)

    def get(self, name: str, kind: type[T]) -> T:
        """Return the value of a flag, which must be of this type."""
        value = self._given.get(name, self._flags[name].default)
        if not isinstance(value, kind):
            raise TypeError(f"--{name} is not of type {kind.__name__}")
        return value

    def is_given(self, name: str) -> bool:
        """Tell whether a flag was given."""
        return name in self._given

    def given(self) -> Iterator[Flag]:
        """Yield the given flags, by name."""
        return (self._flags[name] for name in sorted(self._given))

    def texts(self) -> dict[str, str]:
        """Return the values of all flags as text, by name."""
        return {
            name: flag.kind.show(self._given.get(name, flag.default))
            for name, flag in sorted(self._flags.items())
        }


class FlagSet:
    """All flags of a command."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self.groups = tuple(groups)
        self.flags = {flag.name: flag for group in self.groups for flag in group.flags}
        self._shorthands = {flag.shorthand: flag for flag in self.flags.values() if flag.shorthand}

    def parse(self, arguments: Sequence[str]) -> ParsedFlags:
        """Parse a command line."""
        return _CommandLine(self.flags, self._shorthands, arguments).parse()


class _CommandLine:
    def __init__(
        self, flags: Mapping[str, Flag], shorthands: Mapping[str, Flag], arguments: Sequence[str]
    ) -> None:
        self._flags = flags
        self._shorthands = shorthands
        self._left = list(arguments)
        self._given: dict[str, Any] = {}

    def parse(self) -> ParsedFlags:
        others: list[str] = []
        while self._left:
            argument = self._left.pop(0)
            if argument == "--":
                others += self._left
                break
            if argument.startswith("--"):
                self._parse_long(argument)
            elif argument.startswith("-") and argument != "-":
                self._parse_short(argument[1:])
            else:
                others.append(argument)
        return ParsedFlags(self._flags, self._given, others)

    def _parse_long(self, argument: str) -> None:
        name, equals, value = argument[2:].partition("=")
        if not name or name.startswith("-"):
            raise UsageError(f"bad flag syntax: {argument}")
        flag = self._flags.get(name.replace("_", "-"))
        if flag is None:
            raise UsageError(f"unknown flag: --{name}{instead_of(name)}")
        if not equals:
            value = self._value_of(flag, f"--{name}")
        self._set(flag, value)

    def _parse_short(self, letters: str) -> None:
        """Parse flags of one letter that share a dash; the last one may have its value attached."""
        while letters:
            letter, rest = letters[0], letters[1:]
            flag = self._shorthands.get(letter)
            if flag is None:
                raise UsageError(f"unknown shorthand flag: {_quote_letter(letter)} in -{letters}")
            if len(rest) > 1 and rest[0] == "=":
                value, letters = rest[1:], ""
            elif flag.kind.alone:
                value, letters = flag.kind.alone, rest
            elif rest:
                value, letters = rest, ""
            else:
                value = self._value_of(flag, f"{_quote_letter(letter)} in -{letters}")
                letters = ""
            self._set(flag, value)

    def _value_of(self, flag: Flag, shown: str) -> str:
        if flag.kind.alone:
            return flag.kind.alone
        if not self._left:
            raise UsageError(f"flag needs an argument: {shown}")
        return self._left.pop(0)

    def _set(self, flag: Flag, text: str) -> None:
        try:
            self._given[flag.name] = flag.kind.read(text, self._given.get(flag.name))
        except UsageError as wrong:
            shown = f"-{flag.shorthand}, --{flag.name}" if flag.shorthand else f"--{flag.name}"
            raise UsageError(
                f"invalid argument {quote(text)} for {quote(shown)} flag: {wrong}"
            ) from None


def _quote_letter(letter: str) -> str:
    return "'\\''" if letter == "'" else f"'{quote(letter)[1:-1]}'"
