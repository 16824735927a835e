"""Sets of characters, as sorted ranges of code points."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from functools import cache, lru_cache
from typing import Final

MAX_CODE: Final = 0x10FFFF
Ranges = list[tuple[int, int]]

#: Where letters with case end; beyond it there is nothing to fold.
_LAST_CASED: Final = 0x1E943


class CharSet:
    """An immutable set of characters."""

    __slots__ = ("_ends", "_known", "_starts")

    def __init__(self, ranges: Ranges) -> None:
        merged = normalized(ranges)
        self._starts = [low for low, _ in merged]
        self._ends = [high for _, high in merged]
        self._known: dict[str, bool] = {}

    def __contains__(self, char: str) -> bool:
        known = self._known.get(char)
        if known is None:
            code = ord(char)
            at = bisect_right(self._starts, code) - 1
            known = at >= 0 and code <= self._ends[at]
            if len(self._known) < 1024:
                self._known[char] = known
        return known


def normalized(ranges: Ranges) -> Ranges:
    """Return ranges sorted, merged and disjoint."""
    result: Ranges = []
    for low, high in sorted(ranges):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], high))
        else:
            result.append((low, high))
    return result


def negated(ranges: Ranges) -> Ranges:
    """Return the characters that are not in the ranges."""
    result, start = [], 0
    for low, high in normalized(ranges):
        if start < low:
            result.append((start, low - 1))
        start = high + 1
    if start <= MAX_CODE:
        result.append((start, MAX_CODE))
    return result


def folded(ranges: Ranges) -> Ranges:
    """Return the ranges with all other cases of their letters."""
    orbits = _orbits()
    added: Ranges = []
    for low, high in ranges:
        for code in range(low, min(high, _LAST_CASED) + 1):
            added += [(other, other) for other in orbits.get(code, ())]
    return normalized([*ranges, *added])


@cache
def _orbits() -> dict[int, tuple[int, ...]]:
    """Return for each character with case those that differ from it in case alone."""
    groups: dict[int, set[int]] = {}
    for code in range(_LAST_CASED + 1):
        char = chr(code)
        related = {ord(form) for form in (char.lower(), char.upper()) if len(form) == 1}
        if related == {code} or not related:
            continue
        group = {code} | related
        for member in list(group):
            group |= groups.get(member, set())
        for member in group:
            groups[member] = group
    # Dotless and dotted i have a case of their own in Turkish only.
    for code in (0x130, 0x131):
        for group in [groups.pop(code, None)]:
            if group is not None:
                group.discard(code)
    return {code: tuple(group - {code}) for code, group in groups.items()}


@lru_cache(maxsize=64)
def category(name: str) -> tuple[tuple[int, int], ...] | None:
    """Return the characters of a general category (L, Lu, Letter, Any), or None if unknown."""
    if name == "Any":
        return ((0, MAX_CODE),)
    if name == "Assigned":
        unassigned = category("Cn")
        assert unassigned is not None  # noqa: S101 - it is one of the categories
        return tuple(negated(list(unassigned)))
    name = _ALIASES.get(name, name)
    if name == "Lc":
        wanted: tuple[str, ...] = ("Ll", "Lt", "Lu")
    elif name in _CATEGORIES:
        wanted = (name,)
    else:
        return None
    parts = (ranges for known, ranges in _by_category().items() if known.startswith(wanted))
    return tuple(normalized([span for ranges in parts for span in ranges]))


@cache
def _by_category() -> dict[str, Ranges]:
    """Return the characters of each category of two letters."""
    table: dict[str, Ranges] = {}
    for first, last in _ASSIGNED:
        for code in range(first, last + 1):
            ranges = table.setdefault(unicodedata.category(chr(code)), [])
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1] = (ranges[-1][0], code)
            else:
                ranges.append((code, code))
    table["Cn"] += [(0x40000, 0xDFFFF), (0xE1000, 0xEFFFF), (0xFFFFE, 0xFFFFF), (0x10FFFE, MAX_CODE)]
    table["Co"] += [(0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)]
    return table


#: Where characters are assigned; beyond, there are only two large blocks for private use.
_ASSIGNED: Final = ((0, 0x3FFFF), (0xE0000, 0xE0FFF))

_CATEGORIES: Final = frozenset(
    "C Cc Cf Cn Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So "
    "Z Zl Zp Zs".split()
)
_ALIASES: Final = dict(
    pair.split("=")
    for pair in (
        "Casedletter=Lc Closepunctuation=Pe Combiningmark=M Connectorpunctuation=Pc Control=Cc "
        "Currencysymbol=Sc Dashpunctuation=Pd Decimalnumber=Nd Enclosingmark=Me "
        "Finalpunctuation=Pf Format=Cf Initialpunctuation=Pi Letter=L Letternumber=Nl "
        "Lineseparator=Zl Lowercaseletter=Ll Mark=M Mathsymbol=Sm Modifierletter=Lm "
        "Modifiersymbol=Sk Nonspacingmark=Mn Number=N Openpunctuation=Ps Other=C Otherletter=Lo "
        "Othernumber=No Otherpunctuation=Po Othersymbol=So Paragraphseparator=Zp Privateuse=Co "
        "Punctuation=P Separator=Z Spaceseparator=Zs Spacingmark=Mc Surrogate=Cs Symbol=S "
        "Titlecaseletter=Lt Unassigned=Cn Uppercaseletter=Lu Cntrl=Cc Digit=Nd Punct=P"
    ).split()
)

DIGIT: Final = [(0x30, 0x39)]
SPACE: Final = [(0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)]
WORD: Final = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]

PERL: Final = {"d": DIGIT, "s": SPACE, "w": WORD}
POSIX: Final = {
    "alnum": [(0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)],
    "alpha": [(0x41, 0x5A), (0x61, 0x7A)],
    "ascii": [(0, 0x7F)],
    "blank": [(0x09, 0x09), (0x20, 0x20)],
    "cntrl": [(0, 0x1F), (0x7F, 0x7F)],
    "digit": DIGIT,
    "graph": [(0x21, 0x7E)],
    "lower": [(0x61, 0x7A)],
    "print": [(0x20, 0x7E)],
    "punct": [(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)],
    "space": [(0x09, 0x0D), (0x20, 0x20)],
    "upper": [(0x41, 0x5A)],
    "word": WORD,
    "xdigit": [(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)],
}
