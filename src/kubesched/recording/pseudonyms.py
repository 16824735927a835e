"""Pseudonyms for names: equal names get equal pseudonyms, which reveal nothing.

A pseudonym is a hash with a key that is generated at run time and never written, so a reader of the
recording cannot test guesses. Two kinds of names need more:

joined     parts between dashes and slashes have their own pseudonyms, because the claim of an
           ephemeral volume is named after the pod, a dash, and the volume, and an alternative of a
           device request after the request, a slash, and its own name
ordered    among equally suitable volumes the first by name is chosen, so pseudonyms of volumes
           have the order of their names
"""

from __future__ import annotations

import base64
import re
import secrets
from bisect import bisect_left
from hashlib import blake2b
from typing import Final

_PART: Final = re.compile("[^-/]+")
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
#: Labels of ordered names are numbers of this many digits, longer where there is no gap left.
_WIDTH: Final = 12
_END: Final = len(_DIGITS) ** _WIDTH
#: Initial gap between consecutive names, and at the ends.
_STEP: Final = len(_DIGITS) ** 7
_SHARE: Final = 4096
_MOST_REMEMBERED: Final = 200_000


class Pseudonyms:
    """Maps names to pseudonyms."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        #: cleared from time to time, since it can be recomputed
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return the pseudonym of a name; "" stays ""."""
        if not name:
            return name
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            digest = blake2b(name.encode(), key=self._key, digest_size=8).digest()
            # It starts with a letter, so that it never parses as a number.
            known = "x" + base64.b32encode(digest).decode().rstrip("=").lower()
            self._known[name] = known
        return known

    def joined(self, name: str) -> str:
        """Return the pseudonyms of the parts of a name, joined as before."""
        return _PART.sub(lambda part: self.of(part[0]), name)


class OrderedPseudonyms:
    """Maps names to pseudonyms of the same order."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._labels: dict[str, str] = {}
        #: the last name: the next is mostly its neighbour
        self._last = ""

    def of(self, name: str) -> str:
        """Return the pseudonym of a name; "" stays ""."""
        if not name:
            return name
        label = self._labels.get(name)
        if label is None:
            place = bisect_left(self._names, name)
            before = self._names[place - 1] if place else ""
            after = self._names[place] if place < len(self._names) else ""
            label = self._labels[name] = self._between(before, after)
            self._names.insert(place, name)
            self._last = name
        return f"v{label}"

    def _between(self, before: str, after: str) -> str:
        """Return a label between those of two names; "" stands for the ends."""
        low, high = self._labels.get(before, ""), self._labels.get(after, "")
        if not low and not high:
            return _label(_END // 2)
        first = int(low[:_WIDTH], len(_DIGITS)) if low else 0
        last = int(high[:_WIDTH], len(_DIGITS)) if high else _END
        step = _STEP if not (low and high) else (last - first) // _SHARE
        if not high or before == self._last:
            number = first + max(step, 1)
        elif not low or after == self._last:
            number = last - max(step, 1)
        else:
            number = (first + last) // 2
        return _label(number) if first < number < last else _halfway(low, high)


def _label(number: int) -> str:
    digits = ""
    for _ in range(_WIDTH):
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


def _halfway(low: str, high: str) -> str:
    """Return a text between two texts, possibly longer; it never ends in a zero."""
    found = ""
    for place in range(len(low) + len(high) + 1):
        least = _DIGITS.index(low[place]) if place < len(low) else 0
        most = _DIGITS.index(high[place]) if place < len(high) else len(_DIGITS)
        if most - least > 1:
            return found + _DIGITS[(least + most) // 2]
        found += _DIGITS[least]
        if least < most:
            high = ""  # any suffix is less than it
    return found + _DIGITS[1]
