"""Watches that are not read while nothing waits for their events.

    event ──> informer ──hold──> not read ──┬── HOLD_S later ─────────────────────> read again
                                            └── catch_up(), before each decision ──┘

Every node reports its status from time to time, and hardly any report changes anything. To wake up
for each of them costs far more than to handle it. So reading pauses after an event, and those that
come meanwhile are handled together. A decision sees them all the same, because the scheduling loop
catches up first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

#: For how long a watch is not read.
HOLD_S = 0.25
#: Turns of the event loop until what has arrived is handled: the loop finds it in the first, reads
#: it in the second, and the informer runs in the third, or sooner.
_TURNS = 3


class Holdable(Protocol):
    """A stream whose reading can be paused."""

    def hold(self) -> None:
        """Read no more, unless a lot comes."""

    def release(self) -> None:
        """Read again."""


class HeldWatches:
    """Pauses streams, and lets them go on together."""

    def __init__(self, may_hold: Callable[[], bool]) -> None:
        #: returns whether nothing waits for events
        self._may_hold = may_hold
        self._held: list[Holdable] = []
        self._timer: asyncio.TimerHandle | None = None

    def hold(self, stream: Holdable) -> None:
        """Stop reading a stream for a while, if nothing waits for its events."""
        if not self._may_hold():
            return
        stream.hold()
        self._held.append(stream)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(HOLD_S, self._release)

    @property
    def is_holding(self) -> bool:
        """Whether there may be events that are not handled yet."""
        return bool(self._held)

    async def catch_up(self) -> None:
        """Handle the events that have arrived."""
        self._release()
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        held, self._held = self._held, []
        for stream in held:
            stream.release()
