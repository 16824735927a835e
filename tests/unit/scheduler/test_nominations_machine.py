"""No nomination outlives its purpose, and no pod is parked that has something to do.

An engine works on a world that answers late: what the API server did is seen some time afterwards.
Pods of three priorities come and go, victims take their time to terminate, nodes come and go. Once
everything was seen and the longest backoff is over, each pod that still waits

* fits nowhere,
* has a less important pod that is terminating on its node, if it is nominated,
* could not preempt any pod, if it is not nominated,

and no pod was ever deleted twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Node, Pod, PodCondition
from kubesched.clock import VirtualClock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.config import loading
from kubesched.errors import NotFoundError, WithdrawnError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.null_writers import NullVolumeWriter
from kubesched.metrics.recorder import Metrics
from kubesched.plugins.default_preemption import DefaultPreemption
from kubesched.plugins.in_tree import IN_TREE
from kubesched.queue.queued_pod import QueuedPod
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.engine import Engine, EngineOptions
from kubesched.scheduler.handlers import NodeHandler, PodHandler
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.recorders import Recorders
from kubesched.simulate.virtual_time import VirtualTimeLoop
from tests.support.objects import node, pod, spread_over
from tests.support.scheduling import DEFAULT_GATES

#: The longest backoff, and the second that it is cut to.
BOUND_S = 11.0
#: How long the scheduler is given to come to rest: a preemptor may have to try several nodes.
PATIENCE_S = 6 * BOUND_S
#: Without any node, pods are tried again and again, which is another story.
ALWAYS_THERE = "n0"
#: Like every time here it has no rounding error, so that the clock comes to whole seconds.
MOMENT_S = 0.125
NODES = [ALWAYS_THERE, "n1"]
PODS = [f"p{number}" for number in range(5)]
#: Small numbers, so that pods are in each other's way.
CPUS = st.sampled_from(["1", "2"])
MOSTLY = st.sampled_from([True, True, True, False])
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""
ZONES = {"n0": "a", "n1": "b"}


class World:
    """An API server, and an informer that is behind."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.delay_s = 0.0
        self.pods: dict[str, Pod] = {}
        self.seen: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.deletions: Counter[str] = Counter()
        #: what the informer has yet to say
        self.untold: list[Callable[[], None]] = []
        self._created = 0
        self.on_pod: PodHandler
        self.on_node: NodeHandler

    # --- the informer -------------------------------------------------------------------------

    def tell(self, most: int = 1000) -> None:
        """Let the informer say something of what happened."""
        for _ in range(min(most, len(self.untold))):
            self.untold.pop(0)()

    def _put(self, name: str, new: Pod | None) -> None:
        if new is None:
            del self.pods[name]
        else:
            self.pods[name] = new

        def say() -> None:
            old = self.seen.pop(name, None)
            if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
                self.on_pod.on_delete(old)
                old = None
            if new is not None:
                self.seen[name] = new
                if old is None:
                    self.on_pod.on_add(new, initial=False)
                else:
                    self.on_pod.on_update(old, new)

        self.untold.append(say)

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        return self.seen.get(name)

    # --- users, kubelets, controllers ---------------------------------------------------------

    def create(self, name: str, **spec: Any) -> None:
        self._created += 1
        self._put(name, pod(name, uid=f"{name}/{self._created}", **spec))

    def delete_now(self, name: str) -> None:
        self._put(name, None)

    def terminating(self) -> list[str]:
        return [
            name for name, each in self.pods.items() if each.metadata.deletion_timestamp is not None
        ]

    def begin_deletion(self, name: str) -> None:
        each = self.pods[name]
        if not each.spec.node_name:
            self._put(name, None)
        elif each.metadata.deletion_timestamp is None:
            meta = replace(each.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            self._put(name, replace(each, metadata=meta))

    def put_node(self, name: str, cpu: str) -> None:
        old = self.nodes.get(name)
        new = self.nodes[name] = node(name, cpu=cpu, labels={"zone": ZONES[name]})
        if old is None:
            self.untold.append(lambda: self.on_node.on_add(new, initial=False))
        else:
            self.untold.append(lambda: self.on_node.on_update(old, new))

    def remove_node(self, name: str) -> None:
        gone = self.nodes.pop(name)
        self.untold.append(lambda: self.on_node.on_delete(gone))

    # --- what the scheduler writes ------------------------------------------------------------

    async def _answer(self, each: Pod, still_wanted: Callable[[], bool] = lambda: True) -> Pod:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if not still_wanted():
            raise WithdrawnError("not wanted")
        newest = self.pods.get(each.metadata.name)
        if newest is None or newest.metadata.uid != each.metadata.uid:
            raise NotFoundError(f'pods "{each.metadata.name}" not found', code=404)
        return newest

    async def bind(self, info: PodInfo, node_name: str) -> None:
        newest = await self._answer(info.pod)
        status = replace(newest.status, nominated_node_name="")
        spec = replace(newest.spec, node_name=node_name)
        self._put(newest.metadata.name, replace(newest, spec=spec, status=status))

    async def nominate(self, each: Pod, node_name: str) -> None:
        newest = await self._answer(each)
        if newest.status.nominated_node_name != node_name:
            status = replace(newest.status, nominated_node_name=node_name)
            self._put(newest.metadata.name, replace(newest, status=status))

    async def mark_as_preempted(
        self, each: Pod, *, by: str, preemptor: str, still_wanted: Callable[[], bool]
    ) -> None:
        newest = await self._answer(each, still_wanted)
        condition = PodCondition(
            type=names.DISRUPTION_TARGET,
            status="True",
            reason=names.REASON_PREEMPTION_BY_SCHEDULER,
        )
        status = replace(newest.status, conditions=(condition,))
        self._put(newest.metadata.name, replace(newest, status=status))

    async def delete(self, each: Pod, *, still_wanted: Callable[[], bool]) -> None:
        newest = await self._answer(each, still_wanted)
        self.deletions[newest.metadata.uid] += 1
        self.begin_deletion(newest.metadata.name)

    async def report_unschedulable(
        self, each: Pod, *, reason: str, message: str, nominated_node: str | None
    ) -> None:
        if nominated_node is not None:
            await self.nominate(each, nominated_node)


class NominationsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock(1_000_000.0)
        self.loop = VirtualTimeLoop(self.clock)
        self.world = world = World(self.loop)
        self.cluster = Cluster()
        self.work: list[asyncio.Task[None]] = []
        self.loop.run_until_complete(self._start(world))

    async def _start(self, world: World) -> None:
        self.engine = engine = Engine(
            loading.decode(CONFIGURATION, "test", gates=DEFAULT_GATES),
            DEFAULT_GATES,
            self.cluster,
            Outside(
                api_calls=cast("ApiCalls", world),
                volume_writer=NullVolumeWriter(),
                recorders=Recorders({}),
                find_pod=world.find_pod,
                make_extenders=lambda _config: None,
                clock=self.clock,
                metrics=Metrics(DEFAULT_GATES),
            ),
            registry=IN_TREE,
            options=EngineOptions(seed=1, queue_check_share=0.0),
        )
        world.on_node = NodeHandler(self.cluster, engine.queue, engine.nominations)
        world.on_pod = PodHandler(
            self.cluster,
            engine.queue,
            nominations=engine.nominations,
            waiting=engine.waiting,
            is_ours=lambda _: True,
            on_unreadable=lambda *_: None,
        )
        engine.failures.begin()
        self.work += [
            asyncio.create_task(engine.scheduler.run()),
            asyncio.create_task(engine.scheduler.flush()),
        ]

    def teardown(self) -> None:
        for task in self.work:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*self.work, return_exceptions=True))
        for writer in (self.engine.bindings, self.engine.evictions, self.engine.reports):
            self.loop.run_until_complete(writer.drain(0.0))
        self.loop.close()

    def _pass(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    # --- what happens -------------------------------------------------------------------------

    def _then(self, at_once: bool) -> None:
        """Mostly the informer says at once what happened, and the scheduler acts on it."""
        if at_once:
            self.world.tell()
            self._pass(MOMENT_S)

    @initialize(cpu=CPUS)
    def first_node(self, cpu: str) -> None:
        self.world.put_node(ALWAYS_THERE, cpu)
        self.world.tell()

    @rule(
        name=st.sampled_from(PODS),
        cpu=CPUS,
        priority=st.sampled_from([0, 5, 10]),
        spreads=st.sampled_from([False, False, False, True]),
        at_once=MOSTLY,
    )
    def pod_comes(self, name: str, cpu: str, priority: int, spreads: bool, at_once: bool) -> None:
        if name not in self.world.pods:
            constraints = [spread_over("zone", app="x")] if spreads else []
            self.world.create(
                name, cpu=cpu, priority=priority, labels={"app": "x"}, spread=constraints
            )
            self._then(at_once)

    @rule(cpus=st.lists(CPUS, min_size=2, max_size=4), last=st.sampled_from([0, 10]))
    def ever_more_important_pods_come(self, cpus: list[str], last: int) -> None:
        """Each may preempt those before it, and the last one takes what they left free."""
        free = [name for name in PODS if name not in self.world.pods]
        priorities = [*[0, 5, 10, 10][: len(cpus) - 1], last]
        for name, cpu, priority in zip(free, cpus, priorities, strict=False):
            self.world.create(name, cpu=cpu, priority=priority, labels={"app": "x"})
            self._then(at_once=True)

    @precondition(lambda self: self.world.pods)
    @rule(data=st.data(), at_once=MOSTLY)
    def pod_is_deleted(self, data: st.DataObject, at_once: bool) -> None:
        self.world.begin_deletion(data.draw(st.sampled_from(sorted(self.world.pods))))
        self._then(at_once)

    @precondition(lambda self: self.world.terminating())
    @rule(data=st.data(), at_once=MOSTLY)
    def pod_terminates(self, data: st.DataObject, at_once: bool) -> None:
        self.world.delete_now(data.draw(st.sampled_from(self.world.terminating())))
        self._then(at_once)

    @rule(name=st.sampled_from(NODES), cpu=CPUS, at_once=MOSTLY)
    def node_comes_or_changes(self, name: str, cpu: str, at_once: bool) -> None:
        self.world.put_node(name, cpu)
        self._then(at_once)

    @precondition(lambda self: len(self.world.nodes) > 1)
    @rule(data=st.data(), at_once=MOSTLY)
    def node_goes(self, data: st.DataObject, at_once: bool) -> None:
        others = sorted(self.world.nodes.keys() - {ALWAYS_THERE})
        self.world.remove_node(data.draw(st.sampled_from(others)))
        self._then(at_once)

    @rule(delay_s=st.sampled_from([0.0, 0.0, 0.25, 2.0]))
    def api_server_answers_after(self, delay_s: float) -> None:
        self.world.delay_s = delay_s

    @precondition(lambda self: self.world.untold)
    @rule(most=st.integers(1, 6))
    def informer_says(self, most: int) -> None:
        self.world.tell(most)

    @rule(seconds=st.sampled_from([0.0, 0.5, 3.0]))
    def time_passes(self, seconds: float) -> None:
        self._pass(seconds)

    # --- what must be so ----------------------------------------------------------------------

    @rule()
    def it_comes_to_rest(self) -> None:
        began = self.clock.time()
        queue = self.engine.queue
        while self.clock.time() - began < PATIENCE_S:
            self.world.tell()
            self._pass(0.5)
            busy = queue.active_count or queue.backoff_count or queue.in_flight_count
            if not (busy or self.world.untold or len(self.engine.bindings)):
                break
        else:
            raise AssertionError(f"still busy after {PATIENCE_S} s: {list(queue.parts())}")
        # Pods that were parked just now have been told everything.
        self._pass(BOUND_S)
        self.world.tell()
        for waiting in queue.pods():
            self._has_nothing_to_do(waiting)

    def _has_nothing_to_do(self, waiting: QueuedPod) -> None:
        info = waiting.info
        framework = self.engine.frameworks[info.pod.spec.scheduler_name]
        state = CycleState()
        found = framework.evaluator.look(state, info)
        assert isinstance(found, Diagnosis), f"{info} fits and waits"
        nominated = self.cluster.nominator.node_of(info.uid)
        if nominated is not None:
            row = self.cluster.table.row_of(nominated)
            assert row is not None, f"{info} is nominated to a node that is gone"
            assert any(
                other.pod.metadata.deletion_timestamp and other.priority < info.priority
                for other in self.cluster.table.pods[row].values()
            ), f"{info} is nominated to {nominated} and waits for no victim"
            return
        plugin = framework.plugins.instances[DefaultPreemption.name]
        assert isinstance(plugin, DefaultPreemption)
        # What lets a spread constraint pass on another node is no event to kube-scheduler, either,
        # unless a pod goes; that has a test of its own.
        if not info.pod.spec.topology_spread_constraints:
            candidates = plugin.find(state, info, found).candidates
            assert not candidates, f"{info} could preempt {candidates} and waits"

    @invariant()
    def nothing_is_deleted_twice(self) -> None:
        twice = [uid for uid, times in self.world.deletions.items() if times > 1]
        assert not twice, f"{twice} were deleted more than once"

    @invariant()
    def everything_adds_up(self) -> None:
        self.cluster.validate()
        self.engine.queue.validate()


NominationsMachine.TestCase.settings = settings(
    max_examples=300,
    stateful_step_count=30,
    deadline=None,
    # Not explaining: it takes minutes, and the shrunk example says enough.
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
)
test_nominations = NominationsMachine.TestCase
