"""Comma-separated values of flags, by the rules of Go's encoding/csv."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cli.flag_csv import read_csv, write_csv
from kubesched.errors import UsageError


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("", []),
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("a,", ["a", ""]),
        ('"a,b",c', ["a,b", "c"]),
        ('"a ""quoted"" word"', ['a "quoted" word']),
        ("\n\na,b\nc", ["a", "b"]),
        ('"a\nb",c', ["a\nb", "c"]),
    ],
)
def test_the_first_line_is_read(line: str, values: list[str]) -> None:
    assert read_csv(line) == values


@pytest.mark.parametrize("line", ['a"b', '"a', '"a"b'])
def test_a_misplaced_quotation_mark_is_an_error(line: str) -> None:
    with pytest.raises(UsageError, match="quoted-field"):
        read_csv(line)


#: one empty value looks like none, and Go turns \\r\\n into \\n
_LISTS = st.lists(st.text().filter(lambda text: "\r" not in text)).filter(lambda each: each != [""])


@given(_LISTS)
def test_written_values_read_back(values: list[str]) -> None:
    assert read_csv(write_csv(values)) == values
