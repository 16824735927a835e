"""A watched cluster: the scheduler's own state, maintained by informers, without writes.

    informers ──> Backlog ──> the scheduler's handlers ──> Cluster (columns)
                                                       DryRun ──^

There is no lease, no event recorder and no scheduling loop, and the client sends only GET. Kinds
that the user cannot list, other than nodes and pods, are skipped with a note.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from kubesched.api.core import Pod
from kubesched.client.access import ClusterAccess
from kubesched.client.informer import Handler, Informer
from kubesched.clock import Clock, RealClock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import RequestRules
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ForbiddenError, NotFoundError
from kubesched.framework.registry import Registry
from kubesched.framework.runtime import Framework
from kubesched.framework.waiting import WaitingPods
from kubesched.kinds import KINDS, ObjectKind, watched
from kubesched.plugins.in_tree import IN_TREE
from kubesched.queue.backoff import Backoff
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.dry_run import DryRun
from kubesched.scheduler.handlers import PodHandler, state_handlers
from kubesched.scheduler.nominations import Nominations
from kubesched.shadow.attention import WatchOnlyClient
from kubesched.shadow.backlog import Backlog, QueuedHandler
from kubesched.snapshot.contents import Snapshot

WrapPods = Callable[[Handler[Pod]], Handler[Pod]]

_PODS: Final = KINDS["Pod"]


class WatchedCluster:
    """A live cluster for hypothetical decisions; never written to."""

    def __init__(
        self,
        access: ClusterAccess,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        *,
        registry: Registry = IN_TREE,
        clock: Clock | None = None,
        user_agent: str = "kubesched-watch",
        wrap_pods: WrapPods = lambda handler: handler,
    ) -> None:
        """`wrap_pods` may wrap the handler of pods.

        Raises ConfigError if the configuration cannot be used.
        """
        clock = clock or RealClock()
        #: events not applied yet
        self.backlog = Backlog(clock.monotonic)
        self.client = WatchOnlyClient(access, user_agent=user_agent, timer=clock.monotonic)
        self.cluster = Cluster(RequestRules.of(gates))
        #: makes decisions
        self.engine = DryRun(self.cluster, config, gates, registry=registry)
        self.frameworks = self.engine.frameworks
        #: pending pods of all schedulers; only their events remove them
        self.queue = SchedulingQueue(
            clock=clock,
            sort_key=lambda pod: (pod.queued_at,),
            gate=lambda _pod: "",
            registrations={},
            backoff=Backoff(),
        )
        self._nominations = Nominations(self.cluster, self.queue)
        self._gates = gates
        #: kinds that are skipped, one line each
        self.notes = list(self.engine.notes)
        #: kind → its informer
        self.informers: dict[str, Informer[Any]] = self._informers(wrap_pods)
        #: set when everything was listed once, applied, and is being watched
        self.synced = asyncio.Event()

    @property
    def pods(self) -> Informer[Pod]:
        """The informer of all pods that are not terminated."""
        return self.informers["Pod"]

    def framework_for(self, scheduler_name: str) -> Framework | None:
        """Return the profile for a scheduler's pods; a single one serves all."""
        found = self.frameworks.get(scheduler_name)
        if found is None and len(self.frameworks) == 1:
            return next(iter(self.frameworks.values()))
        return found

    def _sees(self, pod: Pod) -> bool:
        """Tell whether events of a pod arrive without a gap, and everything else is current."""
        # During a list there is no version to compare with.
        if not self.synced.is_set() or not self.pods.resource_version:
            return False
        path = _PODS.path.collection()
        return self.client.attention.saw(path, pod.metadata.resource_version)

    def snapshot(self) -> Snapshot:
        """Return all current objects."""
        taken = Snapshot(source=self.client.access.server.url, notes=list(self.notes))
        for name, informer in self.informers.items():
            taken.objects[name] = list(informer.objects.values())
        return taken

    async def run(self) -> None:
        """List and watch until cancelled; raises ClientError if that cannot work."""
        async with self.client:
            for kind in [KINDS[name] for name in self.informers]:
                await self._ask_for(kind)
            async with asyncio.TaskGroup() as tasks:
                for informer in self.informers.values():
                    tasks.create_task(informer.run())
                tasks.create_task(self.backlog.run())
                for informer in self.informers.values():
                    await informer.synced.wait()
                await self.client.all_watch(len(self.informers))
                await self.backlog.drained()
                self.synced.set()

    async def _ask_for(self, kind: ObjectKind) -> None:
        """Skip a kind that we cannot list, or that the server does not serve."""
        try:
            path = kind.path.collection()
            await self.client.request("GET", path, params={"limit": 1})
        except (ForbiddenError, NotFoundError) as refused:
            if kind.needed:
                raise
            del self.informers[kind.name]
            self.notes.append(f"{kind.path} are not taken into account: {refused}")

    def _informers(self, wrap_pods: WrapPods) -> dict[str, Informer[Any]]:
        """Return an informer for each kind, pods last: objects they refer to come first."""
        pods = PodHandler(
            self.cluster,
            self.queue,
            nominations=self._nominations,
            waiting=WaitingPods(),
            is_ours=lambda _pod: True,
            on_unreadable=lambda pod, why: self.notes.append(
                f"pod {pod.metadata.namespace}/{pod.metadata.name} left out: {why}"
            ),
        )
        handlers = {
            name: QueuedHandler(handler, self.backlog)
            for name, handler in state_handlers(self.cluster, self.queue, self._nominations).items()
        }
        handlers["Pod"] = QueuedHandler(wrap_pods(pods), self.backlog, self._sees)
        return {
            kind.name: Informer(
                self.client,
                kind.path,
                kind.type,
                handler=handlers[kind.name],
                field_selector=kind.field_selector,
            )
            for kind in watched(self._gates)
        }
