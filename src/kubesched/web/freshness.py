"""Detects that the displayed data is stale, and why.

Informers notice when the API server rejects or closes a connection. One that is just silent, as
behind a network that drops packets, keeps them waiting for minutes: so a small request is sent from
time to time.
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
    """Monitors the informers."""

    def __init__(self, informers: Callable[[], Iterable[Informer[Any]]], clock: Clock) -> None:
        self._informers = informers
        self._clock = clock
        #: since when the API server does not answer, and the error
        self._silent: tuple[float, str] | None = None

    def stale(self) -> Stale | None:
        """Return since when the data is stale, None if it is current."""
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
        """Send a small request to the API server from time to time, until cancelled."""
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
