"""Do these pods fit? Creates them in a simulated cluster and reports what becomes of them.

    snapshot, WantedPods ──> play: pending pods settle first, then these arrive ──> Applied

The engine decides as the scheduler would, preemption, claims and groups included. Victims are
recreated, as their owners would, and placed again if they fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.api.scheduling import PriorityClass
from kubesched.explain.groups import GATE_OFF
from kubesched.simulate.places import places_of
from kubesched.simulate.playing import Conditions, Played, play
from kubesched.simulate.report import Applied, AppliedWorkload, Left, PreemptedPod
from kubesched.simulate.simulated_cluster import SimulatedCluster
from kubesched.simulate.spreading import workload_of
from kubesched.simulate.timed_events import Arrival, TimedEvent
from kubesched.simulate.wanted_pods import WantedPods
from kubesched.snapshot.world import World

#: When pods are created: those that wait already have been tried by then, and have backed off.
APPLIED_AT_S = 60.0
#: Between pods that are created one after the other: enough for a preemption and a retry.
TURN_S = 60.0
GATED = "Scheduling is blocked due to non-empty scheduling gates"


class NextInTurn(Struct, frozen=True):
    """A pod that is created if the one before it has a node."""

    at_s: float
    pod: Pod
    before: Pod

    def happen(self, stage: SimulatedCluster) -> None:
        """Create the pod, or not."""
        meta = self.before.metadata
        before = stage.find_pod(meta.namespace, meta.name)
        if before is not None and before.spec.node_name:
            stage.create(self.pod)


def conditions_of(world: World, classes: Iterable[PriorityClass] = ()) -> Conditions:
    """Return the conditions of a simulation that begins with the state of a world."""
    engine = world.engine
    return Conditions(
        snapshot=world.snapshot(classes),
        config=engine.config,
        gates=engine.gates,
        registry=engine.registry,
    )


def apply(conditions: Conditions, wanted: Sequence[WantedPods]) -> Applied:
    """Create the pods that workloads lack, and report whether and where they fit."""
    return report(conditions, wanted, create(conditions, wanted))


def create(conditions: Conditions, wanted: Sequence[WantedPods]) -> Played:
    """Create the pods that workloads lack, and let the scheduler place them."""
    return play(conditions, [each for workload in wanted for each in _arrivals(workload)])


def report(conditions: Conditions, wanted: Sequence[WantedPods], found: Played) -> Applied:
    """Report whether and where pods fit that were created."""
    nodes = {each.metadata.name: each for each in conditions.snapshot.nodes}
    by_name = {_name(pod): pod for pod in found.pods}
    placements = {
        _name(pod): node
        for workload in wanted
        for pod in workload.pods
        if (node := _node(by_name, pod))
    }
    return Applied(
        fits=len(placements) == sum(len(each.pods) for each in wanted),
        pods=sum(len(each.pods) for each in wanted),
        placed=len(placements),
        workloads=tuple(_summary(each, placements) for each in wanted),
        places=places_of(placements.values(), nodes),
        placements=placements,
        preempted=_preempted(conditions, wanted, found, by_name),
        left=tuple(_left(wanted, found, placements)),
        notes=(*found.notes, *_notes(conditions, wanted)),
    )


def _arrivals(workload: WantedPods) -> Iterator[TimedEvent]:
    before: Pod | None = None
    for number, pod in enumerate(workload.pods):
        if workload.in_turn and before is not None:
            yield NextInTurn(APPLIED_AT_S + number * TURN_S, pod, before)
        else:
            yield Arrival(APPLIED_AT_S, pod)
        before = pod


def _summary(workload: WantedPods, placements: Mapping[str, str]) -> AppliedWorkload:
    return AppliedWorkload(
        kind=workload.kind,
        namespace=workload.namespace,
        name=workload.name,
        asked=workload.asked,
        existing=workload.existing,
        more=len(workload.pods),
        placed=sum(_name(pod) in placements for pod in workload.pods),
    )


def _preempted(
    conditions: Conditions,
    wanted: Sequence[WantedPods],
    found: Played,
    by_name: Mapping[str, Pod],
) -> tuple[PreemptedPod, ...]:
    """Return the victims since the pods were created, those of victims included."""
    known = {_name(pod): pod for pod in conditions.snapshot.pods}
    known |= {_name(pod): pod for workload in wanted for pod in workload.pods}
    seen: dict[str, PreemptedPod] = {}
    for each in found.observations.preemptions:
        for name in each.victims if each.at_s >= APPLIED_AT_S else ():
            pod = known.get(name)
            # One that comes again may have to go again.
            if pod is not None and name not in seen:
                seen[name] = PreemptedPod(
                    pod=name,
                    priority=pod.spec.priority or 0,
                    node=each.node,
                    preemptor=each.preemptor,
                    workload=workload_of(pod),
                    budget=each.violated.get(name, ""),
                    now=_node(by_name, pod),
                )
    return tuple(seen.values())


def _left(
    wanted: Sequence[WantedPods], found: Played, placements: Mapping[str, str]
) -> Iterator[Left]:
    """Yield the pods that found no node, or were not created."""
    waiting = found.observations.waiting(pod for pod in found.pods if not pod.spec.node_name)
    messages = {each.pod: each.message for each in waiting}
    for workload in wanted:
        before = ""
        for pod in workload.pods:
            name = _name(pod)
            if name not in placements:
                message = messages.get(name)
                if message is None:
                    message = f"not created: {before} has to run first"
                elif pod.spec.scheduling_gates:
                    message = GATED
                title = f"{workload.namespace}/{workload.name}"
                yield Left(name, pod.spec.priority or 0, message, title)
            before = before if before and before not in placements else name


def _notes(conditions: Conditions, wanted: Sequence[WantedPods]) -> Iterator[str]:
    for workload in wanted:
        yield from workload.notes
    in_groups = any(pod.spec.scheduling_group for each in wanted for pod in each.pods)
    if in_groups and not conditions.gates.enabled("GenericWorkload"):
        yield GATE_OFF


def _node(by_name: Mapping[str, Pod], pod: Pod) -> str:
    found = by_name.get(_name(pod))
    return "" if found is None else found.spec.node_name


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
