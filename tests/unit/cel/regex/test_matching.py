"""Patterns match what Go's regexp matches, and take linear time for it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.regex import Regex, RegexError, compile_regex

#: Patterns drawn at random: what Go's FindAllString finds in each text, or why they do not compile.
PATTERNS = Path(__file__).parent / "patterns.jsonl"


def test_matches_and_errors_are_gos() -> None:
    first, *lines = PATTERNS.read_text(encoding="utf-8").splitlines()
    texts = json.loads(first)["texts"]

    differences = {}
    for line in lines:
        vector = json.loads(line)
        try:
            regex = compile_regex(vector["pattern"])
        except RegexError as error:
            found: object = str(error)
        else:
            found = [regex.find_all(text) or None for text in texts]
            assert [regex.matches(text) for text in texts] == [it is not None for it in found]
        wanted = vector.get("error", vector.get("found"))
        if found != wanted:
            differences[vector["pattern"]] = (found, wanted)

    assert len(lines) > 300
    assert not differences


atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", r"\b", "^", "$", "(ab)"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda it: f"(?:{it[0]}|{it[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{1,2}"])).map(
            lambda it: f"(?:{it[0]}){it[1]}"
        ),
    ),
    max_leaves=6,
)


@given(patterns, st.text("ab1 \n", max_size=6))
def test_a_match_is_where_backtracking_finds_it(pattern: str, text: str) -> None:
    # In Go, $ is the end of the text, which Python spells \Z, and \d and \w are of ASCII.
    found = re.compile(pattern.replace("$", r"\Z"), re.ASCII).search(text)

    assert Regex(pattern).find(text) == (None if found is None else found.span())


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a+a+)+b", "(a|aa)+$b", "(.*.*.*.*)=", "(a?){40}b"])
def test_patterns_that_make_backtracking_explode_take_linear_time(pattern: str) -> None:
    assert not compile_regex(pattern).matches("a" * 20_000)


def test_many_different_characters_do_not_fill_the_memory() -> None:
    regex = compile_regex("x$")

    assert not regex.matches("".join(map(chr, range(0x100, 0x8000))))
    assert regex.matches("yx")
