"""A cluster as it is watched: the scheduler's own state, kept up to date, and no way to write.

    informers ──> Backlog ──> the scheduler's handlers ──> Cluster (columns)
                                                       DryRun ──^

There is no lease, no event recorder and no scheduling loop, and the client sends nothing but GET.
Whoever may see nodes and pods but not, say, volumes gets a note instead of an error.
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
    """A live cluster that can be asked anything, and is never written to."""

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
        """Make one; `wrap_pods` may put itself between the news of pods and their handler.

        Raises ConfigError if the configuration cannot be used.
        """
        clock = clock or RealClock()
        #: what has come and is not applied yet
        self.backlog = Backlog(clock.monotonic)
        self.client = WatchOnlyClient(access, user_agent=user_agent, timer=clock.monotonic)
        self.cluster = Cluster(RequestRules.of(gates))
        #: decides about pods
        self.engine = DryRun(self.cluster, config, gates, registry=registry)
        self.frameworks = self.engine.frameworks
        #: pods of all schedulers that want a node; nobody takes them out but their news
        self.queue = SchedulingQueue(
            clock=clock,
            sort_key=lambda pod: (pod.queued_at,),
            gate=lambda _pod: "",
            registrations={},
            backoff=Backoff(),
        )
        self._nominations = Nominations(self.cluster, self.queue)
        self._gates = gates
        #: what is not taken into account, one line each
        self.notes = list(self.engine.notes)
        #: name of the kind → its informer
        self.informers: dict[str, Informer[Any]] = self._informers(wrap_pods)
        #: set when everything was listed once, was applied and is being watched
        self.synced = asyncio.Event()

    @property
    def pods(self) -> Informer[Pod]:
        """The informer of all pods that are not over."""
        return self.informers["Pod"]

    def framework_for(self, scheduler_name: str) -> Framework | None:
        """Return the profile for a scheduler's pods; a single one stands in for any."""
        found = self.frameworks.get(scheduler_name)
        if found is None and len(self.frameworks) == 1:
            return next(iter(self.frameworks.values()))
        return found

    def _sees(self, pod: Pod) -> bool:
        """Tell whether news of a pod come while we look, and all else is up to date."""
        # While pods are listed again there is no version to go on from.
        if not self.synced.is_set() or not self.pods.resource_version:
            return False
        path = _PODS.path.collection()
        return self.client.attention.saw(path, pod.metadata.resource_version)

    def snapshot(self) -> Snapshot:
        """Return all objects as they are now."""
        taken = Snapshot(source=self.client.access.server.url, notes=list(self.notes))
        for name, informer in self.informers.items():
            taken.objects[name] = list(informer.objects.values())
        return taken

    async def run(self) -> None:
        """List and watch until cancelled; raises ClientError if that cannot work at all."""
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
        """Do without a kind that we may not see, or that the server does not have."""
        try:
            path = kind.path.collection()
            await self.client.request("GET", path, params={"limit": 1})
        except (ForbiddenError, NotFoundError) as refused:
            if kind.needed:
                raise
            del self.informers[kind.name]
            self.notes.append(f"{kind.path} are not taken into account: {refused}")

    def _informers(self, wrap_pods: WrapPods) -> dict[str, Informer[Any]]:
        """Return an informer for each kind, pods last: what they refer to is known before."""
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
