"""The state of one evaluation: what it has cost so far."""

from __future__ import annotations

import pytest

from kubesched.cel import CelDevice
from kubesched.cel.frames import Frame
from kubesched.cel.values import CostLimitExceeded


def test_costs_add_up_to_the_limit() -> None:
    frame = Frame(CelDevice("d"), slots=2, limit=10)
    frame.charge(4)
    frame.charge(6)
    assert frame.cost == 10
    with pytest.raises(CostLimitExceeded):
        frame.charge(1)


def test_local_variables_have_slots_of_their_own() -> None:
    one, other = (Frame(CelDevice("d"), slots=2, limit=1) for _ in range(2))
    one.slots[0] = 1
    assert other.slots == [None, None]
