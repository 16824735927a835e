"""The scheduler as a control plane component: elected, observed, and reconfigured at run time.

options ──> Metrics, App ──┬── Election: which replica schedules
                           ├── SecureServer: health, metrics, configuration (Served)
                           └── signals: SIGUSR2 dumps the state, SIGHUP reads the configuration
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING

from kubesched import logs
from kubesched.app import App
from kubesched.cli.election import ELECTION, Election
from kubesched.cli.found_plugins import found_plugins
from kubesched.cli.options import CommandOptions
from kubesched.cli.reloading import Reloader
from kubesched.cli.served import Served
from kubesched.client import kubeconfig
from kubesched.clock import RealClock
from kubesched.config.extenders import with_extender_effects
from kubesched.config.types import SchedulerConfiguration
from kubesched.metrics.recorder import Metrics
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.debugging import dump_and_compare
from kubesched.scheduler.engine import EngineOptions
from kubesched.scheduler.graded_cycle import GradedCycle
from kubesched.server.serving import SecureServer

if TYPE_CHECKING:
    from kubesched.recording.journal import Journal
    from kubesched.tracing.exporting import SpanExporter
    from kubesched.tracing.tracer import AttemptTracer
    from kubesched.web.page import WebPage

_log = logs.get_logger(__name__)


class Component:
    """One process of a control plane."""

    def __init__(
        self, options: CommandOptions, read_configuration: Callable[[], SchedulerConfiguration]
    ) -> None:
        self._options = options
        self._clock = RealClock()
        self._metrics = Metrics(options.gates, options.metrics)
        #: the task of `run`
        self._task: asyncio.Task[object] | None = None
        config = options.config
        #: sends spans; None if nothing is traced
        self._exporter: SpanExporter | None = None
        #: None if nothing is recorded
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
            tracer=self._make_tracer(),
            options=EngineOptions(
                seed=options.seed,
                max_unschedulable_s=options.max_unschedulable_s,
                queue_check_share=options.queue_check_budget,
                check_before_binding=options.check_before_binding,
                make_cycle=GradedCycle if options.web_ui else SchedulingCycle,
            ),
        )
        if self._election is not None:
            self._election.depends_on(self._app.engine.progress.is_progressing)
        self._reloader = Reloader(
            options.config_file, read_configuration, config, apply=self._app.reconfigure
        )
        self._page = self._make_page() if options.web_ui else None
        served = Served(
            options,
            self._app,
            self._election,
            self._metrics,
            configuration=lambda: self._reloader.config,
            is_stopping=self._is_stopping,
        )
        #: the contents of the HTTPS endpoints
        self.sources = served.sources(None if self._page is None else self._page.answer)
        self._server = SecureServer(
            options.serving, options.authentication, options.authorization, self.sources
        )

    async def run(self) -> None:
        """Run until cancelled; raises LeadershipLostError if another replica takes over."""
        self._task = asyncio.current_task()
        # Signals first: without a handler, SIGHUP and SIGUSR2 would end the process.
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

    def _is_stopping(self) -> bool:
        return self._task is not None and bool(self._task.cancelling())

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
            if self._exporter is not None:
                # Its thread may wait for a collector that is down.
                await asyncio.to_thread(self._exporter.close)

    def _make_tracer(self) -> AttemptTracer | None:
        config = self._options.tracing
        if config is None or not config.share:
            return None
        # Imported only if attempts are traced.
        from kubesched.tracing.exporting import SpanExporter  # noqa: PLC0415
        from kubesched.tracing.tracer import AttemptTracer  # noqa: PLC0415

        self._exporter = SpanExporter(config)
        self._exporter.start()
        return AttemptTracer(self._exporter.add, self._clock, share=config.share)

    def _open_journal(self) -> Journal | None:
        options = self._options
        if not options.recording.path:
            return None
        # Imported only if there is a recording.
        from kubesched.recording.opening import open_journal  # noqa: PLC0415

        journal = open_journal(options.recording, self._clock, plugin_files=options.plugin_files)
        writer = journal.writer
        self._metrics.recording_bytes.set_function(lambda: writer.bytes_written)
        self._metrics.recording_failures.set_function(lambda: int(bool(writer.failure)))
        return journal

    # --- the page ---------------------------------------------------------------------------

    def _make_page(self) -> WebPage:
        # Imported only if the page is enabled.
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
            yield "another replica is the leader: this one watches and does not schedule"
