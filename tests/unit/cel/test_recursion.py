"""Expressions nest deeper than Python's default recursion limit allows."""

from __future__ import annotations

import sys

import pytest

from kubesched.cel import CelDevice, compile_selector
from kubesched.cel.recursion import deep_recursion
from kubesched.errors import CelError


def test_the_limit_is_raised_for_the_time_being() -> None:
    before = sys.getrecursionlimit()
    with deep_recursion():
        assert sys.getrecursionlimit() >= 20_000
    assert sys.getrecursionlimit() == before


def test_it_is_restored_after_an_error() -> None:
    before = sys.getrecursionlimit()
    with pytest.raises(ValueError, match="x"), deep_recursion():
        raise ValueError("x")
    assert sys.getrecursionlimit() == before


def test_deep_expressions_are_evaluated() -> None:
    deep = "(" * 200 + "true" + ")" * 200
    assert compile_selector(deep).matches(CelDevice("d"))
    assert compile_selector("!" * 200 + "true").matches(CelDevice("d"))


def test_too_deep_ones_are_refused() -> None:
    with pytest.raises(CelError):
        compile_selector("[" * 2000 + "]" * 2000 + " == []")
