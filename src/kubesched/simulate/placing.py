"""Placing pods in a world, one after the other, as the scheduler would; and taking all of it back.

Nothing is bound: a pod counts on its node as an assumed pod does between decision and binding.
Nobody is preempted.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.snapshot.world import World


class Outcome(Struct, frozen=True):
    """What became of one pod."""

    #: "" if it found none
    node: str = ""
    message: str = ""


class Placer:
    """Places pods; the same seed gives the same placements."""

    def __init__(self, world: World, *, seed: int = 0) -> None:
        self._world = world
        self._cluster = world.cluster
        self._engine = world.engine
        self._seed = seed
        self._engine.restart(seed)
        self._tx = self._cluster.transaction()

    def place(self, pod: Pod) -> Outcome:
        """Find a node for a pod, which must have none, and count it there."""
        try:
            info = self._world.compile(pod)
        except ObjectError as unreadable:
            return Outcome(message=str(unreadable))
        framework = self._engine.framework_of(pod.spec.scheduler_name)
        gate = framework.gate(info)
        if not gate.ok:
            return Outcome(message=gate.message)
        state = CycleState()
        try:
            found = self._choose(framework, state, info)
        except AttemptError as failed:
            return Outcome(message=failed.status.message)
        if isinstance(found, Diagnosis):
            return Outcome(message=found.message())
        return self._put(framework, state, info, found) if found else _no_nodes()

    def _choose(self, framework: Framework, state: CycleState, info: PodInfo) -> str | Diagnosis:
        """Choose a node as the scheduling cycle does.

        But among equally good ones by the order of rows, not of nodes: the latter has to be found
        anew after each change of nodes, and all that matters here is that it stays the same.
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
    ) -> Outcome:
        with self._tx.part() as attempt:
            attempt.withdraw(info)
            attempt.place(info, node_name)
            attempt.on_undo(lambda: framework.unreserve(state, info, node_name))
            status = framework.reserve(state, info, node_name)
            if not status.ok:
                return Outcome(message=status.message)
            attempt.keep()
        return Outcome(node=node_name)

    def take_all_back(self) -> None:
        """Undo every placement, the last one first, and start anew with the same seed."""
        self._tx.undo()
        self._engine.restart(self._seed)


def _no_nodes() -> Outcome:
    return Outcome(message=NO_NODES_AVAILABLE)


def in_order(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods in the order in which the queue would give them: priority, then age."""
    return sorted(
        pods,
        key=lambda pod: (
            -(pod.spec.priority or 0),
            pod.metadata.creation_timestamp or "",
            pod.metadata.namespace,
            pod.metadata.name,
        ),
    )
