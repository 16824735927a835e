"""Errors point into the text, as upstream's do."""

from __future__ import annotations

from kubesched.cel.source import NO_PLACE, CelSource


def test_an_error_shows_its_line_and_place() -> None:
    source = CelSource("1 + foo")
    source.report(4, "undeclared reference to 'foo'")

    assert source.display() == (
        "ERROR: <input>:1:5: undeclared reference to 'foo'\n | 1 + foo\n | ....^"
    )


def test_errors_are_shown_in_the_order_of_their_places() -> None:
    source = CelSource("a\n\tb")
    source.report(3, "second")
    source.report(0, "first")

    assert source.display() == (
        "ERROR: <input>:1:1: first\n | a\n | ^\nERROR: <input>:2:2: second\n |  b\n | .^"
    )


def test_wide_characters_are_followed_by_wide_dots() -> None:
    source = CelSource('"é" + é')
    source.report(6, "wrong")

    assert source.display().endswith('\n | "é" + é\n | .\uff0e....\uff3e')


def test_an_error_about_the_whole_has_no_place() -> None:
    source = CelSource("x")
    source.report(NO_PLACE, "too long")

    assert source.display() == "ERROR: <input>:-1:0: too long"


def test_beyond_a_hundred_errors_only_their_number_is_kept() -> None:
    source = CelSource("x")
    for _ in range(103):
        source.report(0, "wrong")

    assert source.display().count("wrong") == 100
    assert source.display().endswith("\n3 more errors were truncated")
