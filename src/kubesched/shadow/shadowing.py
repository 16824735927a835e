"""Runs shadow mode: findings as they come, a periodic summary, and a final one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from math import inf

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.client.access import ClusterAccess
from kubesched.client.informer import Handler
from kubesched.clock import RealClock
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.shadow.judging import JudgingHandler
from kubesched.shadow.lines import FindingOutput
from kubesched.shadow.reordering import BURST_S
from kubesched.shadow.report import ShadowFinding
from kubesched.shadow.summing import Tally
from kubesched.shadow.watching import WatchedCluster


class ShadowOptions(Struct, frozen=True):
    """What to watch, and for how long."""

    #: schedulers whose pods are judged; empty means all
    scheduler_names: Collection[str] = ()
    only_differences: bool = False
    #: None means until cancelled
    duration_s: float | None = None
    #: interval of summaries, if there is something new
    summary_every_s: float = 10.0


class Shadow:
    """Decides beside another scheduler."""

    def __init__(
        self,
        access: ClusterAccess,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        *,
        registry: Registry,
        lines: FindingOutput,
        options: ShadowOptions,
    ) -> None:
        """Raise ConfigError if the configuration cannot be used."""
        clock = RealClock()
        self._lines = lines
        self._options = options
        self.tally = Tally.begin(clock.monotonic)
        #: why findings cannot be written, None if they can
        self._unwritable: OSError | None = None

        def judging(handler: Handler[Pod]) -> Handler[Pod]:
            self._judging = JudgingHandler(
                handler,
                lambda: self.watched,
                clock=clock,
                scheduler_names=options.scheduler_names,
                on_finding=self._found,
                on_not_judged=self.tally.leave_out,
            )
            return self._judging

        self.watched = WatchedCluster(
            access,
            config,
            gates,
            registry=registry,
            clock=clock,
            user_agent="kubesched-shadow",
            wrap_pods=judging,
        )

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Watch until the time is over or cancelled; the final summary is always written.

        `on_ready` is called when everything was listed and judging begins. Raises ClientError if
        the cluster cannot be watched.
        """
        watching = asyncio.create_task(self.watched.run())
        try:
            await _first_of(watching, self.watched.synced)
            on_ready()
            self.tally.started = self.tally.timer()
            await self._until_the_end(watching)
        finally:
            watching.cancel()
            try:
                # Events that arrive until it has ended belong before the summary.
                await asyncio.gather(watching, return_exceptions=True)
            finally:
                if self.watched.synced.is_set() and self._unwritable is None:
                    self._judging.order.flush()
                    self._lines.summary(self.tally.summary(final=True))

    async def _until_the_end(self, watching: asyncio.Task[None]) -> None:
        loop, options = asyncio.get_running_loop(), self._options
        told, next_summary = 0, loop.time() + options.summary_every_s
        deadline = inf if options.duration_s is None else loop.time() + options.duration_s
        while (left_s := deadline - loop.time()) > 0:
            await asyncio.wait([watching], timeout=min(BURST_S, left_s))
            self._judging.flush()
            if self._unwritable is not None:
                raise self._unwritable
            if watching.done():
                await watching  # it only ends with an error
            if loop.time() >= next_summary:
                next_summary += options.summary_every_s
                if self.tally.total > told:
                    told = self.tally.total
                    self._lines.summary(self.tally.summary())

    def _found(self, finding: ShadowFinding) -> None:
        self.tally.count(finding)
        if self._options.only_differences and finding.verdict.agrees:
            return
        try:
            if self._unwritable is None:
                self._lines.finding(finding)
        except OSError as failed:
            # Handlers of pods do not handle output errors; the loop ends soon.
            self._unwritable = failed


async def _first_of(task: asyncio.Task[None], event: asyncio.Event) -> None:
    """Return when the event is set; raise the task's error if it ends before."""
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        if not event.is_set():
            await task
    finally:
        waiting.cancel()
