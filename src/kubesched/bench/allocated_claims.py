"""Claims that have devices before the measurement begins, without a scheduler.

    nodes, slices, classes, claims ──read──> Cluster ──> a node at random, its devices ──> status

As in scheduler_perf, that is faster than scheduling a pod for each of them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import msgspec

from kubesched.api.core import Node, Pod, PodResourceClaim, PodSpec
from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import AllocationResult, ResourceClaim
from kubesched.bench.api_objects import BenchObjects, each_of
from kubesched.bench.creation import Done
from kubesched.bench.processes import StartError
from kubesched.client.resources import NODES, RESOURCE_CLAIMS
from kubesched.cluster.cluster import Cluster
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.kinds import KINDS
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.pod_devices import PodDevices
from kubesched.scheduler.dry_run import DryRun

_KINDS = ("DeviceClass", "ResourceSlice", "DeviceTaintRule")
#: The same nodes for each scheduler that is measured.
_SEED = 1


async def allocate_claims(
    objects: BenchObjects, namespace: str, gates: Mapping[str, bool], done: Done
) -> None:
    """Give each claim of a namespace devices; raises StartError if there are not enough."""
    known = FeatureGates.of(gates)
    cluster = Cluster()
    for each in (await objects.read(NODES.collection()))["items"]:
        cluster.put_node(msgspec.convert(each, Node))
    for name in _KINDS:
        kind = KINDS[name]
        if kind.store is not None:
            for each in (await objects.read(kind.path.collection()))["items"]:
                kind.store(cluster).put(msgspec.convert(each, kind.type))
    for each in (await objects.read(RESOURCE_CLAIMS.collection()))["items"]:
        cluster.devices.claims.put(msgspec.convert(each, ResourceClaim))
    config = SchedulerConfiguration.default(known)
    (framework,) = DryRun(cluster, config, known).frameworks.values()
    rng = random.Random(_SEED)  # noqa: S311 (spreads claims, hides nothing)
    found = {
        claim.metadata.name: _devices_for(framework, cluster, claim, rng)
        for claim in cluster.devices.claims
        if claim.metadata.namespace == namespace and claim.status.allocation is None
    }

    async def write(name: str) -> None:
        path = RESOURCE_CLAIMS.item(name, namespace=namespace)
        await objects.patch_status(path, {"allocation": msgspec.to_builtins(found[name])})

    await each_of(found, write, done=done)


def _devices_for(
    framework: Framework, cluster: Cluster, claim: ResourceClaim, rng: random.Random
) -> AllocationResult:
    """Choose devices for a claim on a node; they count as taken from then on."""
    name = claim.metadata.name
    reference = PodResourceClaim(name="claim", resource_claim_name=name)
    meta = ObjectMeta(name=name, namespace=claim.metadata.namespace, uid=f"pod-of-{name}")
    pod = cluster.compiler.pending(Pod(metadata=meta, spec=PodSpec(resource_claims=(reference,))))
    state = CycleState()
    feasible = framework.evaluator.filter(state, pod)
    if isinstance(feasible, Diagnosis):
        raise StartError(f"claim {name} cannot be allocated: {feasible.message()}")
    node_name = cluster.table.name_at(int(rng.choice(feasible.rows())))
    status = framework.reserve(state, pod, node_name)
    devices = state.get(DynamicResources.name)
    if not status.ok or not isinstance(devices, PodDevices):
        raise StartError(f"claim {name} cannot be allocated: {status.message}")
    return devices.decided[0]
