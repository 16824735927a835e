"""Schedulers that die while they bind pods with claims give no device twice, and leave no claim.

These are a few deaths; ``python -m tests.integration.device_crashes --crashes 200`` are many.
"""

from __future__ import annotations

import pytest

from .control_plane import ControlPlane
from .device_crashes import crash

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clean_cluster")]


def test_no_device_is_given_twice_and_no_claim_is_left_behind(control_plane: ControlPlane) -> None:
    outcomes = crash(control_plane, crashes=10, seed=20261118)
    assert outcomes["devices given"] > 10
