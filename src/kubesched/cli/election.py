"""Leader election: schedule once elected, and stop when the lease is lost.

When stopped, it finishes work in flight while it still holds the lease, then releases it. When the
lease is lost, it does nothing more, and exits with an error: another replica may lead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from kubesched.app import App
from kubesched.cli.options import CommandOptions
from kubesched.client.access import ClusterAccess
from kubesched.client.events import EventRecorder
from kubesched.client.leader_election import LeaderElector, make_identity
from kubesched.client.lease_candidates import LeaseCandidate, finalized
from kubesched.client.rest import ApiClient
from kubesched.client.rest_metrics import RestMetrics
from kubesched.client.user_agent import user_agent
from kubesched.errors import LeadershipLostError
from kubesched.metrics.recorder import Metrics

_bugs = logging.getLogger(__name__)

#: The name in leader election metrics; the lease's own name does not matter.
ELECTION = "kube-scheduler"


class Election:
    """Takes part in leader election, and schedules while elected."""

    def __init__(self, access: ClusterAccess, options: CommandOptions, metrics: Metrics) -> None:
        config, identity = options.config, make_identity()
        coordinated = options.gates.enabled("CoordinatedLeaderElection")
        self._client = ApiClient(
            access,
            user_agent=user_agent("leader-election"),
            observer=RestMetrics(metrics, access.server.address),
        )
        first = config.profiles[0].scheduler_name
        self._recorder = EventRecorder(self._client, controller=first, instance="", core_v1=True)
        self._metrics = metrics
        #: tells whether the scheduling loop makes progress
        self._is_progressing: Callable[[], bool] = lambda: True
        self.elector = LeaderElector(
            self._client,
            config.leader_election,
            identity=identity,
            coordinated=coordinated,
            events=self._recorder,
            is_progressing=self._loop_turns,
            observer=self,
        )
        #: our LeaseCandidate, if the API server picks the leader
        self.candidate = (
            LeaseCandidate(
                self._client,
                identity=identity,
                # As in kube-scheduler, the name of the lease does not matter.
                lease_name=ELECTION,
                binary_version=finalized(options.reported_version),
                emulation_version=finalized(".".join(map(str, options.emulated_version))),
            )
            if coordinated
            else None
        )
        self.on_leading(False)

    def depends_on(self, is_progressing: Callable[[], bool]) -> None:
        """Renew the lease only while this returns True."""
        self._is_progressing = is_progressing

    def _loop_turns(self) -> bool:
        return self._is_progressing()

    def on_leading(self, leading: bool) -> None:
        """Export whether we lead."""
        self._metrics.leader_election_master_status.labels(ELECTION).set(leading)

    def on_slow_path(self) -> None:
        """Count renewals that needed a GET."""
        self._metrics.leader_election_slowpath.labels(ELECTION).inc()

    @property
    def is_sound(self) -> bool:
        """Whether we do not lead, or lead with a valid lease."""
        return not self.elector.leading or self.elector.may_act()

    async def run(self, app: App) -> None:
        """Schedule once elected, until cancelled or until the lease is lost."""
        async with self._client:
            recording = asyncio.create_task(self._recorder.run())
            standing = None if self.candidate is None else asyncio.create_task(self._stand())
            holding: asyncio.Task[None] | None = None
            scheduling: asyncio.Task[None] | None = None
            lost: LeadershipLostError | None = None

            async def our_turn() -> None:
                nonlocal holding
                await self.elector.acquire()
                holding = asyncio.create_task(self._hold(scheduling))

            try:
                scheduling = asyncio.create_task(app.run(our_turn))
                await scheduling
            except asyncio.CancelledError:
                if holding is not None and holding.done():
                    lost = LeadershipLostError("leaderelection lost")
                else:
                    # Finish work in flight while we still hold the lease.
                    await _ended(scheduling)
                    raise
            finally:
                await _ended(holding)
                await _ended(standing)
                await self.elector.release()
                await self._recorder.flush(1.0)
                recording.cancel()
            if lost is not None:
                raise lost

    async def _stand(self) -> None:
        """Stay registered as a candidate."""
        try:
            if self.candidate is not None:
                await self.candidate.run()
        except Exception:  # noqa: BLE001 (without a candidate another replica leads)
            _bugs.exception("the registration as a candidate failed unexpectedly")

    async def _hold(self, scheduling: asyncio.Task[None] | None) -> None:
        """Renew the lease; when that fails, stop scheduling."""
        try:
            await self.elector.hold()
        except Exception as ended:  # noqa: BLE001 (without a lease, stop everything)
            if not isinstance(ended, LeadershipLostError):
                _bugs.exception("holding the lease failed unexpectedly")
            if scheduling is not None:
                scheduling.cancel()


async def _ended(task: asyncio.Task[None] | None) -> None:
    """Cancel a task and wait until it has ended."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
