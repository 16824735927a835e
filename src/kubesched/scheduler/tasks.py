"""Background tasks that run until they end, or until shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

_log = logging.getLogger(__name__)


class Tasks:
    """Running tasks; the event loop holds only weak references to them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        #: the running event loop, cached: looking it up costs a system call
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Run a coroutine in the background; return the task."""
        loop = self._loop
        if loop is None or loop.is_closed():
            loop = self._loop = asyncio.get_running_loop()
        task = loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (bug := task.exception()) is None:
            return
        if isinstance(bug, MemoryError):
            # What it was about may be half changed; the program decides what becomes of it.
            context = {"message": "a background task has no memory", "exception": bug}
            task.get_loop().call_exception_handler(context)
        elif isinstance(bug, Exception):  # the loop itself raises what ends the process
            _log.error("a background task failed unexpectedly", exc_info=bug)

    async def drain(self, timeout_s: float) -> None:
        """Wait for tasks, and those that they start, for a limited time, then cancel them."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while self._tasks and loop.time() < deadline:
            await asyncio.wait(list(self._tasks), timeout=deadline - loop.time())
        late = list(self._tasks)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
