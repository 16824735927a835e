"""Records events about objects; never blocks or fails the caller.

    record() ──> SeriesTable ──> bounded queue (overflow is counted and dropped)
                                   └──> workers ──> POST, or PATCH of a series
                                            └──> no connection: retried after about 10 s, 12 times

Errors of the API server are not retried: it would reject the same event again.
"""

from __future__ import annotations

import asyncio
import logging
import random

from msgspec import Struct

from kubesched.client import resources
from kubesched.client.event_series import REFRESH_EVERY_S, Outgoing, SeriesTable
from kubesched.client.event_wire import (
    CoreV1,
    EventApi,
    EventsV1,
    EventType,
    Occurrence,
    event_name,
    fit_note,
)
from kubesched.client.limiter import Sleep
from kubesched.client.meta import ObjectReference
from kubesched.client.rest import STRATEGIC_MERGE_PATCH, ApiClient
from kubesched.clock import Clock, RealClock
from kubesched.errors import AlreadyExistsError, ApiError, KubeschedError, NotFoundError

_log = logging.getLogger(__name__)

_MAX_TRIES = 12
_RETRY_AFTER_S = 10.0
_RETRY_JITTER = 0.25
#: How often the table is checked for silent series.
_FINISH_EVERY_S = 60.0


class _Delivery(Struct):
    """One request to send, and the number of tries so far."""

    outgoing: Outgoing
    tries: int = 0


class EventRecorder:
    """Sends events in the background; ``run()`` does the work until it is cancelled."""

    def __init__(
        self,
        client: ApiClient,
        *,
        controller: str,
        instance: str,
        clock: Clock | None = None,
        workers: int = 8,
        queue_size: int = 1000,
        core_v1: bool = False,
        sleep: Sleep = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance
        self._clock = clock or RealClock()
        self._workers = workers
        self._queue_size = queue_size
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._api: EventApi = CoreV1() if core_v1 else EventsV1()
        #: whether the server is known to serve the group of ``_api``
        self._api_known = core_v1
        self._table = SeriesTable()
        self._queue: asyncio.Queue[_Delivery] = asyncio.Queue()
        self._retries: set[asyncio.Task[None]] = set()
        #: queued, in flight, or waiting for a retry
        self._pending = 0
        self._settled = asyncio.Event()
        self._settled.set()
        self._last_ns = 0
        #: the last error that was logged, "": none
        self._trouble = ""
        #: events dropped because the queue was full
        self.dropped = 0

    @property
    def pending(self) -> int:
        """The number of events that are not sent yet."""
        return self._pending

    def record(
        self,
        regarding: ObjectReference,
        reason: str,
        *,
        type: EventType,  # noqa: A002 - the event's own field
        action: str,
        note: str,
        related: ObjectReference | None = None,
    ) -> None:
        """Record an event; never blocks, never raises."""
        try:
            now_ns = self._now_ns()
            occurrence = Occurrence(
                name=event_name(regarding.name, now_ns),
                time_ns=now_ns,
                type=type,
                reason=reason,
                action=action,
                note=fit_note(note),
                controller=self._controller,
                instance=self._instance,
                regarding=regarding,
                related=related,
            )
            if type not in ("Normal", "Warning"):
                _log.error("Unsupported event type %r: %s", type, occurrence)
                return
            for outgoing in self._table.observe(occurrence):
                self._enqueue(outgoing)
        except Exception:  # noqa: BLE001 - an event must not fail its caller
            _log.exception("Could not record event %s", reason)

    async def run(self) -> None:
        """Send events until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(self._work())
                group.create_task(self._tend_series())
        finally:
            for task in self._retries:
                task.cancel()
            await asyncio.gather(*self._retries, return_exceptions=True)

    async def flush(self, timeout_s: float) -> bool:
        """Wait until all events are sent; False on timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._settled.wait()
        except TimeoutError:
            return False
        return True

    def _now_ns(self) -> int:
        """Return the time, never the same twice: event names are made of it."""
        self._last_ns = max(int(self._clock.time() * 1e9), self._last_ns + 1)
        return self._last_ns

    def _enqueue(self, outgoing: Outgoing) -> None:
        if self._pending >= self._queue_size:
            self.dropped += 1
            if self.dropped == 1 or self.dropped % 1000 == 0:
                _log.warning(
                    "Unable to record event: too many queued events, dropped event %s (%d so far)",
                    outgoing.what,
                    self.dropped,
                )
            return
        self._pending += 1
        self._settled.clear()
        self._queue.put_nowait(_Delivery(outgoing))

    def _done(self) -> None:
        self._pending -= 1
        if self._pending == 0:
            self._settled.set()

    async def _work(self) -> None:
        while True:
            await self._process(await self._queue.get())

    async def _process(self, delivery: _Delivery) -> None:
        """Send a request; schedule a retry if it failed."""
        try:
            again = await self._deliver(delivery.outgoing)
        except Exception:  # noqa: BLE001 - a bug must not end the worker
            _log.exception("Unable to write event %s", delivery.outgoing.what)
            again = False
        if again:
            self._retry_later(delivery)
        else:
            self._done()

    async def _deliver(self, outgoing: Outgoing) -> bool:
        """Try once; return whether to retry."""
        what = outgoing.what
        try:
            await self._send(outgoing)
        except AlreadyExistsError as error:
            if outgoing.series is not None:
                # The event was created between our PATCH and our POST: the next PATCH updates it.
                return True
            _log.debug("Server rejected event %s (will not retry!): %s", what, error)
        except ApiError as error:
            self._complain("Server rejected event %s (will not retry!): %s", what, error)
        except KubeschedError as error:
            self._complain("Unable to write event %s (may retry after sleeping): %s", what, error)
            return True
        else:
            self._trouble = ""
        return False

    def _complain(self, message: str, what: Occurrence, error: KubeschedError) -> None:
        """Log each new error once: events come by the thousand."""
        text = str(error)
        level = logging.DEBUG if text == self._trouble else logging.ERROR
        self._trouble = text
        _log.log(level, message, what, text)

    async def _send(self, outgoing: Outgoing) -> None:
        api, what, series = self._api, outgoing.what, outgoing.series
        if series is not None:
            path = api.resource.item(what.name, namespace=what.namespace)
            try:
                await self._client.patch(
                    path, api.patch(series), content_type=STRATEGIC_MERGE_PATCH
                )
            except NotFoundError:
                pass  # expired, or not created yet: create it
            else:
                return
        try:
            await self._client.post(
                api.resource.collection(what.namespace), api.create(what, series)
            )
        except NotFoundError:
            if not await self._falls_back():
                raise
            await self._send(outgoing)

    async def _falls_back(self) -> bool:
        """Fall back to core/v1 if the server does not serve events.k8s.io/v1; return whether it
        did.
        """
        if self._api_known:
            return False
        try:
            await self._client.request("GET", resources.EVENTS.group_path)
        except NotFoundError:
            _log.info("The server has no events.k8s.io/v1: recording core/v1 events")
            self._api = CoreV1()
            self._api_known = True
            return True
        self._api_known = True
        return False

    def _retry_later(self, delivery: _Delivery) -> None:
        delivery.tries += 1
        if delivery.tries >= _MAX_TRIES:
            _log.error("Unable to write event %s (retry limit exceeded!)", delivery.outgoing.what)
            self._done()
            return
        task = asyncio.get_running_loop().create_task(self._wait_and_requeue(delivery))
        self._retries.add(task)
        task.add_done_callback(self._retries.discard)

    async def _wait_and_requeue(self, delivery: _Delivery) -> None:
        await self._sleep(_RETRY_AFTER_S * self._rng.uniform(1, 1 + _RETRY_JITTER))
        self._queue.put_nowait(delivery)

    async def _tend_series(self) -> None:
        last_refresh = self._clock.monotonic()
        while True:
            await self._sleep(_FINISH_EVERY_S)
            await self._send_series(self._table.finish(int(self._clock.time() * 1e9)))
            if self._clock.monotonic() - last_refresh >= REFRESH_EVERY_S:
                last_refresh = self._clock.monotonic()
                await self._send_series(self._table.refresh())

    async def _send_series(self, series: list[Outgoing]) -> None:
        """Send one by one, bypassing the queue: there may be more of them than it holds."""
        for outgoing in series:
            self._pending += 1
            self._settled.clear()
            await self._process(_Delivery(outgoing))
