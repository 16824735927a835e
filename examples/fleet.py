"""A realistic cluster to try commands on: 50 nodes, three zones, four pools, a dozen workloads.

    python examples/fleet.py fleet.gz
    kubesched simulate drain general-a-3 --snapshot fleet.gz

    nodes, devices (below) ──┐
    workloads (fleet.yaml) ──┴──> placed by the scheduler itself ──> a snapshot file

The same file each time. Some pods of fleet.yaml wait for good, each for another reason.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.resource import ResourceSlice
from kubesched.api.workloads import ReplicaSet
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.kinds import stores
from kubesched.simulate.playing import Conditions, Played, play
from kubesched.simulate.spreading import TEMPLATE_HASH
from kubesched.simulate.timed_events import Arrival
from kubesched.simulate.wanted_pods import wanted_pods
from kubesched.snapshot import files, manifests
from kubesched.snapshot.contents import Snapshot

WORKLOADS: Final = Path(__file__).with_name("fleet.yaml")
TAKEN_AT: Final = "2026-11-02T09:30:00+00:00"
CREATED: Final = "2026-11-01T08:00:00Z"
GPU_DRIVER: Final = "gpu.example.com"
GPUS: Final = 4

#: Pool → zones, nodes in each zone, cpu, memory in GiB, instance type, architecture, taint.
POOLS: Final[dict[str, tuple[str, int, str, int, str, str, str]]] = {
    "general": ("abc", 8, "7910m", 30, "m6i.2xlarge", "amd64", ""),
    "memory": ("abc", 3, "7910m", 61, "r6i.2xlarge", "amd64", "dedicated=data"),
    "arm": ("abc", 3, "7910m", 14, "c7g.2xlarge", "arm64", "arch=arm64"),
    "gpu": ("ab", 4, "47810m", 180, "g6.12xlarge", "amd64", "gpu=present"),
}
#: Nodes that an operator has cordoned, or that do not answer.
CORDONED: Final = ("general-b-8",)
UNREACHABLE: Final = ("arm-c-3",)
#: Pods of DaemonSets are on their nodes before others come; the largest, which wait, come last.
BEFORE_OTHERS: Final = "DaemonSet"


def fleet() -> Snapshot:
    """Return the cluster, with pods where the scheduler puts them."""
    snapshot = Snapshot(source="examples/fleet.py")
    for node in nodes():
        snapshot.add("Node", node)
    for each in slices():
        snapshot.add("ResourceSlice", each)
    objects = manifests.objects_in([WORKLOADS])
    for _, tree in objects:
        if tree["kind"] == "PodDisruptionBudget":
            snapshot.add(tree["kind"], msgspec.convert(tree, PodDisruptionBudget))
    wanted = wanted_pods(snapshot, objects, namespace="default")
    wanted.sort(key=lambda each: each.kind != BEFORE_OTHERS)
    pods = [_named(pod) for each in wanted for pod in each.pods]
    snapshot.objects["ReplicaSet"] = [_renamed(each) for each in snapshot.objects["ReplicaSet"]]
    gates = FeatureGates.of({})
    config = SchedulerConfiguration.default(gates)
    arrivals = [Arrival(float(number), pod) for number, pod in enumerate(pods)]
    return _snapshot(snapshot, play(Conditions(snapshot, config, gates), arrivals))


def _snapshot(before: Snapshot, played: Played) -> Snapshot:
    """Return a snapshot of what a simulated cluster holds."""
    found = Snapshot(source=before.source, objects=dict(before.objects))
    for kind, store in stores(played.cluster):
        found.objects[kind.name] = list(store)
    found.objects["Pod"] = list(played.pods)
    return found


# --- nodes ----------------------------------------------------------------------------------------


def nodes() -> Iterator[Node]:
    """Yield all nodes."""
    for pool, (zones, count, cpu, memory, instance, arch, taint) in POOLS.items():
        for zone in zones:
            for number in range(1, count + 1):
                name = f"{pool}-{zone}-{number}"
                tree: dict[str, Any] = {
                    "metadata": {
                        "name": name,
                        "uid": name,
                        "creationTimestamp": CREATED,
                        "labels": {
                            "kubernetes.io/hostname": name,
                            "kubernetes.io/os": "linux",
                            "kubernetes.io/arch": arch,
                            "node.kubernetes.io/instance-type": instance,
                            "node.kubernetes.io/pool": pool,
                            "topology.kubernetes.io/region": "eu-west-1",
                            "topology.kubernetes.io/zone": f"eu-west-1{zone}",
                        },
                    },
                    "spec": {"taints": list(_taints(name, taint))},
                    "status": {
                        "allocatable": {"cpu": cpu, "memory": f"{memory}Gi", "pods": "58"},
                        "conditions": [{"type": "Ready", "status": _ready(name)}],
                    },
                }
                if name in CORDONED:
                    tree["spec"]["unschedulable"] = True
                yield msgspec.convert(tree, Node)


def _ready(name: str) -> str:
    return "Unknown" if name in UNREACHABLE else "True"


def _taints(name: str, taint: str) -> Iterator[dict[str, str]]:
    key, _, value = taint.partition("=")
    if key:
        yield {"key": key, "value": value, "effect": "NoSchedule"}
    if name in CORDONED:
        yield {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if name in UNREACHABLE:
        yield {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
        yield {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def slices() -> Iterator[ResourceSlice]:
    """Yield the GPUs of the gpu pool, as their driver publishes them."""
    for node in (each.metadata.name for each in nodes() if each.metadata.name.startswith("gpu-")):
        device = {
            "attributes": {"model": {"string": "L4"}, "driverVersion": {"version": "570.86.15"}},
            "capacity": {"memory": {"value": "24Gi"}},
        }
        tree = {
            "metadata": {"name": f"{node}-{GPU_DRIVER}", "uid": f"{node}-slice"},
            "spec": {
                "driver": GPU_DRIVER,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"gpu-{number}", **device} for number in range(GPUS)],
            },
        }
        yield msgspec.convert(tree, ResourceSlice)


# --- names as controllers give them -----------------------------------------------------------


def _named(pod: Pod) -> Pod:
    """Return a pod of a Deployment with the name and hash that its controllers would choose."""
    meta = replace(pod.metadata, creation_timestamp=CREATED)
    owner = meta.owner_references[0] if meta.owner_references else None
    if owner is not None and TEMPLATE_HASH in (meta.labels or {}):
        hashed = _hash(meta.namespace, owner.name, 9)
        name = owner.name.removesuffix("-new") + f"-{hashed}"
        meta = replace(
            meta,
            name=f"{name}-{_hash(name, meta.name, 5)}",
            labels={**(meta.labels or {}), TEMPLATE_HASH: hashed},
            owner_references=(replace(owner, name=name),),
        )
    elif owner is not None and owner.kind == "Job":
        meta = replace(meta, name=f"{owner.name}-{_hash(owner.name, meta.name, 5)}")
    return replace(pod, metadata=replace(meta, uid=f"{meta.namespace}/{meta.name}"))


def _renamed(found: ReplicaSet) -> ReplicaSet:
    """Return a ReplicaSet with the name and hash of its pods."""
    meta = found.metadata
    hashed = _hash(meta.namespace, meta.name, 9)
    labels = {**(meta.labels or {}), TEMPLATE_HASH: hashed}
    name = meta.name.removesuffix("-new") + f"-{hashed}"
    selector = found.spec.selector
    if selector is not None:
        selector = replace(selector, match_labels=labels)
    meta = replace(meta, name=name, uid=name, labels=labels)
    return replace(found, metadata=meta, spec=replace(found.spec, selector=selector))


def _hash(first: str, second: str, length: int) -> str:
    digest = sha256(f"{first}/{second}".encode()).digest()
    return "".join("bcdfghjklmnpqrstvwxz2456789"[byte % 27] for byte in digest[:length])


def main() -> int:
    """Write the cluster to the file that is named."""
    if len(sys.argv) != 2:
        print("usage: python examples/fleet.py FILE", file=sys.stderr)
        return 2
    found = fleet()
    files.write(found, Path(sys.argv[1]), taken_at=TAKEN_AT)
    waiting = sum(not pod.spec.node_name for pod in found.pods)
    print(f"{sys.argv[1]}: {len(found.nodes)} nodes, {len(found.pods)} pods, {waiting} wait")
    return 0


if __name__ == "__main__":
    sys.exit(main())
