"""The rules of placement, as kube-scheduler answered them, case by case."""

from __future__ import annotations

import pytest

from .report import judge, show
from .vectors import VECTORS, read, themes

#: Themes of which every plugin is built; the others are reported by ``make conformance``.
COMPLETE = ["affinity", "images", "ports", "resources", "taints"]


@pytest.mark.parametrize("theme", COMPLETE)
def test_every_case_matches_up_to_post_filter(theme: str) -> None:
    differing = {
        vector.name: found
        for vector in read(theme)
        if (found := [each for each in judge(vector) if each.aspect != "postfilter"])
    }

    assert not differing, "\n".join(show(*item) for item in list(differing.items())[:3])


def test_all_themes_are_there() -> None:
    assert len(themes(VECTORS)) == 14
