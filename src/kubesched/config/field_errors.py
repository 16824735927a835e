"""Validation errors of single fields, in the words of Kubernetes' API machinery.

A path is plain text (``profiles[0].plugins``). An error is a line of text as well; lists of them
are joined by ``aggregate``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from kubesched.config.durations import Duration


def required(path: str, detail: str = "") -> str:
    """Say that a value is missing."""
    return f"{path}: Required value" + (f": {detail}" if detail else "")


def invalid(path: str, value: object, detail: str) -> str:
    """Say that a value is wrong."""
    return f"{path}: Invalid value: {shown(value)}: {detail}"


def duplicate(path: str, value: object) -> str:
    """Say that a value is there already."""
    return f"{path}: Duplicate value: {shown(value)}"


def forbidden(path: str, detail: str) -> str:
    """Say that a value must not be given here."""
    return f"{path}: Forbidden: {detail}"


def unsupported(path: str, value: str, supported: Iterable[str]) -> str:
    """Say that a value is none of those that are known."""
    known = ", ".join(shown(each) for each in supported)
    return f"{path}: Unsupported value: {shown(value)}: supported values: {known}"


def aggregate(errors: Sequence[str]) -> str:
    """Join errors, without repetitions: one stands alone, several are put in brackets."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def shown(value: object) -> str:
    """Write a value as JSON, the way Go does it."""
    if isinstance(value, Duration):
        return shown(str(value))
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, str):
        return text
    # Inside structures Go's encoder escapes what could end a script element.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
