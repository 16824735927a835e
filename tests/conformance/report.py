"""Runs themes and reports what matches: a line a theme, then the first few differences."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from kubesched.errors import KubeschedError

from .answers import answer
from .comparison import ASPECTS, Difference, aspects_of, differences
from .podgroups import group_differences
from .sequence import answer_sequence, sequence_differences
from .vectors import Vector, read, unknown_fields

#: How many cases that differ are shown in full.
SHOWN = 5
WIDTH = 110


class ThemeReport:
    """How many cases of a theme match, in all and by aspect."""

    def __init__(self, theme: str) -> None:
        self.theme = theme
        self.cases = 0
        self.matching = 0
        self.expected: Counter[str] = Counter()
        self.different: Counter[str] = Counter()
        #: name of a case → what differs
        self.failures: dict[str, list[Difference]] = {}

    def add(self, vector: Vector) -> None:
        """Judge one case."""
        found = judge(vector)
        self.cases += 1
        expected, different = set(aspects_of(vector.expect)), {each.aspect for each in found}
        self.expected.update(expected)
        # What could not be judged matches in no respect.
        self.different.update(different | expected if "format" in different else different)
        if found:
            self.failures[vector.name] = found
        else:
            self.matching += 1

    def line(self) -> str:
        """Return the theme's line."""
        aspects = []
        for aspect in ASPECTS:
            # We may have an answer where none is expected, which is a difference as well.
            total = max(self.expected[aspect], self.different[aspect])
            if total:
                aspects.append(f"{aspect} {total - self.different[aspect]}/{total}")
        return f"{self.theme:<12} {self.matching:>4}/{self.cases:<4} {', '.join(aspects)}"


def judge(vector: Vector) -> list[Difference]:
    """Return in what our answer to a case differs; a case that cannot be judged does not match."""
    unknown = unknown_fields(vector)
    if unknown:
        return [Difference("format", "", "fields that we know", f"unknown: {', '.join(unknown)}")]
    try:
        return _judge(vector)
    except (KubeschedError, msgspec.ValidationError) as refused:
        return [Difference("format", "refused", vector.expect, str(refused))]
    except Exception as bug:  # noqa: BLE001 (the other cases are to be judged all the same)
        return [Difference("format", "failed", vector.expect, f"{type(bug).__name__}: {bug}")]


def _judge(vector: Vector) -> list[Difference]:
    if vector.case.get("queue"):
        return group_differences(vector)
    if "pending" in vector.case:
        return sequence_differences(vector.expect, answer_sequence(vector.case))
    return differences(vector.expect, answer(vector.case))


def run_theme(theme: str, folder: Path) -> ThemeReport:
    """Judge all cases of a theme."""
    report = ThemeReport(theme)
    for vector in read(theme, folder):
        report.add(vector)
    return report


def show(name: str, found: list[Difference]) -> str:
    """Return a case's first difference, expected above actual."""
    first = found[0]
    others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return "\n".join(
        [
            f"{name}: {first.aspect} {first.where}{others}",
            _block("expected", first.expected, first.actual),
            _block("actual", first.actual, first.expected),
        ]
    )


def _block(title: str, value: Any, other: Any) -> str:
    if isinstance(value, dict) and isinstance(other, dict):
        value = {key: each for key, each in value.items() if other.get(key) != each}
    text = json.dumps(value, sort_keys=True)
    lines = textwrap.wrap(text, WIDTH, break_on_hyphens=False) or [""]
    indented = textwrap.indent("\n".join(lines[:8]), " " * 12)
    return f"  {title:<9} {indented.lstrip()}"
