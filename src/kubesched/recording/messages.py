"""Failure messages stripped of names, to compare those of a redacted recording.

Messages quote names, put them in braces, or call by its name a claim, or the node that pods are
preempted on; and they list reasons in alphabetical order, which pseudonyms would change.
"""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = re.compile(
    r'"[^"]*"|\{[^}]*\}|(?<=claim )\S+/\S+|(?<=claim: )\S+/\S+'
    r"|(?<=found a potential placement for pod on node )[^\s,]+"
)


def without_names(message: str) -> str:
    """Return a message without names."""
    return _NAMES.sub(_mask, message)


def same_without_names(one: str, other: str) -> bool:
    """Tell whether two messages are equal apart from names."""
    return _reasons(one) == _reasons(other)


def _reasons(message: str) -> list[str]:
    # The order of reasons depends on names.
    return sorted(each.removesuffix(".") for each in re.split(r"[,.:] ", without_names(message)))


def _mask(found: re.Match[str]) -> str:
    text = found[0]
    return f"{text[0]}*{text[-1]}" if text[0] in '"{' else "*"
