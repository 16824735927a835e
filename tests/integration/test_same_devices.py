"""Random pods with claims get the nodes and the devices that the real kube-scheduler gives them.

This is a short run; ``python -m tests.integration.same_devices --pods 2000`` is a long one.
"""

from __future__ import annotations

import pytest

from .control_plane import ControlPlane
from .same_devices import compare

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clean_cluster")]

PODS = 200


def test_claims_get_the_same_nodes_and_devices(control_plane: ControlPlane) -> None:
    done = compare(control_plane, pods=PODS, seed=20261118)
    outcomes = done.outcomes
    assert outcomes["asked again"] <= PODS // 20, done.doubts
    assert outcomes["one best node"] + outcomes["several"] > PODS // 3, outcomes
    assert outcomes["devices"] > PODS // 3, outcomes
    assert outcomes.keys() >= {"extended resources", "refused", "error"}, outcomes
