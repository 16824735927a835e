"""Field errors read as those of Kubernetes' API machinery."""

from __future__ import annotations

import pytest

from kubesched.config import field_errors
from kubesched.config.durations import Duration


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("a", '"a"'),
        ('a"<b>', '"a\\"<b>"'),
        (5, "5"),
        (True, "true"),
        (None, "null"),
        (Duration.of_seconds(90), '"1m30s"'),
        (["a", "<b>"], '["a","\\u003cb\\u003e"]'),
        ({"Name": "ü & b", "Weight": 0}, '{"Name":"ü \\u0026 b","Weight":0}'),
    ],
)
def test_shown(value: object, want: str) -> None:
    assert field_errors.shown(value) == want


@pytest.mark.parametrize(
    ("error", "want"),
    [
        (field_errors.required("a.b"), "a.b: Required value"),
        (field_errors.required("a", "can not be empty"), "a: Required value: can not be empty"),
        (field_errors.invalid("a", 1, "too small"), "a: Invalid value: 1: too small"),
        (field_errors.duplicate("a[1]", "x"), 'a[1]: Duplicate value: "x"'),
        (field_errors.forbidden("a", "not here"), "a: Forbidden: not here"),
        (
            field_errors.unsupported("a", "x", ["b", "c"]),
            'a: Unsupported value: "x": supported values: "b", "c"',
        ),
    ],
)
def test_kinds_of_errors(error: str, want: str) -> None:
    assert error == want


@pytest.mark.parametrize(
    ("errors", "want"),
    [(["a"], "a"), (["a", "b"], "[a, b]"), (["a", "a"], "a"), (["b", "a", "b"], "[b, a]")],
)
def test_aggregate(errors: list[str], want: str) -> None:
    assert field_errors.aggregate(errors) == want
