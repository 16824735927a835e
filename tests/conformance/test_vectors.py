"""The rules of placement, as kube-scheduler answered them, case by case."""

from __future__ import annotations

import pytest

from .report import judge, show
from .vectors import Vector, read, themes


def test_the_themes_are_these() -> None:
    assert themes() == [
        "affinity",
        "config",
        "dra",
        "edge",
        "images",
        "mixed",
        "podaffinity",
        "podgroups",
        "ports",
        "preemption",
        "resources",
        "sequence",
        "spread",
        "taints",
        "volumes",
    ]


@pytest.mark.parametrize("theme", themes())
def test_every_case_matches(theme: str) -> None:
    vectors = list(read(theme))
    differing = {vector.name: found for vector in vectors if (found := judge(vector))}

    assert len(vectors) > 100
    assert not differing, "\n".join(show(*item) for item in list(differing.items())[:3])


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
