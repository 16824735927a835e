"""CEL expressions: compiled or refused, and then two evaluations agree."""

from __future__ import annotations

import functools

from kubesched.cel import CelDevice, compile_selector
from kubesched.cel.columns import ColumnSelector
from kubesched.cel.regex import RegexError, compile_regex
from kubesched.cel.values import Err
from kubesched.errors import CelError
from tests.unit.cel.test_columns import column_answers, table_of
from tests.unit.cel.vectors import read

from .target import FuzzTarget, refused_with, text_of


@functools.cache
def _devices() -> list[CelDevice]:
    return read("expressions.jsonl")[0]


def evaluate(data: bytes) -> None:
    """An expression compiles or is refused; columns say of a device what its evaluation does."""
    with refused_with(CelError, lines=None, longest=None):
        selector = compile_selector(text_of(data))
        answers = [selector.answer(device) for device in _devices()]
        scalar = [each.message if isinstance(each, Err) else each for each in answers]
        columns = column_answers(ColumnSelector(selector), table_of(_devices()))
        assert columns == scalar, f"{columns} or {scalar}"


def match(data: bytes) -> None:
    """A regular expression is refused, or matches within the time."""
    pattern, _, text = text_of(data).partition("\0")
    try:
        regex = compile_regex(pattern)
    except RegexError as error:
        said = str(error)
        assert said
        return
    span = regex.find(text)
    assert regex.matches(text) == (span is not None)
    assert bool(regex.find_all(text, 1)) == (span is not None)


def _expressions() -> list[bytes]:
    vectors = [each for name in ("expressions.jsonl",) for each in read(name)[1]]
    return [each.expression.encode() for each in vectors[::7] if len(each.expression) < 300]


_WORDS = (
    b"device.driver",
    b'device.attributes["gpu.example.com"]',
    b"device.capacity",
    b".exists(",
    b".map(",
    b".filter(",
    b"size(",
    b"matches(",
    b"cel.bind(",
    b"optional.of(",
    b"quantity(",
    b"semver(",
    b"duration(",
    b"timestamp(",
    b" in ",
    b"&&",
    b"||",
    b"?",
    b":",
    b"==",
    b"!=",
    b"<=",
    b"+",
    b"-",
    b"*",
    b"/",
    b"%",
    b"(",
    b")",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b'"',
    b"'",
    b'r"',
    b'b"',
    b"0x",
    b"u",
    b"1e9",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"//",
    b".?",
    b"[?",
    b"null",
    b"true",
    b"\\u0000",
    b"\\U0010ffff",
    b".format([",
    b".replace(",
    b"lists.range(",
    b"sets.contains(",
    b"ip(",
    b"url(",
    b".orValue(",
    b"dyn(",
    b"type(",
)

TARGETS = (
    FuzzTarget(
        name="cel",
        run=evaluate,
        seeds=tuple(_expressions()),
        words=_WORDS,
        max_bytes=1024,
        brief=400,
    ),
    FuzzTarget(
        name="regex",
        run=match,
        seeds=(
            b"^(a|b)*c{2,3}[^x-z]?$\0aabcc",
            b"(?i:A+)(?P<n>\\d*)\\b\0aa11",
            b"\\p{Greek}+|\\x{10FFFF}[[:alpha:]]\0\xce\xb1",
            b"(a*)*b\0aaaaaaaaaaaaaaaaaaaaaaaa",
            b"\\Q.*\\E.+?$\0.*x",
        ),
        words=(
            b"*",
            b"+?",
            b"{1000}",
            b"{2,}",
            b"(?",
            b"(?i)",
            b"[^",
            b"[[:",
            b":]]",
            b"\\pL",
            b"\\P{",
            b"|",
            b"\\b",
            b"\\C",
            b"\\Q",
            b"\\x{",
            b"\0",
            b")",
        ),
        max_bytes=512,
        brief=500,
    ),
)
