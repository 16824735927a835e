"""The scheduler's HTTPS endpoints: health, metrics, configuration, flags and status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

from kubesched import logs
from kubesched.app import App
from kubesched.cli.election import Election
from kubesched.cli.options import CommandOptions
from kubesched.cli.review_metrics import CallerMetrics, ReviewMetrics, TokenCacheMetrics
from kubesched.config import encoding
from kubesched.config.gate_effects import without_effect
from kubesched.config.types import SchedulerConfiguration
from kubesched.metrics.pod_resources import render_pod_resources
from kubesched.metrics.recorder import Metrics
from kubesched.metrics.slis import HealthSlis
from kubesched.scheduler import unreadable
from kubesched.server.answers import ServerAnswer
from kubesched.server.request import ServerRequest
from kubesched.server.sources import (
    PING,
    HealthCheck,
    MetricsPage,
    Sources,
    StatusFinding,
    StatusPage,
)


class Served:
    """The endpoints of one scheduler."""

    def __init__(
        self,
        options: CommandOptions,
        app: App,
        election: Election | None,
        metrics: Metrics,
        *,
        configuration: Callable[[], SchedulerConfiguration],
        is_stopping: Callable[[], bool],
    ) -> None:
        self._options = options
        self._app = app
        self._election = election
        self._metrics = metrics
        #: returns the configuration in use
        self._configuration = configuration
        #: tells whether the process shuts down
        self._is_stopping = is_stopping
        self._slis = HealthSlis()

    def sources(
        self, web_page: Callable[[ServerRequest], Awaitable[ServerAnswer]] | None = None
    ) -> Sources:
        """Return the contents of all endpoints."""
        options = self._options
        election = () if self._election is None else (HealthCheck("leaderElection", self._lease),)
        loop = HealthCheck("scheduling-loop", self._loop)
        enabled = options.gates.enabled
        return Sources(
            healthz=(*(election or (PING,)), loop),
            livez=(PING, loop),
            readyz=(
                *election,
                HealthCheck("shutdown", self._shutdown),
                HealthCheck("sched-handler-sync", self._sync),
                *self._candidate_checks(),
            ),
            observe_check=lambda name, kind, healthy: self._slis.observe(
                name, kind, healthy=healthy
            ),
            observe_requests=lambda purpose, host: ReviewMetrics(
                self._metrics, host, purpose=purpose
            ),
            observe_callers=CallerMetrics(self._metrics),
            observe_tokens=TokenCacheMetrics(self._metrics),
            metrics=MetricsPage(self._metrics.render, self._metrics.reset),
            resource_metrics=MetricsPage(self._pod_resources),
            sli_metrics=MetricsPage(self._slis.render, self._slis.reset),
            configuration=lambda: encoding.to_json(self._configuration()).encode(),
            flags=(lambda: options.flag_values) if enabled("ComponentFlagz") else None,
            status=self._status_page() if enabled("ComponentStatusz") else None,
            cbor=enabled("CBORServingAndStorage"),
            set_verbosity=logs.set_verbosity,
            profiling=options.config.enable_profiling,
            web_page=web_page,
        )

    def _status_page(self) -> StatusPage:
        options = self._options
        return StatusPage(
            binary_version=options.reported_version.removeprefix("v"),
            emulation_version=".".join(map(str, options.emulated_version)),
            findings=(
                StatusFinding(
                    "Objects that cannot be read; the last version that could be stays in force",
                    "unreadableObjects",
                    lambda: list(unreadable.lines(self._app.informers.unreadable())),
                ),
                StatusFinding(
                    "Nodes oversubscribed by a race with another scheduler, newest last",
                    "oversubscriptionRaces",
                    lambda: list(map(str, self._app.engine.races.last)),
                ),
                StatusFinding(
                    "Feature gates that were switched, and have no effect here",
                    "gatesWithoutEffect",
                    lambda: without_effect(options.gates),
                ),
            ),
        )

    def _candidate_checks(self) -> tuple[HealthCheck, ...]:
        candidate = None if self._election is None else self._election.candidate
        if candidate is None:
            return ()
        waits = "informers not started yet: [LeaseCandidate]"
        return (HealthCheck("informer-sync", lambda: None if candidate.has_synced else waits),)

    def _lease(self) -> str | None:
        if self._election is None or self._election.is_sound:
            return None
        return "the lease could not be renewed in time"

    def _loop(self) -> str | None:
        progress = self._app.engine.progress
        if progress.is_progressing():
            return None
        return f"the scheduling loop has made no progress for {progress.silent_s:.0f} s"

    def _shutdown(self) -> str | None:
        return "process is shutting down" if self._is_stopping() else None

    def _sync(self) -> str | None:
        return None if self._app.informers.have_synced else "waiting for the first lists"

    def _pod_resources(self) -> AsyncIterator[bytes] | None:
        if self._election is not None and not self._election.elector.leading:
            return None
        # Pods may change while this is written.
        return _in_turns(render_pod_resources(list(self._app.informers.pods.objects.values())))


async def _in_turns(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks, letting other tasks run in between."""
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)
