"""A short parity certificate; `make certify` makes long ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.certify.__main__ import described
from tests.certify.placements import PODS, PlacementTheme, Tally

from .control_plane import ControlPlane

pytestmark = pytest.mark.slow

SEEDS = (1, 2, 3)


def test_random_profiles_nodes_and_pods_come_to_the_same(assets: Path) -> None:
    tally = Tally()
    with ControlPlane(assets) as plane:
        theme = PlacementTheme(plane, tally)
        for seed in SEEDS:
            theme.compare(seed)
        assert not tally.differences, described(theme.shrink(tally.differences[0]))
    assert tally.outcomes.total() == len(SEEDS) * PODS
    assert tally.outcomes["one best node"] > len(SEEDS) * PODS // 2
    assert tally.outcomes["no node"] > PODS // 20
