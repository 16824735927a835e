"""Replicas of a pod that is not there yet: how many fit, where, and which pods they would preempt.

    manifest ──> pod template, number ──> one by one: placed · placed after preemption · left
                                          └── all undone at the end

Replicas are equal, so the first one that fits nowhere, and for which no preemption helps, is the
last one to be tried.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from msgspec.structs import replace

from kubesched.api.claim_templates import without_own_claims
from kubesched.api.core import Pod
from kubesched.cluster.node_order import zone_name
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.transaction import Transaction
from kubesched.config import untrusted_yaml
from kubesched.errors import ObjectError
from kubesched.explain.report import Victim
from kubesched.simulate.placing import PlacementResult, SequentialPlacer
from kubesched.snapshot.world import World
from kubesched.web.report import WorkloadTrial

MOST_REPLICAS: Final = 10_000

GROUP_LEFT_OFF: Final = "each replica is tried by itself: the pod group that it names is left out"
_PER_NODE: Final = "a DaemonSet has one pod for each node, not a number of replicas"


def replicas_in(manifest: str) -> int:
    """Return how many pods the first workload of a manifest asks for; 1 if it does not say.

    Raises ObjectError if it is a DaemonSet. The manifest must be YAML.
    """
    for document in untrusted_yaml.load_all(manifest):
        spec = _map(_map(document).get("spec"))
        if "template" not in spec and "jobTemplate" not in spec:
            continue
        if _map(document).get("kind") == "DaemonSet":
            raise ObjectError(_PER_NODE)
        spec = _map(_map(spec.get("jobTemplate")).get("spec")) or spec
        at_once = spec.get("replicas", spec.get("parallelism", 1))
        numbers = [each for each in (at_once, spec.get("completions")) if isinstance(each, int)]
        return max(min(numbers, default=1), 0)
    return 1


def _map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def try_replicas(world: World, pod: Pod, replicas: int, *, seed: int = 0) -> WorkloadTrial:
    """Place replicas one by one, with preemption where they do not fit; undo it all."""
    by_node: Counter[str] = Counter()
    victims: list[Victim] = []
    preempting = 0
    message = ""
    placer = SequentialPlacer(world, seed=seed)
    with world.cluster.transaction() as evictions:
        try:
            for number in range(replicas):
                replica = _replica(pod, number)
                placed = placer.place(replica)
                if not placed.node:
                    message = placed.message
                    evicted = _preempt(world, replica, evictions)
                    placed = placer.place(replica) if evicted else PlacementResult()
                    if not placed.node:
                        break
                    victims += (Victim(each.full_name, each.priority) for each in evicted)
                    preempting += 1
                by_node[placed.node] += 1
        finally:
            placer.take_all_back()
    fit = by_node.total()
    return WorkloadTrial(
        pod=f"{pod.metadata.namespace}/{pod.metadata.name}",
        replicas=replicas,
        placed=fit,
        preempting=preempting,
        by_node=dict(by_node.most_common()),
        by_zone=_by_zone(world, by_node),
        victims=tuple(victims),
        message=message if fit < replicas or preempting else "",
        notes=(GROUP_LEFT_OFF,) if pod.spec.scheduling_group is not None else (),
    )


def _replica(pod: Pod, number: int) -> Pod:
    """Return one of several equal pods, in no group, with claims still to be made."""
    name = f"{pod.metadata.name}-{number}"
    copy = replace(
        pod,
        metadata=replace(pod.metadata, name=name, uid=f"replica/{pod.metadata.uid}/{number}"),
        spec=replace(pod.spec, node_name="", scheduling_group=None),
    )
    return without_own_claims(copy)


def _preempt(world: World, pod: Pod, evictions: Transaction) -> tuple[PodInfo, ...]:
    """Remove the pods that a pod would preempt, until the transaction ends; return them."""
    engine = world.engine
    framework = engine.framework_of(pod.spec.scheduler_name)
    with world.cluster.transaction() as tx:
        try:
            info = world.compile(world.created(pod, tx))
        except ObjectError:
            return ()
        if not framework.gate(info).ok:
            return ()
        _, victims = engine.decide(framework, info)
    for victim in victims:
        evictions.remove(victim.uid)
    return victims


def _by_zone(world: World, by_node: Counter[str]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for node_name, count in by_node.items():
        row = world.table.row_of(node_name)
        if row is not None:
            found[zone_name(world.table.node_at(row))] += count
    return dict(sorted(found.items()))
