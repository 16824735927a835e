"""Runs a coroutine as a program: event loop, signals, exit code, one-line errors."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn

from kubesched.errors import KubeschedError

_log = logging.getLogger(__name__)

#: uvloop's error about a transport whose socket is closed.
_CLOSED: Final = "the handler is closed"


def run(main: Callable[[], Coroutine[object, object, None]]) -> int:
    """Run `main` until it ends or a signal arrives; return the exit code.

    The first SIGINT, SIGTERM or SIGHUP cancels `main`, which may finish its work; the second one
    ends the process immediately.
    """
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_until_signalled(main))
    except KubeschedError as failed:
        print(f"Error: {failed}", file=sys.stderr)
        return 1
    except MemoryError:
        _end_without_memory()
    except BaseExceptionGroup as group:
        if group.subgroup(MemoryError) is not None:
            _end_without_memory()
        ours, others = group.split(KubeschedError)
        if ours is None or others is not None:
            raise
        print(f"Error: {_first(ours)}", file=sys.stderr)
        return 1


async def _until_signalled(main: Callable[[], Coroutine[object, object, None]]) -> int:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_on_loop_error)
    task = asyncio.ensure_future(main())
    stopping = False

    def stop() -> None:
        nonlocal stopping
        if stopping:
            os._exit(1)
        stopping = True
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # An ignored signal stays ignored: that is how ``nohup`` works.
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not stopping:
            raise
    return 0


def _on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log errors of the event loop, except those about connections that we closed.

    uvloop continues the TLS handshake of a connection that was closed during it, as happens on
    shutdown, and finds the socket closed.
    """
    error = context.get("exception")
    if isinstance(error, MemoryError):
        _end_without_memory()
    if isinstance(error, RuntimeError) and str(error).endswith(_CLOSED):
        _log.debug("%s: %s", context.get("message"), error)
    else:
        loop.default_exception_handler(context)


def _end_without_memory() -> NoReturn:
    """End the process as a kill would: what it knows may be half changed, and ending takes memory.

    A kubelet starts it again.
    """
    os.write(sys.stderr.fileno(), b"Error: out of memory\n")
    os._exit(1)


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
