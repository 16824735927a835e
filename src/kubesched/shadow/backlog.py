"""A queue of watch events: read immediately, applied in order.

    informers ──> Backlog (in order of arrival, all kinds) ──> handlers: state, judgement

Watch events are read immediately, because the API server drops slow watchers. So reading does not
wait for handlers, and the lag of the handlers is known.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, TypeVar

from msgspec import Struct

from kubesched.client.informer import Handler
from kubesched.client.meta import ApiObject

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=ApiObject)

#: After this long, other tasks of the event loop run.
TURN_S: Final = 0.01


class QueuedEvent(Struct, frozen=True):
    """An event on its way to its handler."""

    apply: Callable[[], None]
    arrived: float
    #: whether it arrived while everything was being watched
    seen: bool


class Backlog:
    """Applies events in order of arrival."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._waiting: deque[QueuedEvent] = deque()
        self._came, self._done = asyncio.Event(), asyncio.Event()
        #: the event being applied, or the last one
        self.current = QueuedEvent(lambda: None, 0.0, seen=False)

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, apply: Callable[[], None], *, seen: bool) -> None:
        """Queue an event."""
        self._waiting.append(QueuedEvent(apply, self._timer(), seen=seen))
        self._came.set()

    async def run(self) -> None:
        """Apply events until cancelled."""
        while True:
            if not self._waiting:
                self._came.clear()
                self._done.set()
                await self._came.wait()
                self._done.clear()
            self.work(TURN_S)
            await asyncio.sleep(0)

    async def drained(self) -> None:
        """Return when all queued events are applied."""
        while self._waiting:
            self._done.clear()
            await self._done.wait()

    def work(self, seconds: float) -> None:
        """Apply events for a while, at least one."""
        end = self._timer() + seconds
        while self._waiting:
            self.current = self._waiting.popleft()
            try:
                self.current.apply()
            except Exception:  # noqa: BLE001 (one handler's bug must not stop the others)
                _log.exception("a handler failed")
            if self._timer() >= end:
                return


class QueuedHandler(Generic[T]):
    """Queues events to be applied by a handler later."""

    def __init__(
        self,
        handler: Handler[T],
        backlog: Backlog,
        is_seen: Callable[[T], bool] = lambda _obj: True,
    ) -> None:
        self._handler = handler
        self._put = backlog.put
        #: called when the event arrives, as it cannot be told later
        self._is_seen = is_seen

    def on_add(self, obj: T, initial: bool) -> None:
        """Queue an addition."""
        self._put(partial(self._handler.on_add, obj, initial), seen=False)

    def on_update(self, old: T, new: T) -> None:
        """Queue an update."""
        self._put(partial(self._handler.on_update, old, new), seen=self._is_seen(new))

    def on_delete(self, obj: T) -> None:
        """Queue a deletion."""
        self._put(partial(self._handler.on_delete, obj), seen=False)
