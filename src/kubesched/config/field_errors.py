"""Validation errors of single fields, in the words of Kubernetes' API machinery.

A path is plain text (``profiles[0].plugins``). An error is a line of text as well; lists of them
are joined by ``aggregate``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from kubesched.config.durations import Duration


def required(path: str, detail: str = "") -> str:
    """Return the error for a missing value."""
    return f"{path}: Required value" + (f": {detail}" if detail else "")


def invalid(path: str, value: object, detail: str) -> str:
    """Return the error for an invalid value."""
    return f"{path}: Invalid value: {shown(value)}: {detail}"


def duplicate(path: str, value: object) -> str:
    """Return the error for a duplicate value."""
    return f"{path}: Duplicate value: {shown(value)}"


def forbidden(path: str, detail: str) -> str:
    """Return the error for a value that must not be set."""
    return f"{path}: Forbidden: {detail}"


def unsupported(path: str, value: str, supported: Iterable[str]) -> str:
    """Return the error for a value that is not one of the supported ones."""
    known = ", ".join(shown(each) for each in supported)
    return f"{path}: Unsupported value: {shown(value)}: supported values: {known}"


def aggregate(errors: Sequence[str]) -> str:
    """Join errors without duplicates; several are put in brackets."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def shown(value: object) -> str:
    """Format a value as JSON, as Go does."""
    if isinstance(value, Duration):
        return shown(str(value))
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, str):
        return text
    # Inside structures Go's encoder escapes HTML.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
