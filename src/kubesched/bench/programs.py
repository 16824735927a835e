"""Runs a coroutine as a program, on uvloop if installed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine


def run(main: Coroutine[object, object, None]) -> None:
    """Run until it ends, or until a signal ends the process."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 (optional: asyncio's own loop works too, only slower)
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
