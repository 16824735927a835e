"""Responses of extenders, which may be any program of anybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.errors import ExtenderError
from kubesched.scheduler import extender_wire as wire

from .target import FuzzTarget, refused_with

_INT64 = range(-(2**63), 2**63)


def _reading(read: Callable[[bytes], Any]) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        """A response is read or refused with an ExtenderError of one line."""
        with refused_with(ExtenderError):
            _check(read(data))

    return run


def _check(answer: object) -> None:
    match answer:
        case wire.FilterAnswer():
            for text in (answer.error, *answer.failed.values(), *answer.unresolvable.values()):
                assert "\n" not in text
        case str():
            assert "\n" not in answer
        case list():
            assert all(isinstance(host, str) and score in _INT64 for host, score in answer)
        case dict():
            for victims in answer.values():
                assert victims.num_pdb_violations in _INT64


_WORDS = (
    b"null",
    b'"\\n"',
    b'"\\u2028"',
    b'"\\ud800"',
    b"9223372036854775808",
    b"1e3",
    b"1.5",
    b'"nodenames"',
    b'"Items"',
    b"} trailing",
    b"[[",
    b'{"":',
)

TARGETS = (
    FuzzTarget(
        name="extender-filter",
        run=_reading(wire.read_filter_answer),
        seeds=(
            (
                b'{"NodeNames":["a","b"],"FailedNodes":{"c":"why\\nnot"},"FailedAndUnresolvableNodes":'
                b'{"d":""},"Error":""}'
            ),
            (
                b'{"nodes":{"metadata":{},"items":[{"metadata":{"name":"a"}},{"Metadata":{"Name":"b"}}'
                b"]}} trailing"
            ),
            b'{"error":"no"}',
        ),
        words=_WORDS,
        brief=800,
    ),
    FuzzTarget(
        name="extender-prioritize",
        run=_reading(wire.read_priorities),
        seeds=(b'[{"Host":"a","Score":10},{"host":"b","score":-1},null]', b"null", b"[]"),
        words=_WORDS,
        brief=500,
    ),
    FuzzTarget(
        name="extender-bind",
        run=_reading(wire.read_binding_answer),
        seeds=(b'{"Error":"no\\r\\nway"}', b"{}"),
        words=_WORDS,
        brief=300,
    ),
    FuzzTarget(
        name="extender-preempt",
        run=_reading(wire.read_preemption_answer),
        seeds=(
            (
                b'{"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"u"},null],"NumPDBViolations":1},'
                b'"b":null}}'
            ),
        ),
        words=_WORDS,
        brief=500,
    ),
)
