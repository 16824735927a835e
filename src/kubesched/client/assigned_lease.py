"""A Lease that the API server assigns: its holder renews it, and no candidate takes it.

    every retry period:  GET ──> ours, not expired, no other is preferred ──> PUT
                           └── anything else: not now

This is coordinated leader election. Candidates register with LeaseCandidates (`lease_candidates`);
the API server picks one of them and writes its name into the Lease. When it prefers another, it
sets that in the Lease, and the holder lets the Lease expire.
"""

from __future__ import annotations

from kubesched import logs
from kubesched.client.lease_holding import LeaseHolding, step
from kubesched.client.leases import JsonObject

_log = logs.get_logger(__name__)


class AssignedLease(LeaseHolding):
    """One candidate's renewals of a Lease that may be assigned to it."""

    async def take(self) -> bool:
        """Check whether the Lease was assigned to us, and confirm it."""
        return await self.renew()

    async def renew(self) -> bool:
        """Renew the Lease, if it is ours and no other candidate is preferred."""
        now = self._clock.monotonic()
        lease = await self._read()
        lock = str(self.lock)
        self.refusal = ""
        if lease is None:
            self.refusal = "there is no lease"
            _log.info("Lease lock not found", lock=lock)
        elif self.has_expired(now):
            self.refusal = "the lease has expired"
            _log.info("Lease has expired", lock=lock)
        elif self.holder != self._identity:
            self.refusal = f"{self.holder} holds it"
            _log.v(6, "Lease is held and has not yet expired", lock=lock, holder=self.holder)
        elif lease.record.preferred_holder:
            self.refusal = f"{lease.record.preferred_holder} is to hold it"
            _log.v(4, "Lease is marked as 'end of term'", lock=lock)
        if lease is None or self.refusal:
            return False
        self._on_slow_path()
        with step("Failed to update lock"):
            await self._write(lease, self._renewal())
        return True

    def _renewal(self) -> JsonObject:
        """Keep the strategy of the assignment in the Lease."""
        renewal = super()._renewal()
        del renewal["strategy"]
        return renewal
