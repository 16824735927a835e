"""What is refused of expressions that are well-typed: constants that cannot work."""

from __future__ import annotations

import pytest

from kubesched.cel import CelDevice, compile_selector
from kubesched.errors import CelError


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("duration('soon') > duration('1s')", "invalid duration argument"),
        ("timestamp('today') > timestamp('2025-01-01T00:00:00Z')", "invalid timestamp argument"),
        ("'a'.matches('(')", "invalid matches argument"),
        ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'"),
        ("{'a': 1, 'b': 'c'}.size() == 2", "expected type 'int' but found 'string'"),
        ("'%d'.format(['a']) == ''", "error during formatting"),
        ("'%s %s'.format(['a']) == ''", "index 1 out of range"),
    ],
)
def test_constants_that_cannot_work_are_refused(expression: str, text: str) -> None:
    with pytest.raises(CelError, match=text):
        compile_selector(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "duration('1h') > duration('1s')",
        "'a'.matches('^a$')",
        "[1, 2].size() == 2",
        "'%d-%s'.format([1, 'a']) == '1-a'",
        "[dyn(1), dyn('a')].size() == 2",
    ],
)
def test_others_are_not(expression: str) -> None:
    assert compile_selector(expression).matches(CelDevice("d"))
