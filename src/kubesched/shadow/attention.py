"""Detects gaps in watches: decisions made during a gap are applied, but not judged.

    watch of pods opens ──> newest version of all pods ──> events up to it were missed
    a watch is closed, or has just reopened ──────────────────> the state may be behind

A pod that was bound during a gap would be judged on a state that its scheduler never saw. Short
gaps, as when a server ends a watch and another begins, are no longer than events take anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final, TypeVar

from kubesched.client.access import ClusterAccess
from kubesched.client.meta import ApiObject
from kubesched.client.rest import ApiClient, Params
from kubesched.client.watch import WatchStream

T = TypeVar("T", bound=ApiObject)

#: A watch closed for longer leaves the state behind.
PAUSE_S: Final = 1.0
#: This long after a gap, the missed events have arrived.
CATCH_UP_S: Final = 1.0


class Attention:
    """Tracks which watches are open, and since when."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._open: set[str] = set()
        #: path → when its watch was closed
        self._shut: dict[str, float] = {}
        #: path → when its watch reopened after a gap
        self._reopened: dict[str, float] = {}
        #: path → version up to which its events were missed
        self._missed: dict[str, int] = {}

    def opens(self, path: str, newest: str) -> None:
        """Handle an opened watch; `newest` is the version of the collection before that."""
        now = self._timer()
        self._open.add(path)
        self._missed[path] = _number(newest)
        shut = self._shut.pop(path, None)
        if shut is not None and now - shut > PAUSE_S:
            self._reopened[path] = now

    def shuts(self, path: str) -> None:
        """Handle the end of a watch."""
        self._open.discard(path)
        self._shut.setdefault(path, self._timer())

    @property
    def open_watches(self) -> int:
        """The number of open watches."""
        return len(self._open)

    def saw(self, path: str, version: str) -> bool:
        """Tell whether an event arrived without a gap in this or any other watch."""
        if _number(version) <= self._missed.get(path, 0):
            return False
        now = self._timer()
        if any(now - shut > PAUSE_S for shut in self._shut.values()):
            return False
        for other, since in list(self._reopened.items()):
            if now - since < CATCH_UP_S:
                return False
            del self._reopened[other]
        return True


def _number(version: str) -> int:
    """Return a resource version as a number; 0 if it is none."""
    return int(version) if version.isdecimal() else 0


class WatchOnlyClient(ApiClient):
    """A client that sends only GET, and reports gaps in its watches."""

    def __init__(
        self, access: ClusterAccess, *, user_agent: str, timer: Callable[[], float]
    ) -> None:
        super().__init__(access, user_agent=user_agent, may_write=lambda: False)
        self.attention = Attention(timer)
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def watch(
        self,
        path: str,
        item_type: type[T],
        *,
        resource_version: str,
        timeout_s: int,
        stall_timeout_s: float | None = None,
        field_selector: str | None = None,
        label_selector: str | None = None,
        extra: Params | None = None,
    ) -> AsyncIterator[WatchStream[T]]:
        """Watch; find out first which events were missed."""
        newest = await self._newest_version(path, item_type)
        try:
            async with super().watch(
                path,
                item_type,
                resource_version=resource_version,
                timeout_s=timeout_s,
                stall_timeout_s=stall_timeout_s,
                field_selector=field_selector,
                label_selector=label_selector,
                extra=extra,
            ) as stream:
                self.attention.opens(path, newest)
                async with self._changed:
                    self._changed.notify_all()
                yield stream
        finally:
            self.attention.shuts(path)

    async def all_watch(self, count: int) -> None:
        """Return when `count` collections are being watched."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.attention.open_watches >= count)

    async def _newest_version(self, path: str, item_type: type[T]) -> str:
        pages = self.list_pages(path, item_type, limit=1, max_page_bytes=0)
        async with aclosing(pages):
            async for page in pages:
                return page.resource_version
        return ""
