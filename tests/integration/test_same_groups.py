"""The real kube-scheduler and ours do the same with random groups of pods.

`python -m tests.integration.group_comparison` plays as many worlds as one likes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .group_comparison import comparison

pytestmark = pytest.mark.slow

#: Worlds with all gates, preemption, late members and trees among them.
SEEDS = range(1, 9)


def test_groups_fare_alike(assets: Path) -> None:
    with comparison(assets) as both:
        different = [text for seed in SEEDS if (text := both.differences(seed))]
    assert not different, "\n\n".join(different)
