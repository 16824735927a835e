"""A gang is bound as a whole or not at all, while schedulers, servers and nodes fail.

`python -m tests.integration.group_crashes --crashes 1000` does the same for longer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .group_crashes import crash_often

pytestmark = pytest.mark.slow

CRASHES = 12


def test_gangs_survive_crashes_as_a_whole(assets: Path) -> None:
    lab = crash_often(assets, seed=20, crashes=CRASHES)
    assert lab.interrupted > CRASHES // 2, "the schedulers were not killed amid a binding"
