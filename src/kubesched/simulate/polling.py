"""Polling in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def poll(check: Callable[[], bool], *, timeout_s: float, interval_s: float) -> bool:
    """Poll until `check` returns True; False on timeout."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not check():
        if loop.time() >= deadline:
            return False
        await asyncio.sleep(interval_s)
    return True
