"""Since when what is shown is not up to date, and why.

Informers know when the API server refuses or ends a connection. One that is just silent, as behind
a network that drops everything, keeps them waiting for minutes: so it is asked something small now
and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from kubesched.client import resources
from kubesched.client.informer import Informer
from kubesched.client.rest import ApiClient
from kubesched.clock import Clock
from kubesched.errors import ClientError
from kubesched.web.report import Stale
from kubesched.web.times import rfc3339

PROBE_EVERY_S: Final = 10.0
ANSWER_WITHIN_S: Final = 10.0


class Freshness:
    """Watches over those who watch."""

    def __init__(self, informers: Callable[[], Iterable[Informer[Any]]], clock: Clock) -> None:
        self._informers = informers
        self._clock = clock
        #: since when the API server does not answer, and what came instead
        self._silent: tuple[float, str] | None = None

    def stale(self) -> Stale | None:
        """Return since when what is shown is old, None if it is not."""
        failing = [
            (each.failing_since, each.trouble)
            for each in self._informers()
            if each.failing_since is not None
        ]
        if self._silent is not None:
            failing.append(self._silent)
        if not failing:
            return None
        since, why = min(failing)
        return Stale(since=rfc3339(since), why=why)

    async def probe(self, client: ApiClient) -> None:
        """Ask the API server now and then whether it is there; ends by being cancelled."""
        while True:
            asked = self._clock.time()
            try:
                async with asyncio.timeout(ANSWER_WITHIN_S):
                    path = resources.NODES.collection()
                    await client.request("GET", path, params={"limit": 1})
            except (ClientError, TimeoutError) as failed:
                why = str(failed) or f"no answer within {ANSWER_WITHIN_S:.0f} seconds"
                self._silent = self._silent or (asked, why)
            else:
                self._silent = None
            await asyncio.sleep(PROBE_EVERY_S)
