"""The scheduler as a component of a control plane: elected, observed, and reconfigured as it runs.

    options ──> Metrics, App ──┬── LeaderElector: whose turn it is, and whether it still is
                               ├── SecureServer: health, metrics, configuration
                               └── signals: SIGUSR2 dumps the state, SIGHUP reads the configuration

Stopped, it finishes what is under way while it still holds the lease, then gives that up. Having
lost the lease, it does nothing more, and ends with an error: another replica may be in charge.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING

from kubesched import logs
from kubesched.app import App
from kubesched.cli.found_plugins import found_plugins
from kubesched.cli.options import Options
from kubesched.cli.reloading import Reloader
from kubesched.cli.review_metrics import CallerMetrics, ReviewMetrics, TokenCacheMetrics
from kubesched.client import kubeconfig
from kubesched.client.access import ClusterAccess
from kubesched.client.events import EventRecorder
from kubesched.client.leader_election import LeaderElector, make_identity
from kubesched.client.lease_candidates import LeaseCandidate, finalized
from kubesched.client.rest import ApiClient
from kubesched.client.rest_metrics import RestMetrics
from kubesched.client.user_agent import user_agent
from kubesched.clock import RealClock
from kubesched.config import encoding
from kubesched.config.extenders import with_extender_effects
from kubesched.config.gate_effects import without_effect
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import LeadershipLostError
from kubesched.metrics.pod_resources import render_pod_resources
from kubesched.metrics.recorder import Metrics
from kubesched.metrics.slis import HealthSlis
from kubesched.recording.journal import Journal
from kubesched.recording.opening import open_journal
from kubesched.scheduler import unreadable
from kubesched.scheduler.debugging import dump_and_compare
from kubesched.scheduler.engine import EngineOptions
from kubesched.server.serving import SecureServer
from kubesched.server.sources import PING, Finding, HealthCheck, MetricsPage, Sources, StatusPage

if TYPE_CHECKING:
    from kubesched.web.page import WebPage

_log, _bugs = logs.get_logger(__name__), logging.getLogger(__name__)

#: Under this name leader election is counted, whatever the lease is called.
ELECTION = "kube-scheduler"


class Component:
    """One process of a control plane."""

    def __init__(
        self, options: Options, read_configuration: Callable[[], SchedulerConfiguration]
    ) -> None:
        self._options = options
        self._clock = RealClock()
        self._metrics = Metrics(options.gates, options.metrics)
        self._slis = HealthSlis()
        #: the task that `run` runs in
        self._task: asyncio.Task[object] | None = None
        config = options.config
        #: None if nothing is to be recorded
        self._journal = self._open_journal()
        self._access = kubeconfig.for_component(
            config.client_connection.kubeconfig or None, master=options.master or None
        )
        self._election = (
            Election(self._access, options, self._metrics)
            if config.leader_election.leader_elect
            else None
        )
        self._registry = found_plugins(options.plugin_files)
        self._app = App(
            config,
            options.gates,
            self._access,
            registry=self._registry,
            clock=self._clock,
            metrics=self._metrics,
            may_write=None if self._election is None else self._election.elector.may_act,
            observer=self._journal,
            options=EngineOptions(
                seed=options.seed,
                max_unschedulable_s=options.max_unschedulable_s,
                queue_check_share=options.queue_check_budget,
            ),
        )
        if self._election is not None:
            self._election.depends_on(self._app.engine.progress.is_progressing)
        self._reloader = Reloader(
            options.config_file, read_configuration, config, apply=self._app.reconfigure
        )
        self._page = self._make_page() if options.web_ui else None
        self._server = SecureServer(
            options.serving, options.authentication, options.authorization, self._sources()
        )

    async def run(self) -> None:
        """Run until cancelled; raises LeadershipLostError if another replica takes over."""
        self._task = asyncio.current_task()
        # Signals first: until somebody listens, SIGHUP and SIGUSR2 would end the process.
        page = self._page or contextlib.nullcontext()
        try:
            async with self._signals(), self._server, self._background(), page:
                if self._election is None:
                    await self._app.run()
                else:
                    await self._election.run(self._app)
        except asyncio.CancelledError:
            _log.info("Requested to terminate, exiting")
            raise

    # --- signals ----------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _signals(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        dumps: set[asyncio.Task[None]] = set()

        def dump() -> None:
            task = loop.create_task(dump_and_compare(self._app.engine, self._app.client))
            dumps.add(task)
            task.add_done_callback(dumps.discard)

        loop.add_signal_handler(signal.SIGUSR2, dump)
        loop.add_signal_handler(signal.SIGHUP, self._reloader.reload)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGUSR2)
            loop.remove_signal_handler(signal.SIGHUP)
            for task in dumps:
                task.cancel()

    @contextlib.asynccontextmanager
    async def _background(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._reloader.watch())
        try:
            with self._journal or contextlib.nullcontext():
                yield
        finally:
            watching.cancel()

    def _open_journal(self) -> Journal | None:
        options = self._options
        if not options.recording.path:
            return None
        journal = open_journal(options.recording, self._clock, plugin_files=options.plugin_files)
        writer = journal.writer
        self._metrics.recording_bytes.set_function(lambda: writer.bytes_written)
        self._metrics.recording_failures.set_function(lambda: int(bool(writer.failure)))
        return journal

    # --- what others may see ----------------------------------------------------------------

    def _sources(self) -> Sources:
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
            configuration=lambda: encoding.to_json(self._reloader.config).encode(),
            flags=(lambda: options.flag_values) if enabled("ComponentFlagz") else None,
            status=self._status_page() if enabled("ComponentStatusz") else None,
            cbor=enabled("CBORServingAndStorage"),
            set_verbosity=logs.set_verbosity,
            profiling=options.config.enable_profiling,
            web_page=None if self._page is None else self._page.answer,
        )

    def _status_page(self) -> StatusPage:
        options = self._options
        return StatusPage(
            binary_version=options.reported_version.removeprefix("v"),
            emulation_version=".".join(map(str, options.emulated_version)),
            findings=(
                Finding(
                    "Objects that cannot be read; the last version that could be stays in force",
                    "unreadableObjects",
                    lambda: list(unreadable.lines(self._app.informers.unreadable())),
                ),
                Finding(
                    "Feature gates that were switched, and have no effect here",
                    "gatesWithoutEffect",
                    lambda: without_effect(options.gates),
                ),
            ),
        )

    def _make_page(self) -> WebPage:
        # Only those who want the page pay for it.
        from kubesched.web.engine_state import engine_source  # noqa: PLC0415
        from kubesched.web.living_world import Rules  # noqa: PLC0415
        from kubesched.web.page import WebPage  # noqa: PLC0415

        gates, registry = self._options.gates, self._registry

        def rules() -> Rules:
            return Rules(with_extender_effects(self._reloader.config), gates, registry)

        source = engine_source(
            self._app,
            rules,
            self._metrics,
            clock=self._clock,
            title=lambda: f"{ELECTION} of {self._access.server.address}",
            notes=self._page_notes,
        )
        return WebPage(source)

    def _page_notes(self) -> Iterable[str]:
        if self._election is not None and not self._election.elector.leading:
            yield "another replica is in charge: this one watches, and schedules nothing"

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
        return f"the scheduling loop has not turned for {progress.silent_s:.0f} s"

    def _shutdown(self) -> str | None:
        stopping = self._task is not None and self._task.cancelling()
        return "process is shutting down" if stopping else None

    def _sync(self) -> str | None:
        return None if self._app.informers.have_synced else "waiting for the first lists"

    def _pod_resources(self) -> AsyncIterator[bytes] | None:
        if self._election is not None and not self._election.elector.leading:
            return None
        # Pods come and go while this is written.
        return _in_turns(render_pod_resources(list(self._app.informers.pods.objects.values())))


class Election:
    """Taking part in leader election, and scheduling while elected."""

    def __init__(self, access: ClusterAccess, options: Options, metrics: Metrics) -> None:
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
        #: tells whether the scheduling loop still turns
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
        #: tells the API server of us, if that picks the leader
        self.candidate = (
            LeaseCandidate(
                self._client,
                identity=identity,
                # As in kube-scheduler, whatever the lease is called.
                lease_name=ELECTION,
                binary_version=finalized(options.reported_version),
                emulation_version=finalized(".".join(map(str, options.emulated_version))),
            )
            if coordinated
            else None
        )
        self.on_leading(False)

    def depends_on(self, is_progressing: Callable[[], bool]) -> None:
        """Renew the lease only while this says so."""
        self._is_progressing = is_progressing

    def _loop_turns(self) -> bool:
        return self._is_progressing()

    def on_leading(self, leading: bool) -> None:
        """Show who leads."""
        self._metrics.leader_election_master_status.labels(ELECTION).set(leading)

    def on_slow_path(self) -> None:
        """Count renewals that took a second look."""
        self._metrics.leader_election_slowpath.labels(ELECTION).inc()

    @property
    def is_sound(self) -> bool:
        """Whether we do not lead, or lead with a lease that is good."""
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
                    # What is under way is finished as long as we are in charge of it.
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
        """Be a candidate for as long as we are there."""
        try:
            if self.candidate is not None:
                await self.candidate.run()
        except Exception:  # noqa: BLE001 (without a candidate another leads, which is no harm)
            _bugs.exception("standing as a candidate failed unexpectedly")

    async def _hold(self, scheduling: asyncio.Task[None] | None) -> None:
        """Renew the lease; when that fails, stop scheduling."""
        try:
            await self.elector.hold()
        except Exception as ended:  # noqa: BLE001 (without a lease nothing may go on)
            if not isinstance(ended, LeadershipLostError):
                _bugs.exception("holding the lease failed unexpectedly")
            if scheduling is not None:
                scheduling.cancel()


async def _in_turns(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Give one piece after the other, and everybody else a turn in between."""
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)


async def _ended(task: asyncio.Task[None] | None) -> None:
    """Cancel a task and wait until it is done with what that takes."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
