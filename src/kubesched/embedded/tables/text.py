"""Texts in cells: ages, labels, selectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

JsonObject = dict[str, Any]
#: timestamp, or None → age as text
Age = Callable[[str | None], str]


def meta_age(obj: JsonObject, age: Age) -> str:
    """Return how old an object is."""
    return age(obj["metadata"].get("creationTimestamp"))


def status_of(obj: JsonObject) -> JsonObject:
    """Return an object's status, empty if it has none."""
    return obj.get("status") or {}


def spec_of(obj: JsonObject) -> JsonObject:
    """Return an object's spec, empty if it has none."""
    return obj.get("spec") or {}


def format_labels(labels: Mapping[str, str] | None) -> str:
    """Return labels in one cell."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


def format_selector(selector: JsonObject | None) -> str:
    """Return a label selector in one cell."""
    if selector is None:
        return "<none>"
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, values = each.get("key", ""), ",".join(sorted(each.get("values") or ()))
        text = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }.get(each.get("operator", ""), "<invalid>")
        parts.append((key, text))
    return ",".join(text for _, text in sorted(parts)) or "<none>"


def human_duration(seconds: float) -> str:
    """Return a duration with two or three figures: 45s, 3m20s, 5h, 12d."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 180:
        rest = whole % 60 if minutes < 10 else 0
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if hours < 48:
        rest = minutes % 60 if hours < 8 else 0
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    days = hours // 24
    if days < 730:
        rest = hours % 24 if days < 8 else 0
        return f"{days}d{rest}h" if rest else f"{days}d"
    years, rest = divmod(days, 365)
    return f"{years}y{rest}d" if rest and years < 8 else f"{years}y"
