"""Clocks that do what the system's clock does, and one that does not."""

from __future__ import annotations

import pytest

from kubesched.clock import SteadyClock, VirtualClock


class SetClock(VirtualClock):
    """A clock that is set while time goes on."""

    off_s = 0.0

    def time(self) -> float:
        return super().time() + self.off_s


@pytest.mark.parametrize("jump_s", [-3600.0, 86_400.0])
def test_a_steady_clock_goes_on_when_the_system_s_clock_is_set(jump_s: float) -> None:
    clock = SetClock(1_700_000_000.0)
    clock.off_s = 5.0
    steady = SteadyClock(clock)
    assert steady.time() == clock.time()
    before = steady.time()
    clock.off_s += jump_s
    clock.advance(2.5)
    assert steady.time() == before + 2.5
    assert steady.monotonic() == clock.monotonic()
