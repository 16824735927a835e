"""Registers us for coordinated leader election: a LeaseCandidate, kept alive.

    list and watch of our own LeaseCandidate ──> missing: POST
                                             └─> every five minutes, or on a ping: PUT

In coordinated leader election the API server picks the candidate with the oldest emulated version,
pings candidates that were silent for long by setting ``pingTime``, and drops those that do not
answer.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kubesched import logs
from kubesched.api.meta import ObjectMeta
from kubesched.client import resources
from kubesched.client.event_wire import micro_time
from kubesched.client.informer import Informer
from kubesched.client.limiter import Sleep
from kubesched.client.meta import WireStruct
from kubesched.client.rest import ApiClient
from kubesched.clock import Clock, RealClock
from kubesched.errors import AlreadyExistsError, KubeschedError

_log = logs.get_logger(__name__)

NAMESPACE: Final = "kube-system"
STRATEGY: Final = "OldestEmulationVersion"
#: How often a candidate renews itself without a ping.
RENEWAL_S: Final = 300.0
#: Backoff after failures, doubled from the first to the last.
_FIRST_PAUSE_S: Final = 0.005
_LONGEST_PAUSE_S: Final = 60.0


class _LeaseCandidateSpec(WireStruct, frozen=True):
    ping_time: str = ""
    renew_time: str = ""


class _Candidate(WireStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _LeaseCandidateSpec = _LeaseCandidateSpec()

    @property
    def is_pinged(self) -> bool:
        """Whether there is an unanswered ping."""
        # Go writes both with the same number of digits and in UTC: the texts sort by time.
        return self.spec.ping_time > self.spec.renew_time


class LeaseCandidate:
    """One candidate for one Lease; ``run()`` keeps it registered until cancelled."""

    def __init__(
        self,
        client: ApiClient,
        *,
        identity: str,
        lease_name: str,
        binary_version: str,
        emulation_version: str,
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._client = client
        self._identity = identity
        self._spec = {
            "leaseName": lease_name,
            "binaryVersion": binary_version,
            "emulationVersion": emulation_version,
            "strategy": STRATEGY,
        }
        self._clock = clock or RealClock()
        self._sleep = sleep
        self._path = resources.LEASE_CANDIDATES.item(identity, namespace=NAMESPACE)
        self._informer = Informer(
            client,
            resources.LEASE_CANDIDATES,
            _Candidate,
            handler=self,
            namespace=NAMESPACE,
            field_selector=f"metadata.name={identity}",
        )
        #: set when a renewal is due
        self._due = asyncio.Event()

    @property
    def has_synced(self) -> bool:
        """Whether the informer has synced."""
        return self._informer.has_synced

    async def run(self) -> None:
        """Stay registered until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._informer.run())
            await self._informer.synced.wait()
            tasks.create_task(self._come_back())
            failures = 0
            while True:
                await self._due.wait()
                self._due.clear()
                try:
                    await self._ensure()
                except KubeschedError as failed:
                    _log.error("Ensuring lease failed", failed, leaseCandidate=self._identity)
                    await self._sleep(min(_FIRST_PAUSE_S * 2**failures, _LONGEST_PAUSE_S))
                    failures += 1
                    self._due.set()
                else:
                    failures = 0

    async def _come_back(self) -> None:
        """Renew immediately, and then every five minutes."""
        while True:
            self._due.set()
            await self._sleep(RENEWAL_S)

    async def _ensure(self) -> None:
        """Create the candidate, or renew it."""
        if self._informer.get(self._identity, namespace=NAMESPACE) is None:
            _log.v(2, "Creating lease candidate")
            try:
                await self._create()
            except AlreadyExistsError:
                # The watch is behind: the candidate exists, as wanted.
                _log.v(2, "Lease candidate exists")
            else:
                _log.v(2, "Created lease candidate")
            return
        _log.v(2, "Lease candidate exists. Renewing.")
        # The current object, with unknown fields: a PUT replaces everything.
        newest = await self._client.get(self._path, dict[str, Any])
        newest["spec"] = {**newest["spec"], "renewTime": self._now()}
        await self._client.put(self._path, newest)

    async def _create(self) -> None:
        body = {
            "apiVersion": resources.LEASE_CANDIDATES.api_version,
            "kind": "LeaseCandidate",
            "metadata": {"name": self._identity, "namespace": NAMESPACE},
            "spec": {**self._spec, "renewTime": self._now()},
        }
        await self._client.post(resources.LEASE_CANDIDATES.collection(NAMESPACE), body)

    def _now(self) -> str:
        return micro_time(int(self._clock.time() * 1e9))

    # --- informer handler --------------------------------------------------------------------

    def on_add(self, obj: _Candidate, initial: bool) -> None:  # noqa: ARG002 (a handler's signature)
        """Handle our own LeaseCandidate."""
        if obj.is_pinged:
            self._due.set()

    def on_update(self, old: _Candidate, new: _Candidate) -> None:  # noqa: ARG002 (as above)
        """Handle a change: the API server may have pinged us."""
        if new.is_pinged:
            self._due.set()

    def on_delete(self, obj: _Candidate) -> None:
        """Do as kube-scheduler does: register again when a renewal is due."""


def finalized(version: str) -> str:
    """Format a version as LeaseCandidates have it: three numbers, no suffix."""
    numbers = version.removeprefix("v").partition("-")[0].partition("+")[0].split(".")
    return ".".join((*numbers, "0", "0")[:3])
