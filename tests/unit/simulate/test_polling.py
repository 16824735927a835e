"""Polling: as long as the condition is false, until the timeout."""

from __future__ import annotations

import asyncio

from kubesched.simulate.polling import poll


def test_it_ends_when_the_check_succeeds() -> None:
    results = iter([False, False, True])
    assert asyncio.run(poll(lambda: next(results), timeout_s=60, interval_s=0))
    assert next(results, None) is None


def test_without_time_left_it_checks_once() -> None:
    checks: list[int] = []

    def check() -> bool:
        checks.append(1)
        return False

    assert not asyncio.run(poll(check, timeout_s=0, interval_s=0))
    assert len(checks) == 1
