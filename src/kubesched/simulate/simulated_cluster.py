"""The simulated surroundings of a scheduler: API server, kubelets, controllers.

    pods, nodes come and go ──> SimulatedCluster ──events──> handlers of the engine
                                  ^ │
         bindings, evictions, reports ────┘ └──> Observations

A bound pod runs immediately and ends after its lifetime. A pod that is preempted, or whose node is
lost, is recreated under its name, as its owner would; a DaemonSet pod is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.claim_templates import with_claims, without_own_claims
from kubesched.api.core import Node, Pod, PodCondition
from kubesched.api.resource import ResourceSlice
from kubesched.api.scheduling import GroupCondition, PodGroup
from kubesched.client.informer import Handler
from kubesched.client.meta import ObjectReference
from kubesched.clock import Clock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_groups import GroupKey, key_of_group, named_group
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import NotFoundError, UsageError
from kubesched.explain.groups import GATE_OFF
from kubesched.explain.surroundings import back_in_use, slices_like
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.engine import Engine
from kubesched.scheduler.handlers import NodeHandler, PodHandler, state_handlers
from kubesched.scheduler.recorders import Recorders
from kubesched.scheduler.timestamps import rfc3339
from kubesched.simulate.claims import SimulatedClaims
from kubesched.simulate.futility import Futility
from kubesched.simulate.lines import WaitingLines
from kubesched.simulate.observing import Observations
from kubesched.simulate.simulated_budgets import SimulatedBudgets
from kubesched.snapshot.filling import Filled, PodKey
from kubesched.snapshot.world import is_bound_to_its_node

RUNNING = "Running"
#: Part of a rejection's message if nodes were evaluated.
BY_NODES = "nodes are available: "
#: Reason of rejection events.
REFUSED = "FailedScheduling"


class Delays(Struct, frozen=True):
    """Delays of other components, in virtual time."""

    #: from the decision until the pod is bound
    binding_s: float = 0.0
    #: from a pod's deletion until it is gone from its node
    termination_s: float = 0.0


class SimulatedCluster(ApiCalls):
    """Simulates everything around an engine."""

    def __init__(
        self,
        cluster: Cluster,
        filled: Filled,
        *,
        clock: Clock,
        delays: Delays,
        observations: Observations,
        in_line: bool = False,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._delays = delays
        self._observations = observations
        #: whether equivalent pods wait in line, rather than all in the queue
        self._in_line = in_line
        #: all pods
        self.pods: dict[PodKey, Pod] = {**filled.placed}
        #: uid → lifetime of a pod once it is bound; pods without one run forever
        self._lifetimes_s: dict[str, float] = {}
        #: timers that have not fired
        self._due = 0
        self._nothing_due = asyncio.Event()
        self._nothing_due.set()
        #: those of the engine, once attached
        self._names: Sequence[str]
        self._pod_events: PodHandler
        self._node_events: NodeHandler
        self._lines: WaitingLines
        #: makes and releases claims to devices, once there is an engine
        self.claims: SimulatedClaims
        #: tells which attempts would be in vain, once attached
        self.futility: Futility
        self._group_events: Handler[PodGroup]
        self._slice_events: Handler[ResourceSlice]
        self._find_template = filled.find_template
        #: groups that came with their pods, and go with the last of them: key → number of pods
        self._own_groups: dict[GroupKey, int] = {}
        self._budgets = SimulatedBudgets(cluster)
        #: uid of an evicted pod → the budget that this violated
        self.violated: dict[str, str] = {}
        #: number of pods of schedulers that the configuration does not have
        self.adopted = 0

    def attach(self, engine: Engine) -> None:
        """Connect an engine, which then gets all events."""
        self._names = list(engine.frameworks)
        self._has_groups = engine.gates.enabled("GenericWorkload")
        self._node_events = NodeHandler(engine.cluster, engine.queue, engine.nominations)
        self._pod_events = PodHandler(
            engine.cluster,
            engine.queue,
            nominations=engine.nominations,
            waiting=engine.waiting,
            is_ours=engine.is_ours,
            on_unreadable=engine.failures.refuse,
        )
        self.futility = Futility(engine)
        handlers = state_handlers(engine.cluster, engine.queue, engine.nominations)
        self._group_events, self._slice_events = handlers["PodGroup"], handlers["ResourceSlice"]
        self._lines = WaitingLines(
            engine.cluster,
            withdraw=engine.queue.delete,
            admit=lambda pod: self._pod_events.on_add(pod, initial=False),
        )

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the newest version of a pod."""
        return self.pods.get((namespace, name))

    async def until_nothing_is_due(self) -> None:
        """Wait until no pod will end and none is terminating."""
        await self._nothing_due.wait()

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Call something after a delay; until then, something is due."""

        def fire() -> None:
            self._due -= 1
            act()
            if not self._due:
                self._nothing_due.set()

        self._due += 1
        self._nothing_due.clear()
        asyncio.get_running_loop().call_later(delay_s, fire)

    # --- events -----------------------------------------------------------------------------

    def create(self, pod: Pod, lifetime_s: float | None = None) -> None:
        """Create a pod, with its lifetime once it is bound."""
        if pod.spec.scheduler_name not in self._names:
            # As everywhere in simulations, the first profile places pods of unknown schedulers.
            self.adopted += 1
            pod = replace(pod, spec=replace(pod.spec, scheduler_name=self._names[0]))
        if lifetime_s is not None:
            self._lifetimes_s[pod.metadata.uid] = lifetime_s
        if _key(pod) in self.pods:
            name = f"{pod.metadata.name}-{self._observations.arrivals}"
            pod = replace(pod, metadata=replace(pod.metadata, name=name))
        pod, claims = with_claims(pod, self._find_template)
        for each in claims:
            self.claims.add(each)
        self.pods[_key(pod)] = pod
        self._observations.arrived(pod)
        self._pod_events.on_add(pod, initial=False)

    def create_group(self, group: PodGroup, pods: Iterable[tuple[Pod, float | None]]) -> None:
        """Create a group with pods and their lifetimes; it goes with the last of them."""
        if not self._has_groups:
            raise UsageError(GATE_OFF)
        members = list(pods)
        self._own_groups[key_of_group(group)] = len(members)
        self._group_events.on_add(group, initial=False)
        for pod, lifetime_s in members:
            self.create(pod, lifetime_s)

    def _left_group(self, pod: Pod) -> None:
        """Count a pod that ended; delete a group of which it was the last."""
        key = named_group(pod)
        if key is None or key not in self._own_groups:
            return
        self._own_groups[key] -= 1
        group = self._cluster.groups.objects.get(key.namespace, key.name)
        if not self._own_groups[key]:
            del self._own_groups[key]
            if group is not None:
                self._group_events.on_delete(group)

    def add_node(self, node: Node, daemons: Iterable[Pod] = (), like: str = "") -> None:
        """Add a node, with pods that are on it from the start, and devices like another's."""
        if self._cluster.table.row_of(node.metadata.name) is None:
            slices = self._cluster.devices.slices
            for each in slices_like(slices, like, node.metadata.name) if like else ():
                self._slice_events.on_add(each, initial=False)
            self._node_events.on_add(node, initial=False)
            for pod in daemons:
                self.pods[_key(pod)] = pod
                self._pod_events.on_add(pod, initial=False)

    def daemons_like(self, example: str, node_name: str) -> list[Pod]:
        """Return copies of a node's DaemonSet pods for a new node."""
        found = []
        for pod in self._pods_on(example):
            if is_bound_to_its_node(pod):
                meta = replace(
                    pod.metadata,
                    name=f"{pod.metadata.name}-{node_name}",
                    uid=f"{pod.metadata.uid}/{node_name}",
                )
                spec = replace(pod.spec, node_name=node_name)
                found.append(replace(pod, metadata=meta, spec=spec))
        return found

    def lose_node(self, name: str) -> tuple[Node, list[Pod]] | None:
        """Remove a node with its pods; return it and its DaemonSet pods, None if there is none."""
        row = self._cluster.table.row_of(name)
        if row is None:
            return None
        node = self._cluster.table.node_at(row)
        pods = self._pods_on(name)
        self._node_events.on_delete(node)
        for pod in pods:
            self._budgets.disrupted(pod)
            self._remove(pod)
            self._recreate(pod)
        return node, [pod for pod in pods if is_bound_to_its_node(pod)]

    def _pods_on(self, name: str) -> list[Pod]:
        """Return the current pods bound to a node."""
        row = self._cluster.table.row_of(name)
        if row is None:
            return []
        found = (self.pods.get(_key(each.pod)) for each in self._cluster.table.pods[row].values())
        return [pod for pod in found if pod is not None and pod.spec.node_name == name]

    def drain_node(self, name: str) -> None:
        """Cordon a node and evict its pods, except DaemonSet pods."""
        row = self._cluster.table.row_of(name)
        if row is None:
            return
        node = self._cluster.table.node_at(row)
        cordoned = replace(node, spec=replace(node.spec, unschedulable=True))
        self._node_events.on_update(node, cordoned)
        for pod in self._pods_on(name):
            if not is_bound_to_its_node(pod):
                self._begin_deletion(pod)

    def uncordon_node(self, name: str) -> None:
        """Uncordon a node."""
        row = self._cluster.table.row_of(name)
        if row is not None:
            node = self._cluster.table.node_at(row)
            self._node_events.on_update(node, back_in_use(node))

    # --- calls of the scheduler --------------------------------------------------------------

    def refused(self, pod: Pod, message: str) -> None:
        """Record an unschedulable pod."""
        self._observations.refused(pod, message)
        newest = self.pods.get(_key(pod))
        if self._in_line and newest is not None and BY_NODES in message:
            self._lines.refused(newest)

    async def bind(
        self,
        pod: PodInfo,
        node_name: str,
        *,
        still_wanted: Callable[[], bool] | None = None,  # noqa: ARG002 (no other scheduler is here)
    ) -> None:
        """Run a pod on a node; raises NotFoundError if it is gone."""
        self._lines.moved_on(pod.uid)
        self.futility.placed(pod.priority)
        if self._delays.binding_s:
            await asyncio.sleep(self._delays.binding_s)
        old = self._newest(pod.pod)
        new = replace(
            old,
            spec=replace(old.spec, node_name=node_name),
            status=replace(
                old.status,
                phase=RUNNING,
                start_time=rfc3339(self._clock.time()),
                nominated_node_name="",
            ),
        )
        self._change(old, new)
        self._observations.placed(new)
        self._budgets.placed(new)
        if self._cluster.table.row_of(node_name) is None:
            # The node was lost while the pod was being bound.
            self._remove(new)
            self._recreate(new)
            return
        lifetime_s = self._lifetimes_s.get(pod.uid)
        if lifetime_s is not None:
            self.later(lifetime_s, lambda: self._end(new))

    async def nominate(self, pod: Pod, node_name: str) -> None:
        """Write a pod's nomination."""
        old = self._newest(pod)
        if node_name:
            self._lines.moved_on(pod.metadata.uid)
        if old.status.nominated_node_name != node_name:
            self._change(
                old, replace(old, status=replace(old.status, nominated_node_name=node_name))
            )

    async def report_group(self, group: PodGroup, condition: GroupCondition) -> None:
        """Let a group be told nothing: its condition decides nothing."""

    async def mark_as_preempted(
        self,
        pod: Pod,
        *,
        by: str,  # noqa: ARG002
        preemptor: str = "pod",  # noqa: ARG002
        still_wanted: Callable[[], bool] | None = None,  # noqa: ARG002 (nothing waits here)
    ) -> None:
        """Mark a pod as a victim."""
        old = self._newest(pod)
        condition = PodCondition(
            type=names.DISRUPTION_TARGET,
            status="True",
            reason=names.REASON_PREEMPTION_BY_SCHEDULER,
        )
        conditions = (*old.status.conditions, condition)
        self._change(old, replace(old, status=replace(old.status, conditions=conditions)))

    async def delete(
        self,
        pod: Pod,
        *,
        still_wanted: Callable[[], bool] | None = None,  # noqa: ARG002
    ) -> None:
        """Delete a pod; its owner creates another."""
        self._begin_deletion(self._newest(pod))

    async def report_unschedulable(
        self,
        pod: Pod,
        *,
        reason: str,  # noqa: ARG002 (conditions are not read here)
        message: str,  # noqa: ARG002
        nominated_node: str | None,
    ) -> None:
        """Write a pod's nomination."""
        if nominated_node is not None:
            await self.nominate(pod, nominated_node)

    # --- inside -----------------------------------------------------------------------------

    def _newest(self, pod: Pod) -> Pod:
        newest = self.pods.get(_key(pod))
        if newest is None or newest.metadata.uid != pod.metadata.uid:
            raise NotFoundError(f'pods "{pod.metadata.name}" not found', code=404)
        return newest

    def _change(self, old: Pod, new: Pod) -> None:
        self.pods[_key(new)] = new
        self._pod_events.on_update(old, new)

    def _begin_deletion(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            return
        violated = self._budgets.disrupted(pod)
        if violated:
            self.violated[pod.metadata.uid] = violated
        if not self._delays.termination_s:
            self._remove(pod)
            self._recreate(pod)
            return
        meta = replace(pod.metadata, deletion_timestamp=rfc3339(self._clock.time()))
        going = replace(pod, metadata=meta)
        self._change(pod, going)
        self.later(self._delays.termination_s, lambda: self._finish_deletion(going))

    def _finish_deletion(self, pod: Pod) -> None:
        if self._is_there(pod):
            self._remove(self.pods[_key(pod)])
            self._recreate(pod)

    def _end(self, pod: Pod) -> None:
        # A pod that is being deleted when its time is over has ended all the same.
        if self._is_there(pod):
            self._remove(self.pods[_key(pod)])
            self._lifetimes_s.pop(pod.metadata.uid, None)
            self._observations.ended(pod)
            self._left_group(pod)

    def _is_there(self, pod: Pod) -> bool:
        found = self.pods.get(_key(pod))
        return found is not None and found.metadata.uid == pod.metadata.uid

    def _remove(self, pod: Pod) -> None:
        del self.pods[_key(pod)]
        self._lines.moved_on(pod.metadata.uid)
        self._pod_events.on_delete(pod)
        self.claims.release(pod)

    def _recreate(self, pod: Pod) -> None:
        """Recreate a pod, after its removal is complete."""
        lifetime_s = self._lifetimes_s.pop(pod.metadata.uid, None)
        if is_bound_to_its_node(pod):
            return
        self._observations.displaced(pod)
        self.later(0.0, lambda: self.create(self._anew(pod), lifetime_s))

    def _anew(self, pod: Pod) -> Pod:
        uid, _, count = pod.metadata.uid.partition("/again-")
        meta = replace(
            pod.metadata,
            uid=f"{uid}/again-{int(count or 0) + 1}",
            creation_timestamp=rfc3339(self._clock.time()),
            deletion_timestamp=None,
        )
        return without_own_claims(unplaced(replace(pod, metadata=meta)))


class SimulationRecorder(Recorders):
    """Receives events about rejections and preemptions."""

    def __init__(self, stage: SimulatedCluster, observations: Observations) -> None:
        super().__init__({})
        self._stage = stage
        self._observations = observations
        #: set at each rejection: the queue has a pod to be flushed later
        self.stirred = asyncio.Event()

    def warning(self, pod: Pod, *, reason: str, action: str, note: str) -> None:  # noqa: ARG002
        """Handle a warning: a pod was rejected, or a plugin failed."""
        if reason == REFUSED:
            self.stirred.set()
            self._stage.refused(pod, note)

    def preempted(
        self,
        victim: Pod,
        *,
        by: ObjectReference,
        scheduler_name: str,  # noqa: ARG002
        note: str,  # noqa: ARG002
    ) -> None:
        """A pod had to make room."""
        violated = self._stage.violated.pop(victim.metadata.uid, "")
        self._observations.preempted(victim, f"{by.namespace}/{by.name}", violated)


def unplaced(pod: Pod) -> Pod:
    """Return a pod as it was when it was created."""
    status = replace(pod.status, phase="", conditions=(), nominated_node_name="", start_time=None)
    return replace(pod, spec=replace(pod.spec, node_name=""), status=status)


def _key(pod: Pod) -> PodKey:
    return pod.metadata.namespace, pod.metadata.name
