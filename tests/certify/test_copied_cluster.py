"""Answers agree if the real scheduler may have decided as ours did."""

from __future__ import annotations

import pytest

from .copied_cluster import Answer

A, B = frozenset({"a"}), frozenset({"a", "b"})
REFUSED = Answer(messages=frozenset({"no room"}))


@pytest.mark.parametrize(
    ("ours", "theirs", "want"),
    [
        pytest.param(Answer(A), Answer(A), True, id="the only best node"),
        pytest.param(Answer(B), Answer(A), True, id="one of several best nodes"),
        pytest.param(Answer(A), Answer(frozenset({"b"})), False, id="another node"),
        pytest.param(Answer(A), REFUSED, False, id="only theirs refuses"),
        pytest.param(REFUSED, Answer(A), False, id="only ours refuses"),
        pytest.param(REFUSED, REFUSED, True, id="the same words"),
        pytest.param(REFUSED, Answer(messages=frozenset({"no space"})), False, id="other words"),
        pytest.param(
            Answer(A, claims={"c": "v1"}), Answer(A, claims={"c": "v2"}), False, id="other volumes"
        ),
        pytest.param(
            REFUSED._replace(nominated="a", victims=A),
            REFUSED._replace(nominated="a", victims=B),
            False,
            id="more victims",
        ),
        pytest.param(
            REFUSED._replace(nominated="a", victims=A),
            REFUSED._replace(nominated="b", victims=A),
            False,
            id="nominated elsewhere",
        ),
    ],
)
def test_agreement(ours: Answer, theirs: Answer, want: bool) -> None:
    assert ours.agrees_with(theirs) is want
