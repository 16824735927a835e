"""Selectors: the scheduler's reader, the embedded API server's, and objects of any content."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.api import labels
from kubesched.api.core import NodeSelector
from kubesched.api.decoding import decoder_of
from kubesched.api.meta import LabelSelector
from kubesched.embedded import selectors as queries
from kubesched.errors import SelectorError

from .target import FuzzTarget, refused_with, text_of

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LABELS: tuple[dict[str, str], ...] = (
    {},
    {"a": "b"},
    {"a": "", "g": "2"},
    {"a": "x", "g": "-7", "e.example.com/f": "y"},
)


def read_labels(data: bytes) -> None:
    """A label selector is read as the API server reads it, and its text means the same."""
    text = text_of(data)
    ours: Any = None
    theirs: Any = None
    with refused_with(SelectorError):
        ours = labels.parse(text)
    with refused_with(SelectorError, lines=None, longest=None):
        theirs = queries.parse_labels(text)
    assert (ours is None) == (theirs is None), f"{text!r}: {ours!r} or {theirs!r}"
    if ours is None:
        return
    again = labels.parse(str(ours))
    assert again == ours, f"{text!r}: {ours} is {again}"
    for each in _LABELS:
        assert ours.matches(each) == theirs.matches(each), f"{text!r} for {each}"


def read_fields(data: bytes) -> None:
    """A field selector is terms or a SelectorError."""
    with refused_with(SelectorError, lines=None, longest=None):
        queries.parse_fields(text_of(data), str)


def compile_labels(data: bytes) -> None:
    """A LabelSelector object compiles or is refused."""
    try:
        selector = decoder_of(LabelSelector).decode(data)
    except _UNREADABLE:
        return
    with refused_with(SelectorError):
        compiled = labels.from_label_selector(selector)
        for each in _LABELS:
            compiled.matches(each)


def compile_nodes(data: bytes) -> None:
    """A term of a NodeSelector has requirements or errors, and then matches nothing."""
    try:
        selector = decoder_of(NodeSelector).decode(data)
    except _UNREADABLE:
        return
    for term in labels.node_selector_terms(selector, path="spec"):
        for problem in term.errors:
            assert "\n" not in problem, problem
        for each in _LABELS:
            if term.matches(each, {"metadata.name": "n"}):
                assert not term.errors


_WORDS = (
    b"=",
    b"==",
    b"!=",
    b"!",
    b" in ",
    b" notin ",
    b"(",
    b")",
    b",",
    b">",
    b"<",
    b" ",
    b"a/b",
    b"9223372036854775808",
    b"\xc2\xa0",
    b"\x0b",
    b"\x1f",
    b"x" * 64,
)
_OBJECT_WORDS = (
    b'"Gt"',
    b'"Lt"',
    b'"In"',
    b'"NotIn"',
    b'"Exists"',
    b'"DoesNotExist"',
    b"null",
    b'"\\n"',
    b'"\\ud800"',
    b'"1"',
    b'[""]',
    b"x" * 300,
)

TARGETS = (
    FuzzTarget(
        name="selector-labels",
        run=read_labels,
        seeds=(
            b"app=web,tier in (a,b),!old,g>1,x!=y,z",
            b"a==b,c notin (d),e",
            b"e.example.com/f=y",
            b"a in (),b<3",
            b"a=,b",
            b"",
        ),
        words=_WORDS,
        brief=2000,
    ),
    FuzzTarget(
        name="selector-fields",
        run=read_fields,
        seeds=(b"spec.nodeName=,status.phase!=Succeeded", b"metadata.name==a\\,b", b"a\\=b=c"),
        words=(*_WORDS, b"\\,", b"\\=", b"\\\\", b"\\"),
        brief=1000,
    ),
    FuzzTarget(
        name="selector-label-object",
        run=compile_labels,
        seeds=(
            (
                b'{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"g","operator":"In",'
                b'"values":["1","2"]},{"key":"e","operator":"Exists"}]}'
            ),
            b"{}",
        ),
        words=_OBJECT_WORDS,
        brief=600,
    ),
    FuzzTarget(
        name="selector-nodes",
        run=compile_nodes,
        seeds=(
            (
                b'{"nodeSelectorTerms":[{"matchExpressions":[{"key":"g","operator":"Gt",'
                b'"values":["1"]},{"key":"a","operator":"NotIn","values":["b"]}]},{"matchFields":'
                b'[{"key":"metadata.name","operator":"In","values":["n"]}]},{}]}'
            ),
        ),
        words=_OBJECT_WORDS,
        brief=600,
    ),
)
