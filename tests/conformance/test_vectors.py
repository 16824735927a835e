"""The rules of placement, as kube-scheduler answered them, case by case."""

from __future__ import annotations

import pytest

from .report import judge, show
from .vectors import (
    COMPLETE,
    NOT_BUILT,
    VECTORS,
    WITHOUT_GROUPS,
    Vector,
    is_built,
    read,
    themes,
)


def test_every_theme_is_either_required_or_not_built() -> None:
    assert sorted((*COMPLETE, *WITHOUT_GROUPS, *NOT_BUILT)) == themes(VECTORS)


@pytest.mark.parametrize("theme", COMPLETE)
def test_every_case_matches(theme: str) -> None:
    assert_all_match(list(read(theme)))


@pytest.mark.parametrize("theme", WITHOUT_GROUPS)
def test_every_case_without_groups_matches(theme: str) -> None:
    cases = [vector for vector in read(theme) if is_built(vector)]

    assert len(cases) > 100
    assert_all_match(cases)


@pytest.mark.parametrize("theme", NOT_BUILT)
def test_cases_of_what_is_not_built_are_judged_without_a_failure_of_ours(theme: str) -> None:
    for vector in read(theme):
        for found in judge(vector):
            assert found.where != "failed", show(vector.name, [found])


def test_a_case_with_an_unknown_field_does_not_match_and_says_why() -> None:
    vector = next(read("edge"))
    case = {**vector.case, "weather": {}, "objects": {**vector.case["objects"], "moons": [{}]}}
    expect = {**vector.expect, "mood": "fine"}

    [found] = judge(Vector(case=case, expect=expect))

    assert found.aspect == "format"
    assert found.actual == "unknown: case.weather, case.objects.moons, expect.mood"


def test_a_case_that_cannot_be_read_does_not_match_and_says_why() -> None:
    vector = next(read("edge"))

    [found] = judge(Vector(case={**vector.case, "pod": {"spec": 1}}, expect=vector.expect))

    assert (found.aspect, found.where) == ("format", "refused")
    assert "Expected `object`" in found.actual


def assert_all_match(vectors: list[Vector]) -> None:
    differing = {vector.name: found for vector in vectors if (found := judge(vector))}
    assert not differing, "\n".join(show(*item) for item in list(differing.items())[:3])
