"""Compares our answer to a case with the expected one, aspect by aspect.

An in-tree plugin that is not built yet counts only where it has something to say: a case that it
decides is not matched, a case that it skips is judged like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubesched.plugins.in_tree import IN_TREE

Json = Any

#: In the order in which they are reported.
ASPECTS = (
    "format",
    "nodeOrder",
    "preenqueue",
    "prefilter",
    "filter",
    "feasible",
    "nominatedFits",
    "raw",
    "scores",
    "total",
    "best",
    "message",
    "postfilter",
    "results",
    "gated",
    "attempts",
    "placed",
)


class Difference(NamedTuple):
    """Something that does not match."""

    aspect: str
    where: str
    expected: Json
    actual: Json


def differences(expect: dict[str, Json], actual: dict[str, Json]) -> list[Difference]:
    """Return everything in which an answer differs from what is expected."""
    return [*_plain(expect, actual), *_by_plugin(expect, actual), *_message(expect, actual)]


def aspects_of(expect: dict[str, Json]) -> list[str]:
    """Return the aspects of an expected answer that are compared."""
    present = [aspect for aspect in ASPECTS if aspect in expect]
    if "fitError" in expect or "scheduleError" in expect:
        present.append("message")
    return present


def _plain(expect: dict[str, Json], actual: dict[str, Json]) -> Iterator[Difference]:
    for aspect in ("nodeOrder", "preenqueue", "feasible", "nominatedFits", "total", "best"):
        if expect.get(aspect) != actual.get(aspect):
            yield Difference(aspect, "", expect.get(aspect), actual.get(aspect))


def _by_plugin(expect: dict[str, Json], actual: dict[str, Json]) -> Iterator[Difference]:
    for aspect in ("prefilter", "filter", "raw", "scores"):
        wanted, given = expect.get(aspect) or {}, actual.get(aspect) or {}
        for plugin in sorted(wanted.keys() | given.keys()):
            want, have = wanted.get(plugin), given.get(plugin)
            if plugin not in IN_TREE and have is None and _says_nothing(aspect, want):
                continue
            if aspect == "filter":
                want, have = _without_empty(want), _without_empty(have)
            if want != have:
                yield Difference(aspect, plugin, want, have)


def _says_nothing(aspect: str, answer: Json) -> bool:
    if aspect == "prefilter":
        return bool(answer["code"] == "Skip")
    if aspect in ("raw", "scores"):
        return not any(answer.values())
    return False


def _without_empty(answer: Json) -> Json:
    return answer or None


def _message(expect: dict[str, Json], actual: dict[str, Json]) -> Iterator[Difference]:
    for aspect, field in (
        ("message", "fitError"),
        ("message", "scheduleError"),
        ("postfilter", "postfilter"),
    ):
        want, have = expect.get(field), actual.get(field)
        if want != have:
            yield Difference(aspect, field if aspect == "message" else "", want, have)
