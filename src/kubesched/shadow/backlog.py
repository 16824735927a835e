"""News that have come and are not applied yet: read at once, applied one after the other.

    informers ──> Backlog (in order of arrival, all kinds) ──> handlers: state, judgement

An API server ends the watch of whoever does not read fast enough. So reading does not wait for what
is made of the news, and how far that is behind is known.
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

#: After this long, others have the event loop for a moment.
TURN_S: Final = 0.01


class News(Struct, frozen=True):
    """One change, on its way to its handler."""

    apply: Callable[[], None]
    arrived: float
    #: whether it came while everything was being watched
    seen: bool


class Backlog:
    """Applies news in the order in which they came."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._waiting: deque[News] = deque()
        self._came, self._done = asyncio.Event(), asyncio.Event()
        #: the news that is being applied, or was last
        self.current = News(lambda: None, 0.0, seen=False)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def behind_s(self) -> float:
        """For how long the next news has waited, 0.0 if there is none."""
        return self._timer() - self._waiting[0].arrived if self._waiting else 0.0

    def put(self, apply: Callable[[], None], *, seen: bool) -> None:
        """Take something in."""
        self._waiting.append(News(apply, self._timer(), seen=seen))
        self._came.set()

    async def run(self) -> None:
        """Apply what comes, until cancelled."""
        while True:
            if not self._waiting:
                self._came.clear()
                self._done.set()
                await self._came.wait()
                self._done.clear()
            self.work(TURN_S)
            await asyncio.sleep(0)

    async def drained(self) -> None:
        """Return when everything that has come is applied."""
        while self._waiting:
            self._done.clear()
            await self._done.wait()

    def work(self, seconds: float) -> None:
        """Apply news for a while, at least one."""
        end = self._timer() + seconds
        while self._waiting:
            self.current = self._waiting.popleft()
            try:
                self.current.apply()
            except Exception:  # noqa: BLE001 (one handler's bug must not end the news of all)
                _log.exception("a handler failed")
            if self._timer() >= end:
                return


class QueuedHandler(Generic[T]):
    """Hands everything to the backlog, to be applied by a handler later."""

    def __init__(
        self,
        handler: Handler[T],
        backlog: Backlog,
        is_seen: Callable[[T], bool] = lambda _obj: True,
    ) -> None:
        self._handler = handler
        self._put = backlog.put
        #: asked when the news comes, which is when it can be told
        self._is_seen = is_seen

    def on_add(self, obj: T, initial: bool) -> None:
        """One came."""
        self._put(partial(self._handler.on_add, obj, initial), seen=False)

    def on_update(self, old: T, new: T) -> None:
        """One changed."""
        self._put(partial(self._handler.on_update, old, new), seen=self._is_seen(new))

    def on_delete(self, obj: T) -> None:
        """One went."""
        self._put(partial(self._handler.on_delete, obj), seen=False)
