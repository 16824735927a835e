"""The rules of placement, as kube-scheduler answered them, case by case."""

from __future__ import annotations

import pytest

from .report import judge, show
from .vectors import COMPLETE, VECTORS, Vector, is_built, read, themes

#: Themes with some cases of plugins that are not.
PARTIAL = ["config", "mixed", "preemption", "sequence"]


@pytest.mark.parametrize("theme", COMPLETE)
def test_every_case_matches(theme: str) -> None:
    assert_all_match(list(read(theme)))


@pytest.mark.parametrize("theme", PARTIAL)
def test_every_case_without_devices_and_groups_matches(theme: str) -> None:
    cases = [vector for vector in read(theme) if is_built(vector)]

    assert len(cases) > 50
    assert_all_match(cases)


def assert_all_match(vectors: list[Vector]) -> None:
    differing = {vector.name: found for vector in vectors if (found := judge(vector))}
    assert not differing, "\n".join(show(*item) for item in list(differing.items())[:3])


def test_all_themes_are_there() -> None:
    assert len(themes(VECTORS)) == 14
