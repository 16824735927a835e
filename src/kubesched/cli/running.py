"""Running a coroutine as a program: event loop, signals, exit code, errors as one line."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine

from kubesched.errors import KubeschedError


def run(main: Callable[[], Coroutine[object, object, None]]) -> int:
    """Run `main` until it ends or a signal comes; return the exit code.

    The first SIGINT, SIGTERM or SIGHUP cancels `main`, which may finish its work; the second one
    ends the process at once.
    """
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_until_signalled(main))
    except KubeschedError as failed:
        print(f"Error: {failed}", file=sys.stderr)
        return 1
    except BaseExceptionGroup as group:
        ours, others = group.split(KubeschedError)
        if ours is None or others is not None:
            raise
        print(f"Error: {_first(ours)}", file=sys.stderr)
        return 1


async def _until_signalled(main: Callable[[], Coroutine[object, object, None]]) -> int:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main())
    stopping = False

    def stop() -> None:
        nonlocal stopping
        if stopping:
            os._exit(1)
        stopping = True
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # What is ignored stays so: that is how ``nohup`` works.
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not stopping:
            raise
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 (optional: asyncio's own loop works too, only slower)
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _first(group: BaseExceptionGroup[KubeschedError]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
