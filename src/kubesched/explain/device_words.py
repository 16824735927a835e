"""Selectors of devices in a few words, and which part of one a device does not meet.

device.driver == "gpu.example.com" &&                       driver == "gpu.example.com"
device.capacity["gpu.example.com"].memory                   memory >= 40Gi
    .compareTo(quantity("40Gi")) >= 0
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from kubesched.api.resource import Device, DeviceTaint
from kubesched.errors import KubeschedError
from kubesched.plugins.device_selectors import compile_selector

_OPENING: Final = "([{"
_CLOSING: Final = ")]}"
_QUOTES: Final = "\"'"
#: Attributes and capacities without their domain, which is the driver's nearly always.
_DOMAIN: Final = re.compile(r"""device\.(?:attributes|capacity)\[(["'])[^"']*\1\]\.\??""")
_COMPARED: Final = re.compile(
    r"""(\w+)\.compareTo\(\s*(?:quantity|semver)\(\s*(["'])([^"']*)\2\s*\)\s*\)\s*"""
    r"""(>=|<=|==|!=|>|<)\s*0"""
)
_SPACES: Final = re.compile(r"\s+")


def readable(expression: str) -> str:
    """Return an expression in fewer words; what is unusual about it stays as it is."""
    text = _SPACES.sub(" ", expression.strip())
    text = _DOMAIN.sub("", text)
    text = _COMPARED.sub(r"\1 \4 \3", text)
    text = text.replace("device.driver", "driver")
    return _unwrapped(text)


def _unwrapped(text: str) -> str:
    while text.startswith("(") and text.endswith(")") and _closes_at(text) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closes_at(text: str) -> int:
    """Return where the first parenthesis of a text closes."""
    for position, depth, _ in _walk(text):
        if depth == 0:
            return position
    return -1


@lru_cache(maxsize=1024)
def conjuncts(expression: str) -> tuple[str, ...]:
    """Return the parts of an expression that all have to be true, itself if it is no conjunction.

    Every part is an expression that can be compiled.
    """
    text = _unwrapped(expression.strip())
    parts, begin = [], 0
    for position, depth, quoted in _walk(text):
        if depth or quoted:
            continue
        is_choice = text[position] == "?" and not text.endswith(".", 0, position)
        if is_choice or text.startswith("||", position):
            return (expression,)
        if text.startswith("&&", position):
            parts.append(text[begin:position])
            begin = position + 2
    parts.append(text[begin:])
    found = tuple(part.strip() for part in parts)
    return found if len(found) > 1 and all(map(_compiles, found)) else (expression,)


def _walk(text: str) -> list[tuple[int, int, bool]]:
    """Return each position with the depth of brackets after it, and whether it is quoted."""
    found, depth, quote, escaped = [], 0, "", False
    for position, letter in enumerate(text):
        if quote:
            found.append((position, depth, True))
            if letter == quote and not escaped:
                quote = ""
            escaped = letter == "\\" and not escaped
            continue
        if letter in _QUOTES:
            quote = letter
        depth += (letter in _OPENING) - (letter in _CLOSING)
        found.append((position, depth, bool(quote)))
    return found


def _compiles(expression: str) -> bool:
    try:
        compile_selector(expression)
    except KubeschedError:
        return False
    return True


def lacking(expression: str, device: Device, driver: str) -> str:
    """Return the first part of an expression that a device does not meet."""
    for part in conjuncts(expression):
        try:
            if not compile_selector(part).matches(device, driver):
                return part
        except KubeschedError:
            return part
    return expression


def taint_text(taint: DeviceTaint) -> str:
    """Return a taint as users write it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
