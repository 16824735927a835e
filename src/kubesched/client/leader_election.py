"""Agrees with other replicas, through one Lease, on the one that may act.

    acquire() ──> hold() ──> release()
                    └──> LeadershipLostError

                    GET ──> missing: create · free, ours or expired: PUT ──> we lead
    every retry period, leading:  PUT of what we wrote last ──refused──> GET, PUT
                                    └── neither works for renewDeadline, or another holds it: lost

Times that others wrote are not trusted: a Lease is expired when *we* have not seen its record
change for as long as it says it lasts. Two holders at once are kept apart by three things:

- Every PUT names the version that it replaces, so of two writers one is refused.
- Whoever holds the Lease stops acting ``renewDeadline`` after it *sent* the last renewal that the
  server confirmed. Others have seen that renewal later than it was sent, and wait for
  ``leaseDuration``, which is longer. The difference is for what is still on its way to the server.
- ``may_act()`` says so at once and by the clock, not by what a task has found out: if synchronous
  code blocked the event loop past the deadline, the answer is right before any task has run again.

The Lease is only renewed while ``is_progressing()`` holds, so that a leader that does nothing any
more makes room for another.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Final, NoReturn, Protocol

from kubesched.client.event_wire import micro_time
from kubesched.client.events import EventRecorder
from kubesched.client.leases import JsonObject, Lease, LeaseClient, LeaseRecord
from kubesched.client.limiter import Sleep
from kubesched.client.rest import ApiClient
from kubesched.clock import Clock, RealClock
from kubesched.config.durations import Duration
from kubesched.config.types import LeaderElection
from kubesched.errors import (
    ClientError,
    ConfigError,
    ConflictError,
    KubeschedError,
    LeadershipLostError,
)

_log = logging.getLogger(__name__)

#: Waiting candidates come back after 1 to 2.2 retry periods, so that they do not come together.
JITTER_FACTOR: Final = 1.2
_SHORTEST_REQUEST_TIMEOUT_S: Final = 1.0
_RELEASE_TRIES: Final = 3


class ElectionObserver(Protocol):
    """Hears what metrics count."""

    def on_leading(self, leading: bool) -> None:
        """We lead now, or do not: ``leader_election_master_status``."""

    def on_slow_path(self) -> None:
        """A renewal needed a GET first: ``leader_election_slowpath_total``."""


class _Unobserved:
    def on_leading(self, leading: bool) -> None:
        pass

    def on_slow_path(self) -> None:
        pass


class _AttemptFailedError(ClientError):
    """An attempt that another may follow; the text says at which step and why."""


def make_identity() -> str:
    """Return a name for this process that no other has, not even on the same host."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaderElector:
    """One candidate for one Lease; ``acquire``, then ``hold``, in the end ``release``."""

    def __init__(
        self,
        client: ApiClient,
        config: LeaderElection,
        *,
        identity: str,
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
        rng: random.Random | None = None,
        events: EventRecorder | None = None,
        is_progressing: Callable[[], bool] = lambda: True,
        on_new_leader: Callable[[str], None] = lambda _identity: None,
        observer: ElectionObserver | None = None,
    ) -> None:
        """Take part under `identity`; ConfigError if the durations do not fit together."""
        _check(config)
        if not identity:
            raise ConfigError("Lock identity is empty")
        #: what the Lease says while we lead
        self.identity = identity
        self._clock = clock or RealClock()
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - spreads load, hides nothing
        self._events = events
        self._is_progressing = is_progressing
        self._on_new_leader = on_new_leader
        self._observer = observer or _Unobserved()
        # A Lease counts whole seconds, as kube-scheduler writes it: 15.9 s are 15.
        self._lease_seconds = int(config.lease_duration.seconds)
        self._renew_deadline_s = config.renew_deadline.seconds
        self._retry_period_s = config.retry_period.seconds
        #: how long we may act on a renewal, from when it was sent
        self._term_s = min(self._renew_deadline_s, float(self._lease_seconds))
        self._lock = LeaseClient(
            client,
            namespace=config.resource_namespace,
            name=config.resource_name,
            # One request that hangs must not cost the leadership.
            timeout_s=max(self._renew_deadline_s / 2, _SHORTEST_REQUEST_TIMEOUT_S),
        )
        #: the newest version that we know; None: there is none, or we have not looked
        self._lease: Lease | None = None
        #: what the Lease said last, and when (monotonic) that was news to us
        self._observed = LeaseRecord()
        self._observed_at = float("-inf")
        #: when (monotonic) the last write that was confirmed was sent; None: we do not lead
        self._renewed_at: float | None = None
        #: from "became leader" to "stopped leading"
        self._leading = False
        #: whether the Lease may carry our name, be it from a write that was never answered
        self._may_have_written = False
        #: the holder that was last told to ``on_new_leader``
        self._reported = ""
        #: why the last attempt failed, "": it did not
        self._trouble = ""
        self._observer.on_leading(False)

    # --- what others ask ----------------------------------------------------------------------

    @property
    def leader(self) -> str:
        """Who holds the Lease as far as we know, "" for nobody."""
        return self._observed.holder_identity

    @property
    def leading(self) -> bool:
        """Whether we became leader and have not stopped since; to act, ask ``may_act``."""
        return self._leading

    def may_act(self, now: float | None = None) -> bool:
        """Whether nobody else can hold the Lease at `now`, the clock's monotonic time.

        Ask right before every write that only the leader may do, with no ``await`` in between:
        it costs two comparisons and needs no task to have run. False does not mean that the
        leadership is lost: while the API server is away it may still be renewed. ``hold`` decides.
        """
        if self._renewed_at is None:
            return False
        moment = self._clock.monotonic() if now is None else now
        return moment - self._renewed_at < self._term_s

    # --- the election -------------------------------------------------------------------------

    async def acquire(self) -> None:
        """Wait until we lead; cancel it to stop waiting."""
        _log.info("Attempting to acquire leader lease... lock=%s", self._lock)
        while True:
            acquired = await self._attempt(
                self._read_and_write(may_take=True), self._renew_deadline_s
            )
            # The answer may have waited for us longer than the leadership lasts.
            if acquired and self.may_act():
                break
            _log.debug("Failed to acquire lease: lock=%s", self._lock)
            await self._sleep(self._retry_period_s * (1 + self._rng.random() * JITTER_FACTOR))
        self._leading = True
        self._observer.on_leading(True)
        self._record("became leader", action="Acquire")
        _log.info("Successfully acquired lease: lock=%s", self._lock)

    async def hold(self) -> NoReturn:
        """Renew the Lease for ever; LeadershipLostError as soon as we cannot be sure of it."""
        while True:
            await self._renew()
            await self._sleep(self._pause_s())

    async def release(self) -> None:
        """Give the Lease back if it is ours, so that another need not wait for it to expire.

        Call it when nothing acts any more and ``hold`` has ended. Never fails: what cannot be
        released expires.
        """
        self._stop_leading()
        if not self._may_have_written:
            return
        try:
            async with asyncio.timeout(self._renew_deadline_s):
                await self._give_back()
        except (KubeschedError, TimeoutError) as failed:
            why = str(failed) or "no answer in time"
            _log.error("Failed to release lease: lock=%s err=%s", self._lock, why)

    # --- attempts -----------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Renew once, trying for renewDeadline."""
        started = self._clock.monotonic()
        if not self.may_act(started):
            # Nothing was tried in time. The Lease may be another's: do not even ask.
            raise self._lost(self._overdue(started))
        deadline = started + self._renew_deadline_s
        while not await self._try_renewing(deadline):
            if self.leader not in ("", self.identity):
                raise self._lost(f"{self.leader} holds it")
            left_s = deadline - self._clock.monotonic()
            await self._sleep(max(0.0, min(self._retry_period_s, left_s)))
            if self._clock.monotonic() >= deadline:
                deadline_text = Duration.of_seconds(self._renew_deadline_s)
                raise self._lost(f"not renewed within {deadline_text}: {self._trouble}")
        if not self.may_act():
            raise self._lost(self._overdue(self._clock.monotonic()))
        _log.debug("Successfully renewed lease: lock=%s", self._lock)

    def _pause_s(self) -> float:
        """How long until the next renewal: the retry period, less if answers take long."""
        if self._renewed_at is None:
            return self._retry_period_s
        left_s = self._renewed_at + self._term_s - self._clock.monotonic()
        return max(0.0, min(self._retry_period_s, left_s / JITTER_FACTOR))

    async def _try_renewing(self, deadline: float) -> bool:
        if not self._is_progressing():
            self._complain("Not renewing lease", "the scheduling loop makes no progress")
            return False
        return await self._attempt(self._renew_once(), deadline - self._clock.monotonic())

    async def _attempt(self, work: Coroutine[None, None, bool], limit_s: float) -> bool:
        """Try once to have our name in the Lease; failures are logged, and worth another try."""
        done = False
        try:
            async with asyncio.timeout(limit_s):
                done = await work
            self._trouble = ""
        except _AttemptFailedError as failed:
            self._complain(str(failed), str(failed.__cause__))
        except TimeoutError:
            self._complain("Failed to update lease", "no answer in time")
        self._report_transition()
        return done

    async def _renew_once(self) -> bool:
        """Write on the version that we wrote last; if that is refused, look first."""
        if self._lease is not None:
            try:
                await self._write(self._lease, self._renewal())
            except KubeschedError as failed:
                _log.debug(
                    "Failed to update lease optimistically, falling back to slow path: "
                    "lock=%s err=%s",
                    self._lock,
                    failed,
                )
            else:
                return True
        return await self._read_and_write(may_take=False)

    async def _read_and_write(self, *, may_take: bool) -> bool:
        """Read the Lease and put our name in, unless it is another's.

        `may_take` allows to put it over another's that has expired; a leader that finds another's
        name has lost, whatever became of that other.
        """
        now = self._clock.monotonic()
        with _step("Error retrieving lease lock"):
            self._lease = lease = await self._lock.get()
        if lease is None:
            with _step("Error initially creating lease lock"):
                await self._write(None, self._renewal() | self._taking(transitions=0))
            return True
        self._observe(lease.record)
        holder = lease.record.holder_identity
        changes = self._renewal()
        if holder == self.identity:
            self._observer.on_slow_path()
        elif holder and not (may_take and self._expired(now)):
            _log.debug(
                "Lease is held by and has not yet expired: lock=%s holder=%s", self._lock, holder
            )
            return False
        else:
            changes |= self._taking(transitions=lease.record.lease_transitions + 1)
        with _step("Failed to update lease"):
            await self._write(lease, changes)
        return True

    async def _write(self, lease: Lease | None, changes: JsonObject) -> None:
        sent_at = self._clock.monotonic()
        self._may_have_written = True
        if lease is None:
            self._lease = await self._lock.create(changes)
        else:
            self._lease = await self._lock.update(lease, changes)
        self._renewed_at = sent_at
        self._observe(self._lease.record)

    async def _give_back(self) -> None:
        """Clear the Lease of our name; of no other."""
        for tries_left in reversed(range(_RELEASE_TRIES)):
            lease = await self._lock.get()
            if lease is None or lease.record.holder_identity != self.identity:
                return
            now = self._now()
            changes = {
                "holderIdentity": "",
                "leaseDurationSeconds": 1,
                "acquireTime": now,
                "renewTime": now,
            }
            try:
                self._observe((await self._lock.update(lease, changes)).record)
            except ConflictError:
                if not tries_left:
                    raise
            else:
                return

    # --- what we write and what we see --------------------------------------------------------

    def _renewal(self) -> JsonObject:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._lease_seconds,
            "renewTime": self._now(),
        }

    def _taking(self, *, transitions: int) -> JsonObject:
        return {"acquireTime": self._now(), "leaseTransitions": transitions}

    def _now(self) -> str:
        return micro_time(int(self._clock.time() * 1e9))

    def _observe(self, record: LeaseRecord) -> None:
        if record != self._observed:
            self._observed = record
            self._observed_at = self._clock.monotonic()

    def _expired(self, now: float) -> bool:
        return now >= self._observed_at + self._observed.lease_duration_seconds

    # --- what we tell -------------------------------------------------------------------------

    def _lost(self, why: str) -> LeadershipLostError:
        self._stop_leading()
        _log.info("Failed to renew lease: lock=%s err=%s", self._lock, why)
        _log.error("Leaderelection lost")
        return LeadershipLostError(f"lost the leadership, lease {self._lock}: {why}")

    def _overdue(self, now: float) -> str:
        if self._renewed_at is None:
            return "it was not acquired"
        late_s = now - self._renewed_at
        return f"not renewed for {late_s:.1f} s: the process was held up"

    def _stop_leading(self) -> None:
        # First of all, nobody may act any more.
        self._renewed_at = None
        if not self._leading:
            return
        self._leading = False
        self._observer.on_leading(False)
        self._record("stopped leading", action="Release")

    def _report_transition(self) -> None:
        if self.leader == self._reported:
            return
        self._reported = self.leader
        if self.leader:
            _log.info("New leader elected: lock=%s identity=%s", self._lock, self.leader)
            self._on_new_leader(self.leader)

    def _record(self, what: str, *, action: str) -> None:
        if self._events is None or self._lease is None:
            return
        self._events.record(
            self._lease.reference(),
            "LeaderElection",
            type="Normal",
            # Not sent with core/v1 events, but it keeps the two apart.
            action=action,
            note=f"{self.identity} {what}",
        )

    def _complain(self, what: str, why: str) -> None:
        """One line for each new trouble: without an API server this goes on for hours."""
        level = logging.DEBUG if why == self._trouble else logging.ERROR
        self._trouble = why
        _log.log(level, "%s: lock=%s err=%s", what, self._lock, why)


@contextmanager
def _step(what: str) -> Iterator[None]:
    """Name the step of an attempt that fails."""
    try:
        yield
    except KubeschedError as failed:
        raise _AttemptFailedError(what) from failed


def _check(config: LeaderElection) -> None:
    """Refuse durations that do not fit together, in client-go's words."""
    lease, deadline, retry = config.lease_duration, config.renew_deadline, config.retry_period
    if lease <= deadline:
        raise ConfigError("leaseDuration must be greater than renewDeadline")
    if deadline.nanoseconds <= int(JITTER_FACTOR * retry.nanoseconds):
        raise ConfigError("renewDeadline must be greater than retryPeriod*JitterFactor")
    for name, duration in (
        ("leaseDuration", lease),
        ("renewDeadline", deadline),
        ("retryPeriod", retry),
    ):
        if duration <= Duration():
            raise ConfigError(f"{name} must be greater than zero")
    if lease < Duration.of_seconds(1):
        raise ConfigError(f"leaseDuration must be at least 1s, a Lease counts seconds: {lease}")
