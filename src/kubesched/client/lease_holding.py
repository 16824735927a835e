"""Attempts to hold a Lease, and the state observed from them.

    take() ───> GET ──> missing: create · free, ours or expired: PUT ──> ours
    renew() ──> PUT of what we wrote last ──refused──> GET, PUT
    give_back() ──> GET ──> ours: PUT without a holder

Timestamps written by others are not trusted: a Lease is expired when *we* have not seen its record
change for its own duration. Every PUT names the version that it replaces, so one of two concurrent
writers fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kubesched import logs
from kubesched.client.event_wire import micro_time
from kubesched.client.leases import JsonObject, Lease, LeaseClient, LeaseRecord
from kubesched.clock import Clock
from kubesched.errors import ClientError, ConflictError, KubeschedError

_log = logs.get_logger(__name__)

#: Fields of coordinated election, cleared when a candidate takes the Lease by itself.
_UNASSIGNED: Final[JsonObject] = {"strategy": None, "preferredHolder": None}


class AttemptFailedError(ClientError):
    """An attempt that may be retried; the text names the step, the cause the reason."""


@contextmanager
def step(what: str) -> Iterator[None]:
    """Name the step that fails."""
    try:
        yield
    except KubeschedError as failed:
        raise AttemptFailedError(what) from failed


class LeaseHolding:
    """One candidate's attempts at one Lease."""

    def __init__(
        self,
        lock: LeaseClient,
        *,
        identity: str,
        lease_seconds: int,
        clock: Clock,
        on_slow_path: Callable[[], None],
    ) -> None:
        self.lock = lock
        self._identity = identity
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._on_slow_path = on_slow_path
        #: the newest known version; None: there is none, or it was not read yet
        self.lease: Lease | None = None
        #: the last known record, and when (monotonic) we saw it change
        self._observed = LeaseRecord()
        self._observed_at = float("-inf")
        #: when (monotonic) the last confirmed write was sent; None: we do not hold the Lease
        self.renewed_at: float | None = None
        #: whether the Lease may name us, e.g. by a write whose response was lost
        self.may_have_written = False
        #: why the last attempt did not get the Lease, if it was not an error
        self.refusal = ""

    @property
    def holder(self) -> str:
        """The last known holder of the Lease, "" for none."""
        return self._observed.holder_identity

    async def take(self) -> bool:
        """Try once to get the Lease; raises AttemptFailedError if a request failed."""
        return await self._read_and_write(may_take=True)

    async def renew(self) -> bool:
        """Try once to renew: write on top of our last version, else read first."""
        if self.lease is not None:
            try:
                await self._write(self.lease, self._renewal())
            except KubeschedError as failed:
                _log.v(
                    2,
                    "Failed to update lease optimistically, falling back to slow path",
                    lock=str(self.lock),
                    err=str(failed),
                )
            else:
                return True
        return await self._read_and_write(may_take=False)

    async def give_back(self) -> None:
        """Clear the holder of the Lease if it is ours.

        A renewal that is still in flight may cause a conflict: then read again. The caller limits
        the time.
        """
        while True:
            lease = await self.lock.get()
            if lease is None or lease.record.holder_identity != self._identity:
                return
            now = self._now()
            changes = {
                "holderIdentity": "",
                "leaseDurationSeconds": 1,
                "acquireTime": now,
                "renewTime": now,
                **_UNASSIGNED,
            }
            try:
                self._observe((await self.lock.update(lease, changes)).record)
            except ConflictError:
                _log.v(4, "Conflict when releasing lease, retrying", lock=str(self.lock))
            else:
                return

    # --- steps --------------------------------------------------------------------------------

    async def _read_and_write(self, *, may_take: bool) -> bool:
        """Read the Lease and write our name, unless another replica holds it.

        `may_take` allows to replace another holder that has expired; a leader that finds another
        holder has lost, expired or not.
        """
        now = self._clock.monotonic()
        lease = await self._read()
        if lease is None:
            with step("Error initially creating lease lock"):
                await self._write(None, self._renewal() | self._taking(transitions=0))
            return True
        changes = self._renewal()
        if self.holder == self._identity:
            self._on_slow_path()
        elif self.holder and not (may_take and self.has_expired(now)):
            _log.v(
                4,
                "Lease is held by and has not yet expired",
                lock=str(self.lock),
                holder=self.holder,
            )
            return False
        else:
            changes |= self._taking(transitions=lease.record.lease_transitions + 1)
        with step("Failed to update lease"):
            await self._write(lease, changes)
        return True

    async def _read(self) -> Lease | None:
        with step("Error retrieving lease lock"):
            self.lease = await self.lock.get()
        if self.lease is not None:
            self._observe(self.lease.record)
        return self.lease

    async def _write(self, lease: Lease | None, changes: JsonObject) -> None:
        sent_at = self._clock.monotonic()
        self.may_have_written = True
        if lease is None:
            self.lease = await self.lock.create(changes)
        else:
            self.lease = await self.lock.update(lease, changes)
        self.renewed_at = sent_at
        self._observe(self.lease.record)

    # --- records ---------------------------------------------------------------------------------

    def _renewal(self) -> JsonObject:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._lease_seconds,
            "renewTime": self._now(),
            **_UNASSIGNED,
        }

    def _taking(self, *, transitions: int) -> JsonObject:
        return {"acquireTime": self._now(), "leaseTransitions": transitions}

    def _now(self) -> str:
        return micro_time(int(self._clock.time() * 1e9))

    def _observe(self, record: LeaseRecord) -> None:
        if record != self._observed:
            self._observed = record
            self._observed_at = self._clock.monotonic()

    def has_expired(self, now: float) -> bool:
        """Whether the record has not changed for its own duration."""
        return now >= self._observed_at + self._observed.lease_duration_seconds
