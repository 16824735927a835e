"""Places pods one after the other, as the scheduler would; and undoes it.

Nothing is bound: a pod counts on its node as an assumed pod does. No pod is preempted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.api.scheduling import PodGroup
from kubesched.cluster.pod_groups import GroupKey, named_group
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.snapshot.world import World


class PlacementResult(Struct, frozen=True):
    """The result for one pod."""

    #: "" if none was found
    node: str = ""
    message: str = ""


class GroupPlacementResult(Struct, frozen=True):
    """The result for pods of one group."""

    #: uid → its result
    members: dict[str, PlacementResult]
    #: why too few of them fit, "" if enough do
    message: str


class SequentialPlacer:
    """Places pods; the same seed gives the same placements."""

    def __init__(self, world: World, *, seed: int = 0) -> None:
        self._world = world
        self._cluster = world.cluster
        self._engine = world.engine
        self._seed = seed
        self._engine.restart(seed)
        self._tx = self._cluster.transaction()

    def place(self, pod: Pod) -> PlacementResult:
        """Find a node for a pending pod, and count it there; its claims are made of templates."""
        try:
            info = self._world.compile(self._world.created(pod, self._tx))
        except ObjectError as unreadable:
            return PlacementResult(message=str(unreadable))
        framework = self._engine.framework_of(pod.spec.scheduler_name)
        gate = framework.gate(info)
        if not gate.ok:
            return PlacementResult(message=gate.message)
        state = CycleState()
        try:
            found = self._choose(framework, state, info)
        except AttemptError as failed:
            return PlacementResult(message=failed.status.message)
        if isinstance(found, Diagnosis):
            return PlacementResult(message=found.message())
        return self._put(framework, state, info, found) if found else _no_nodes()

    def put_group(self, group: PodGroup) -> None:
        """Add a group, which is there until everything is taken back."""
        self._tx.put_object(self._cluster.groups.objects, group)

    def place_all(self, pods: Sequence[Pod]) -> list[PlacementResult]:
        """Find nodes for pods in this order; those of a group together, with its first one."""
        results: dict[str, PlacementResult] = {}
        for pod in pods:
            if pod.metadata.uid in results:
                continue
            key = named_group(pod)
            if key is None or self._engine.groups is None:
                results[pod.metadata.uid] = self.place(pod)
                continue
            together = [each for each in pods if named_group(each) == key]
            results |= self.place_group(key, together).members
        return [results[pod.metadata.uid] for pod in pods]

    def place_group(self, key: GroupKey, pods: Sequence[Pod]) -> GroupPlacementResult:
        """Find nodes for pods of a group, for as many as it needs or for none."""
        try:
            created = [self._world.created(pod, self._tx) for pod in pods]
            infos = [self._world.compile(pod) for pod in created]
        except ObjectError as unreadable:
            return _all_refused(pods, str(unreadable))
        groups = self._engine.groups
        info = None if groups is None else groups.info(key, infos)
        if groups is None or info is None:
            return _all_refused(pods, f"podgroup {key.full_name} not found")
        decision = groups.decide(info, preempts=False)
        groups.place(decision, self._tx)
        placed = {each.pod.uid: each.node_name for each in decision.assigned}
        members = {
            each.uid: PlacementResult(node=placed[each.uid])
            if each.uid in placed
            else PlacementResult(message=decision.message_of(each))
            for each in infos
        }
        return GroupPlacementResult(members, decision.status.message)

    def _choose(self, framework: Framework, state: CycleState, info: PodInfo) -> str | Diagnosis:
        """Choose a node as the scheduling cycle does.

        But ties are broken by the order of rows, not of nodes: the latter must be recomputed after
        each change of nodes, and only determinism matters here.
        """
        table = self._cluster.table
        if not len(table):
            return ""
        found = framework.evaluator.filter(state, info)
        if isinstance(found, Diagnosis):
            return found
        found, _ = self._engine.cycle.sample(framework, found)
        rows = found.nodes.row_numbers()
        if len(rows) > 1:
            totals = framework.evaluator.score(state, info, found).totals()
            rows = rows[totals == totals.max()]
        row = rows.item(self._engine.cycle.rng.randrange(len(rows)) if len(found) > 1 else 0)
        return table.name_at(row)

    def _put(
        self, framework: Framework, state: CycleState, info: PodInfo, node_name: str
    ) -> PlacementResult:
        with self._tx.part() as attempt:
            attempt.withdraw(info)
            attempt.place(info, node_name)
            attempt.on_undo(lambda: framework.unreserve(state, info, node_name))
            status = framework.reserve(state, info, node_name)
            if not status.ok:
                return PlacementResult(message=status.message)
            attempt.keep()
        return PlacementResult(node=node_name)

    def take_all_back(self) -> None:
        """Undo every placement in reverse order, and restart with the same seed."""
        self._tx.undo()
        self._engine.restart(self._seed)


def _all_refused(pods: Sequence[Pod], why: str) -> GroupPlacementResult:
    members = {pod.metadata.uid: PlacementResult(message=why) for pod in pods}
    return GroupPlacementResult(members, why)


def _no_nodes() -> PlacementResult:
    return PlacementResult(message=NO_NODES_AVAILABLE)


def in_order(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods in queue order: priority, then age."""
    return sorted(
        pods,
        key=lambda pod: (
            -(pod.spec.priority or 0),
            pod.metadata.creation_timestamp or "",
            pod.metadata.namespace,
            pod.metadata.name,
        ),
    )
