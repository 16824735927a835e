"""Leader election through a Lease: at most one replica acts.

    acquire() ──> hold() ──> release()
                    └──> LeadershipLostError: not renewed for renewDeadline, or another holds it

Reading and writing the Lease is in `lease_holding`, and in `assigned_lease` where the API server
assigns it. Three rules prevent two leaders at once:

- Every write names the version that it replaces, so one of two concurrent writers fails.
- The holder stops acting ``renewDeadline`` after it *sent* the last renewal that the server
  confirmed. Other candidates saw that renewal later than it was sent, and wait for
  ``leaseDuration``, which is longer. The difference covers writes still in flight.
- ``may_act()`` is computed from the clock, not by a task: if synchronous code blocked the event
  loop past the deadline, the result is right before any task has run again.

The Lease is renewed only while ``is_progressing()`` holds, so that a stuck leader is replaced.
"""

from __future__ import annotations

import asyncio
import random
import socket
import uuid
from collections.abc import Callable, Coroutine
from typing import Final, NoReturn, Protocol

from kubesched import logs
from kubesched.client.assigned_lease import AssignedLease
from kubesched.client.events import EventRecorder
from kubesched.client.lease_holding import AttemptFailedError, LeaseHolding
from kubesched.client.leases import LeaseClient
from kubesched.client.limiter import Sleep
from kubesched.client.rest import ApiClient
from kubesched.clock import Clock, RealClock
from kubesched.config.durations import Duration
from kubesched.config.types import LeaderElection
from kubesched.errors import ConfigError, KubeschedError, LeadershipLostError

_log = logs.get_logger(__name__)

#: Candidates retry after 1 to 2.2 retry periods, so that they do not retry in step.
JITTER_FACTOR: Final = 1.2
_SHORTEST_REQUEST_TIMEOUT_S: Final = 1.0


class ElectionObserver(Protocol):
    """Receives what metrics count."""

    def on_leading(self, leading: bool) -> None:
        """We became leader, or stopped leading: ``leader_election_master_status``."""

    def on_slow_path(self) -> None:
        """A renewal needed a GET first: ``leader_election_slowpath_total``."""


class _NullElectionObserver:
    def on_leading(self, leading: bool) -> None:
        pass

    def on_slow_path(self) -> None:
        pass


def make_identity() -> str:
    """Return a unique name for this process, even among those of the same host."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaderElector:
    """One candidate for one Lease; ``acquire``, then ``hold``, in the end ``release``."""

    def __init__(
        self,
        client: ApiClient,
        config: LeaderElection,
        *,
        identity: str,
        coordinated: bool = False,
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
        rng: random.Random | None = None,
        events: EventRecorder | None = None,
        is_progressing: Callable[[], bool] = lambda: True,
        on_new_leader: Callable[[str], None] = lambda _identity: None,
        observer: ElectionObserver | None = None,
    ) -> None:
        """Take part as `identity`; raises ConfigError if the durations are inconsistent.

        With `coordinated`, the API server assigns the Lease.
        """
        _check(config)
        if not identity:
            raise ConfigError("Lock identity is empty")
        #: the holder in the Lease while we lead
        self.identity = identity
        self._clock = clock or RealClock()
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._events = events
        self._is_progressing = is_progressing
        self._on_new_leader = on_new_leader
        self._observer = observer or _NullElectionObserver()
        self._renew_deadline_s = config.renew_deadline.seconds
        self._retry_period_s = config.retry_period.seconds
        # A Lease has whole seconds, as kube-scheduler writes it: 15.9 s become 15.
        lease_seconds = int(config.lease_duration.seconds)
        #: how long a renewal lets us act, from when it was sent
        self._term_s = min(self._renew_deadline_s, float(lease_seconds))
        lock = LeaseClient(
            client,
            namespace=config.resource_namespace,
            name=config.resource_name,
            # One request that hangs must not cost the leadership.
            timeout_s=max(self._renew_deadline_s / 2, _SHORTEST_REQUEST_TIMEOUT_S),
        )
        self._lock = str(lock)
        kind = AssignedLease if coordinated else LeaseHolding
        self._holding = kind(
            lock,
            identity=identity,
            lease_seconds=lease_seconds,
            clock=self._clock,
            on_slow_path=self._observer.on_slow_path,
        )
        #: from "became leader" to "stopped leading"
        self._leading = False
        #: the holder last passed to ``on_new_leader``
        self._reported = ""
        #: why the last attempt failed, "": it did not
        self._trouble = ""
        self._observer.on_leading(False)

    # --- state for callers --------------------------------------------------------------------

    @property
    def leader(self) -> str:
        """The last known holder of the Lease, "" for none."""
        return self._holding.holder

    @property
    def leading(self) -> bool:
        """Whether we became leader and have not stopped since; before a write, call ``may_act``."""
        return self._leading

    def may_act(self, now: float | None = None) -> bool:
        """Whether no other replica can hold the Lease at `now`, the clock's monotonic time.

        Call it right before every write that only the leader may do, with no ``await`` in between:
        it costs two comparisons and depends on no task. False does not mean that the leadership is
        lost: while the API server is unreachable it may still be renewed. ``hold`` decides.
        """
        renewed_at = self._holding.renewed_at
        if renewed_at is None:
            return False
        moment = self._clock.monotonic() if now is None else now
        return moment - renewed_at < self._term_s

    # --- the election -------------------------------------------------------------------------

    async def acquire(self) -> None:
        """Wait until we lead; cancel it to stop waiting."""
        _log.info("Attempting to acquire leader lease...", lock=self._lock)
        while True:
            acquired = await self._attempt(self._holding.take(), self._renew_deadline_s)
            # The response may have waited in our event loop longer than the leadership lasts.
            if acquired and self.may_act():
                break
            _log.v(4, "Failed to acquire lease", lock=self._lock)
            await self._sleep(self._retry_period_s * (1 + self._rng.random() * JITTER_FACTOR))
        self._leading = True
        self._observer.on_leading(True)
        self._record("became leader", action="Acquire")
        _log.info("Successfully acquired lease", lock=self._lock)

    async def hold(self) -> NoReturn:
        """Renew the Lease until cancelled; raises LeadershipLostError when it may be lost."""
        while True:
            await self._renew()
            await self._sleep(self._pause_s())

    async def release(self) -> None:
        """Release the Lease if it is ours, so that another replica need not wait until it expires.

        Call it when all writes and ``hold`` have ended. Never fails: a Lease that cannot be
        released expires.
        """
        self._stop_leading()
        if not self._holding.may_have_written:
            return
        try:
            async with asyncio.timeout(self._renew_deadline_s):
                await self._holding.give_back()
        except (KubeschedError, TimeoutError) as failed:
            why = str(failed) or "no answer in time"
            _log.error("Failed to release lease", why, lock=self._lock)

    # --- attempts -----------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Renew once, trying for renewDeadline."""
        started = self._clock.monotonic()
        if not self.may_act(started):
            # Nothing was tried in time. Another replica may hold the Lease: do not even try.
            raise self._lost(self._overdue(started))
        deadline = started + self._renew_deadline_s
        while not await self._try_renewing(deadline):
            if self.leader not in ("", self.identity):
                raise self._lost(f"{self.leader} holds it")
            left_s = deadline - self._clock.monotonic()
            if left_s <= self._retry_period_s:
                # No attempt at the deadline: timers may be early, and an attempt cut off after half
                # a millisecond would report "no answer in time" instead of the reason.
                await self._sleep(max(0.0, left_s))
                deadline_text = Duration.of_seconds(self._renew_deadline_s)
                why = self._trouble or self._holding.refusal
                raise self._lost(f"not renewed within {deadline_text}: {why}")
            await self._sleep(self._retry_period_s)
        if not self.may_act():
            raise self._lost(self._overdue(self._clock.monotonic()))
        _log.v(5, "Successfully renewed lease", lock=self._lock)

    def _pause_s(self) -> float:
        """Return the time until the next renewal: the retry period, less if responses are slow."""
        renewed_at = self._holding.renewed_at
        if renewed_at is None:
            return self._retry_period_s
        left_s = renewed_at + self._term_s - self._clock.monotonic()
        return max(0.0, min(self._retry_period_s, left_s / JITTER_FACTOR))

    async def _try_renewing(self, deadline: float) -> bool:
        if not self._is_progressing():
            self._complain("Not renewing lease", "the scheduling loop makes no progress")
            return False
        return await self._attempt(self._holding.renew(), deadline - self._clock.monotonic())

    async def _attempt(self, work: Coroutine[None, None, bool], limit_s: float) -> bool:
        """Try once to write our name into the Lease; failures are logged, and retried."""
        done = False
        try:
            async with asyncio.timeout(limit_s):
                done = await work
            self._trouble = ""
        except AttemptFailedError as failed:
            self._complain(str(failed), str(failed.__cause__))
        except TimeoutError:
            self._complain("Failed to update lease", "no answer in time")
        self._report_transition()
        return done

    # --- logs and callbacks--------------------------------------------------------------------

    def _lost(self, why: str) -> LeadershipLostError:
        self._stop_leading()
        _log.info("Failed to renew lease", lock=self._lock, err=why)
        _log.error("Leaderelection lost")
        return LeadershipLostError(f"lost the leadership, lease {self._lock}: {why}")

    def _overdue(self, now: float) -> str:
        renewed_at = self._holding.renewed_at
        if renewed_at is None:
            return "it was not acquired"
        late_s = now - renewed_at
        return f"not renewed for {late_s:.1f} s: the process was held up"

    def _stop_leading(self) -> None:
        # First of all, stop all writes.
        self._holding.renewed_at = None
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
            _log.info("New leader elected", lock=self._lock, identity=self.leader)
            self._on_new_leader(self.leader)

    def _record(self, what: str, *, action: str) -> None:
        lease = self._holding.lease
        if self._events is None or lease is None:
            return
        self._events.record(
            lease.reference(),
            "LeaderElection",
            type="Normal",
            # Not sent with core/v1 events, but it distinguishes the two.
            action=action,
            note=f"{self.identity} {what}",
        )

    def _complain(self, what: str, why: str) -> None:
        """Log each new error once: without an API server this goes on for hours."""
        if why != self._trouble:
            self._trouble = why
            _log.error(what, why, lock=self._lock)
        else:
            _log.v(4, what, lock=self._lock, err=why)


def _check(config: LeaderElection) -> None:
    """Reject inconsistent durations, in client-go's words."""
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
