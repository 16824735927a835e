"""The demo's devices, the pods that claim them, and two gangs.

A few nodes have eight GPUs each, published by a pretended driver: six of 40 GiB, two of 80. Pods
of ``inference`` claim one of 80 GiB, and there is one pod more than such GPUs. Two gangs share the
processors of these nodes: ``finetune`` comes first and fits, ``pretrain`` is two pods too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubesched.cli.demo_pod import pod
from kubesched.embedded.drivers import SimulatedDriver
from kubesched.embedded.nodes import NodeTemplate

JsonObject = dict[str, Any]

DRIVER: Final = "gpu.example.com"
POOL: Final = "accelerated"
TEMPLATE: Final = "large-gpu"
#: With fewer nodes or pods, there are neither devices nor gangs.
_FEW_NODES: Final = 8
FEW_PODS: Final = 200
_TOLERATIONS: Final = [{"key": DRIVER, "operator": "Exists", "effect": "NoSchedule"}]
_SMALL, _LARGE = ("a40", "40Gi", 6), ("h80", "80Gi", 2)
#: As many members of gangs fit on a node.
_SLOTS: Final = 3
_MEMBER_CPU: Final = "20"


def node_count(nodes: int) -> int:
    """Return how many of the demo's nodes have devices."""
    return 0 if nodes < _FEW_NODES else max(nodes // 75, 1)


def node_template(zones: Sequence[str]) -> NodeTemplate:
    """Return the nodes that have devices."""
    taint = {"key": DRIVER, "value": "present", "effect": "NoSchedule"}
    labels = {"pool": POOL}
    return NodeTemplate(cpu="64", memory="512Gi", zones=zones, labels=labels, taints=[taint])


def driver() -> SimulatedDriver:
    """Return the driver of the devices."""
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"model": {"string": model}},
            "capacity": {"memory": {"value": memory}},
        }
        for number, (model, memory) in enumerate(
            (model, memory) for model, memory, count in (_SMALL, _LARGE) for _ in range(count)
        )
    ]
    return SimulatedDriver(DRIVER, {"pool": POOL}, devices)


def objects(nodes: int) -> list[JsonObject]:
    """Return the class of devices, the template of claims, and the groups."""
    if not node_count(nodes):
        return []
    large = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0'
    exactly = {"deviceClassName": DRIVER, "selectors": [{"cel": {"expression": large}}]}
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    ours = f'device.driver == "{DRIVER}"'
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": DRIVER},
            "spec": {"selectors": [{"cel": {"expression": ours}}]},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": TEMPLATE},
            "spec": {"spec": claim},
        },
        *(_group(name, size) for name, size in _gangs(nodes).items()),
    ]


def pods(count: int, nodes: int) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the pods that come before all others, and those that come after them."""
    accelerated = node_count(nodes)
    if not accelerated or count < FEW_PODS:
        return [], []
    first, last = ([_member(name, n) for n in range(size)] for name, size in _gangs(nodes).items())
    return first, [*last, *(_inference(n) for n in range(accelerated * _LARGE[2] + 1))]


def _gangs(nodes: int) -> dict[str, int]:
    """Return the gangs by name, each with its size."""
    accelerated = node_count(nodes)
    left = accelerated * (_SLOTS - 1)
    return {"finetune": accelerated, "pretrain": left + 2}


def _group(name: str, size: int) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }


def _member(group: str, number: int) -> JsonObject:
    return pod(
        group,
        number,
        cpu=_MEMBER_CPU,
        memory="64Gi",
        nodeSelector={"pool": POOL},
        tolerations=_TOLERATIONS,
        schedulingGroup={"podGroupName": group},
    )


def _inference(number: int) -> JsonObject:
    """A pod that claims one large GPU."""
    return pod(
        "inference",
        number,
        cpu="500m",
        memory="2Gi",
        claims=["gpu"],
        tolerations=_TOLERATIONS,
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": TEMPLATE}],
    )
