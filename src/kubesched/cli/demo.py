"""``kubesched demo``: a cluster in this process, a mixed workload, the scheduler at work."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubesched import logs
from kubesched.cli import running
from kubesched.cli.parsing import Parser, not_negative, port, positive

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from kubesched.app import App
    from kubesched.cli.demo_report import Advance, Statistics
    from kubesched.config.features import FeatureGates
    from kubesched.config.types import SchedulerConfiguration
    from kubesched.embedded.cluster import EmbeddedCluster
    from kubesched.metrics.recorder import Metrics
    from kubesched.web.page import WebPage

#: Pods are created as fast as they are scheduled, with this many in the queue.
BACKLOG = 100
BATCH = 20
POLL_S = 0.01


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "demo",
        help="schedule a mixed workload on an embedded cluster",
        description="Starts an API server with pretended nodes in this process, schedules a mixed "
        "workload on it, and shows what came of it.",
    )
    parser.add_argument("--nodes", type=positive, default=300, metavar="N", help="how many nodes")
    parser.add_argument(
        "--pods", type=not_negative, default=5000, metavar="N", help="how many pods"
    )
    parser.add_argument(
        "--port", type=port, default=0, help="port of the API server (default: any free one)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the same run every time")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="stay up afterwards, for kubectl and with a web page; ends with Ctrl-C",
    )
    parser.add_argument(
        "--ui-port",
        type=port,
        default=0,
        metavar="PORT",
        help="port of the web page (default: any free one)",
    )
    parser.set_defaults(run=run)


def run(flags: argparse.Namespace) -> int:
    """Run the demo; return the exit code."""
    logs.configure(logs.LoggingOptions(verbosity=logs.ERRORS_ONLY))
    finished = flags.keep  # which ends with Ctrl-C

    async def demo() -> None:
        nonlocal finished
        await _demo(flags)
        finished = True

    code = running.run(demo)
    if not finished and not code:
        print("Interrupted: the embedded cluster is gone.", file=sys.stderr)
        return 130
    return code


async def _demo(flags: argparse.Namespace) -> None:
    from kubesched.cli import demo_groups, demo_report, demo_workload  # noqa: PLC0415
    from kubesched.cli.console import stdout_console  # noqa: PLC0415 (costs time to import)
    from kubesched.embedded.cluster import EmbeddedCluster  # noqa: PLC0415

    console = stdout_console()
    statistics = demo_report.Statistics()
    async with EmbeddedCluster(
        port=flags.port, drivers=[demo_groups.driver()], run_workloads=True
    ) as cluster:
        templates = demo_workload.node_templates(flags.nodes)
        for count, template in templates:
            cluster.add_nodes(count, template)
        cluster.create_all(demo_workload.services())
        cluster.create_all(demo_groups.objects(flags.nodes))
        nodes = sum(count for count, _ in templates)
        gpu_slots = demo_workload.gpu_slots(templates)
        workloads = demo_workload.deployments(flags.pods)
        alone = flags.pods - sum(each["spec"]["replicas"] for each in workloads)
        pods = list(demo_workload.pods(alone, gpu_slots=gpu_slots, nodes=nodes, seed=flags.seed))
        plural, zones = demo_report.plural, min(nodes, len(demo_workload.ZONES))
        console.print(
            f"[bold]kubesched demo[/]: {plural(nodes, 'node')} in {plural(zones, 'zone')}, "
            f"{plural(flags.pods, 'pod')}, API server at {cluster.url}",
            soft_wrap=True,
        )
        app, make_page = _make_app(cluster, flags, statistics)
        async with _running(app), _served(make_page, flags) as url:
            with demo_report.progress(console, flags.pods) as advance:
                await _feed(cluster, app, [*workloads, *pods], statistics, advance)
            demo_report.show(console, app, statistics)
            if flags.keep:
                await _keep_up(cluster, url)


def _make_app(
    cluster: EmbeddedCluster, flags: argparse.Namespace, statistics: Statistics
) -> tuple[App, Callable[[], WebPage]]:
    """Create a scheduler with the default configuration and high rate limits, and its page."""
    from msgspec.structs import replace  # noqa: PLC0415

    from kubesched.app import App  # noqa: PLC0415
    from kubesched.client.access import ClusterAccess  # noqa: PLC0415
    from kubesched.config.features import FeatureGates  # noqa: PLC0415
    from kubesched.config.types import SchedulerConfiguration  # noqa: PLC0415
    from kubesched.metrics.recorder import Metrics  # noqa: PLC0415
    from kubesched.scheduler.cycle import SchedulingCycle  # noqa: PLC0415
    from kubesched.scheduler.engine import EngineOptions  # noqa: PLC0415
    from kubesched.scheduler.graded_cycle import GradedCycle  # noqa: PLC0415

    gates = FeatureGates.of({"GenericWorkload": True})
    config = SchedulerConfiguration.default(gates)
    config = replace(config, client_connection=replace(config.client_connection, qps=0.0))
    metrics = Metrics(gates)
    app = App(
        config,
        gates,
        ClusterAccess.plain(cluster.url),
        metrics=metrics,
        options=EngineOptions(
            seed=flags.seed,
            make_cycle=GradedCycle if flags.keep else SchedulingCycle,
            on_bound=statistics.bound,
        ),
    )
    return app, lambda: _make_page(app, metrics, config, gates)


def _make_page(
    app: App, metrics: Metrics, config: SchedulerConfiguration, gates: FeatureGates
) -> WebPage:
    from kubesched.clock import RealClock  # noqa: PLC0415
    from kubesched.plugins.in_tree import IN_TREE  # noqa: PLC0415
    from kubesched.web.engine_state import engine_source  # noqa: PLC0415
    from kubesched.web.living_world import Rules  # noqa: PLC0415
    from kubesched.web.page import WebPage  # noqa: PLC0415

    rules = Rules(config, gates, IN_TREE)
    source = engine_source(
        app,
        lambda: rules,
        metrics,
        clock=RealClock(),
        title=lambda: f"demo, {len(app.cluster.table)} nodes",
    )
    return WebPage(source)


@asynccontextmanager
async def _served(
    make_page: Callable[[], WebPage], flags: argparse.Namespace
) -> AsyncIterator[str]:
    """Serve the page, if the cluster stays up; yield its address."""
    if not flags.keep:
        yield ""
        return
    from kubesched.web.local import LocalServer  # noqa: PLC0415

    async with LocalServer(make_page(), port=flags.ui_port) as server:
        yield server.url


@asynccontextmanager
async def _running(app: App) -> AsyncIterator[None]:
    """Run a scheduler in the background; if it fails, so does the block."""
    async with asyncio.TaskGroup() as together:
        task = together.create_task(app.run())
        await app.started.wait()
        yield
        task.cancel()


async def _feed(
    cluster: EmbeddedCluster,
    app: App,
    objects: list[dict[str, object]],
    statistics: Statistics,
    advance: Advance,
) -> None:
    """Create pods and workloads while the scheduler works, and wait until all is done.

    Pods that a controller makes are noted when they are there.
    """
    statistics.begin()
    for first in range(0, len(objects), BATCH):
        for obj in objects[first : first + BATCH]:
            created = cluster.create(obj)
            if created["kind"] == "Pod":
                statistics.created(created["metadata"]["uid"])
            else:
                for uid in await _made_by(cluster, created):
                    statistics.created(uid)
        while statistics.created_count - statistics.bound_count - _told(app) > BACKLOG:
            advance(statistics.bound_count, _told(app))
            await asyncio.sleep(POLL_S)
        await asyncio.sleep(0)
    deadline = time.monotonic() + 60
    # The summary shows the messages of conditions, so wait until these are written.
    while (
        statistics.bound_count + _told(app) < statistics.created_count or len(app.engine.reports)
    ) and time.monotonic() < deadline:
        advance(statistics.bound_count, _told(app))
        await asyncio.sleep(POLL_S)
    advance(statistics.bound_count, _told(app))


async def _made_by(cluster: EmbeddedCluster, deployment: dict[str, Any]) -> list[str]:
    """Return the uids of a deployment's pods, as soon as its controller has made them."""
    from kubesched.embedded.resources import PODS  # noqa: PLC0415 (costs time to import)

    wanted, labels = deployment["spec"]["replicas"], deployment["spec"]["template"]["metadata"]
    while True:
        pods = [version.obj["metadata"] for version in cluster.store.collection(PODS).versions()]
        made = [meta["uid"] for meta in pods if labels["labels"].items() <= meta["labels"].items()]
        if len(made) >= wanted:
            return made
        await asyncio.sleep(POLL_S)


def _told(app: App) -> int:
    """Return how many pods wait and know why; gangs that were tried in vain are tried again."""
    return sum(1 for pod in app.queue.pods() if pod.attempts or app.queue.is_gated(pod.info.uid))


async def _keep_up(cluster: EmbeddedCluster, url: str) -> None:
    with tempfile.TemporaryDirectory(prefix="kubesched-") as folder:
        path = Path(folder) / "kubeconfig"
        cluster.write_kubeconfig(path)
        print(f"\nThe cluster stays up. See it in a browser:\n\n  {url}")
        print(f"\nor in another terminal:\n\n  export KUBECONFIG={path}")
        print("  kubectl get nodes\n  kubectl get pods --field-selector status.phase=Pending")
        print("\nEnd it with Ctrl-C.", flush=True)
        await asyncio.Event().wait()
