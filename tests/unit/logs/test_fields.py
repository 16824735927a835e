"""Named values of log lines, quoted as klog quotes them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.config.durations import Duration
from kubesched.logs import klog_line, quote, ref


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("text", '="text"'),
        ("", '=""'),
        ('say "x" \\', r'="say \"x\" \\"'),
        ("tab\tbell\a", r'="tab\tbell\a"'),
        ("\x00\x1b\x7f", r'="\x00\x1b\x7f"'),
        ("é π 漢 🙂", '="é π 漢 🙂"'),
        ("\u200b\ufeff", r'="\u200b\ufeff"'),
        ("\U000e0001", r'="\U000e0001"'),
        ("a\nb", "=<\n\ta\n\tb\n >"),
        ("a\nb\n", "=<\n\ta\n\tb\n >"),
        ("\n", "=<\n\t\n >"),
        ("a\n\n", "=<\n\ta\n\t\n >"),
        (True, "=true"),
        (0, "=0"),
        (None, "=null"),
        (1.0, "=1"),
        (0.25, "=0.25"),
        (1e-7, "=1e-7"),
        (2.5e22, "=2.5e+22"),
        (123456789012345680000.0, "=123456789012345680000"),
        (0.00001, "=0.00001"),
        (["a", "b"], '=["a","b"]'),
        (("a", 1), '=["a",1]'),
        ({"a": [1]}, '={"a":[1]}'),
        ({"b", "a"}, '=["a","b"]'),
        (["<&>"], r'=["\u003c\u0026\u003e"]'),
        (b"a\xff\xc3\xa9\n", r'="a\xff\u00e9\n"'),
        (ValueError("no"), '="no"'),
        (ValueError("a\nb"), "=<\n\ta\n\tb\n >"),
        (Duration.of_seconds(300), '="5m0s"'),
        (ref("ns", "name"), '="ns/name"'),
        (ref("", "node"), '="node"'),
        ([ref("ns", "a"), ref("", "b"), None], '=["ns/a","b",null]'),
        ({"pod": ref("ns", "a")}, '={"pod":{"name":"a","namespace":"ns"}}'),
    ],
)
def test_values(value: object, shown: str) -> None:
    assert klog_line("m", key=value) == f'"m" key{shown}'


def test_values_keep_their_order() -> None:
    assert klog_line("two words", b=1, a="x") == '"two words" b=1 a="x"'


def test_a_message_is_always_quoted() -> None:
    assert klog_line('line 1\nsay "2"') == r'"line 1\nsay \"2\""'


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_ascii_reads_back(text: str) -> None:
    as_json = (
        quote(text).replace("\\x", "\\u00").replace("\\a", "\\u0007").replace("\\v", "\\u000b")
    )

    if "\\\\" not in as_json:  # what is escaped twice would need a parser of its own
        assert json.loads(as_json) == text


@given(st.text())
def test_a_quoted_text_is_printable_and_on_one_line(text: str) -> None:
    assert quote(text).isprintable()


def test_bytes_that_are_no_text() -> None:
    assert quote(b"a\xff".decode(errors="surrogateescape")) == r'"a\xff"'
