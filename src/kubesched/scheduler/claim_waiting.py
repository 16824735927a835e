"""Waiting until claims are as they have to be: woken by their changes, and by the clock.

informer ──> changed(key) ──> every `until` that waits for the claim looks again
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

#: Namespace and name of a claim.
ClaimKey = tuple[str, str]


class ClaimWaiting:
    """Bindings that wait for claims, by claim."""

    def __init__(self) -> None:
        self._waiting: dict[ClaimKey, set[asyncio.Event]] = {}

    @property
    def claims(self) -> frozenset[ClaimKey]:
        """The claims that bindings wait for."""
        return frozenset(self._waiting)

    def changed(self, key: ClaimKey) -> None:
        """Let every binding look again that waits for a claim."""
        for changed in self._waiting.get(key, ()):
            changed.set()

    async def until(
        self,
        check: Callable[[], bool],
        *,
        claims: Collection[ClaimKey],
        timeout_s: float,
        interval_s: float,
    ) -> bool:
        """Ask until the answer is yes; False if that does not happen in time.

        Checked when one of the claims changes, and every `interval_s` in any case.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        with self._listening(claims) as changed:
            while not check():
                left_s = deadline - loop.time()
                if left_s <= 0:
                    return False
                try:
                    async with asyncio.timeout(min(left_s, interval_s)):
                        await changed.wait()
                except TimeoutError:
                    pass  # time to look again, or for the last time
                changed.clear()
        return True

    @contextmanager
    def _listening(self, claims: Collection[ClaimKey]) -> Iterator[asyncio.Event]:
        changed = asyncio.Event()
        for key in claims:
            self._waiting.setdefault(key, set()).add(changed)
        try:
            yield changed
        finally:
            for key in claims:
                waiting = self._waiting[key]
                waiting.discard(changed)
                if not waiting:
                    del self._waiting[key]
