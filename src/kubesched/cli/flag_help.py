"""The text of ``--help``: flags in groups, with types and defaults."""

from __future__ import annotations

import textwrap
from typing import Final

from kubesched.cli.flag_kinds import STRING
from kubesched.cli.flags import Flag, FlagSet, Group
from kubesched.logs import quote

#: Narrower columns of text are not wrapped.
_NARROWEST: Final = 24


def help_text(flags: FlagSet, *, command: str, about: str, width: int = 0) -> str:
    """Format the help of a command; a width of 0 means no limit."""
    sections = "".join(_section(group, width) for group in flags.groups)
    return f"{about}\n\n{usage_line(command)}{sections}"


def usage_line(command: str) -> str:
    """Format the usage line, without flags."""
    return f"Usage:\n  {command} [flags]\n"


def _section(group: Group, width: int) -> str:
    title = group.title[0].upper() + group.title[1:]
    heads = {flag.name: _head(flag) for flag in group.flags}
    column = max(map(len, heads.values())) + 3
    lines = [
        heads[flag.name].ljust(column) + _wrapped(_sentence(flag), column, width)
        for flag in sorted(group.flags, key=lambda flag: flag.name)
    ]
    return f"\n{title} flags:\n\n" + "".join(f"{line}\n" for line in lines)


def _head(flag: Flag) -> str:
    letter = f"-{flag.shorthand}," if flag.shorthand else "   "
    takes = f" {flag.kind.title}" if flag.kind.title else ""
    alone = f"[={flag.kind.alone}]" if flag.kind.title and flag.kind.alone else ""
    return f"  {letter} --{flag.name}{takes}{alone}"


def _sentence(flag: Flag) -> str:
    text = f"{flag.help} {flag.no_effect}" if flag.no_effect else flag.help
    default = flag.default_text
    if default in flag.kind.unsaid:
        return text
    return f"{text} (default {quote(default) if flag.kind is STRING else default})"


def _wrapped(text: str, column: int, width: int) -> str:
    lines = text.split("\n")
    room = width - column
    if width and room >= _NARROWEST:
        wrapper = textwrap.TextWrapper(room, break_long_words=False, break_on_hyphens=False)
        lines = [part for line in lines for part in wrapper.wrap(line) or [""]]
    return f"\n{' ' * column}".join(lines)
