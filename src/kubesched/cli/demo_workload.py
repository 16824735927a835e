"""The demo's cluster of four kinds of nodes, and its pods of several kinds.

Some pods are unschedulable on purpose, to show the scheduler's messages. Those that claim devices
or are scheduled as a group are in ``demo_groups``.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kubesched.cli import demo_groups
from kubesched.cli.demo_pod import pod
from kubesched.embedded.nodes import NodeTemplate

JsonObject = dict[str, Any]

#: With fewer pods, all are schedulable.
_FEW = 20
ZONES = ("zone-a", "zone-b", "zone-c")
GPU = "nvidia.com/gpu"
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}


def node_templates(count: int) -> list[tuple[int, NodeTemplate]]:
    """Split nodes into general ones, ones with much memory, and a few with GPUs.

    The GPUs of most are a number that a device plugin reports; those of a few are devices.
    """
    gpus = max(count // 20, count > 1)
    large = count // 5
    accelerated = demo_groups.node_count(count)
    general = count - gpus - large - accelerated
    return [
        (general, NodeTemplate(cpu="16", memory="64Gi", zones=ZONES, labels={"pool": "general"})),
        (large, NodeTemplate(cpu="16", memory="256Gi", zones=ZONES, labels={"pool": "memory"})),
        (
            gpus,
            NodeTemplate(
                cpu="32",
                memory="128Gi",
                zones=ZONES,
                labels={"pool": "gpu"},
                taints=[GPU_TAINT],
                resources={GPU: "4"},
            ),
        ),
        (accelerated, demo_groups.node_template(ZONES)),
    ]


def gpu_slots(templates: Iterable[tuple[int, NodeTemplate]]) -> int:
    """Return how many GPUs device plugins report."""
    return sum(count * int(template.resources.get(GPU, "0")) for count, template in templates)


def services() -> list[JsonObject]:
    """Return the services of the demo's applications; their pods are spread by default."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": app, "namespace": "default"},
            "spec": {"selector": {"app": app}, "ports": [{"port": 80}]},
        }
        for app in ("web", "api")
    ]


def deployments(count: int) -> list[JsonObject]:
    """Return what controllers make pods of: one that fits, and one whose pods match no node."""
    if count < demo_groups.FEW_PODS:
        return []
    fast = {"nodeSelector": {"disk": "nvme"}}
    return [_deployment("frontend", 4), _deployment("reports", 2, **fast)]


def _deployment(app: str, replicas: int, **spec: Any) -> JsonObject:  # noqa: ANN401 (a pod's)
    made = pod(app, 0, cpu="100m", memory="128Mi", **spec)
    labels = made["metadata"]["labels"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": made["spec"]},
        },
    }


def pods(count: int, *, gpu_slots: int, nodes: int, seed: int) -> Iterator[JsonObject]:
    """Return `count` pods in a mixed order, those with devices and of groups among them."""
    rng = random.Random(seed)  # noqa: S311 (a workload, not a secret)
    first, last = demo_groups.pods(count, nodes)
    alone = _alone(count - len(first) - len(last), gpu_slots=gpu_slots)
    rng.shuffle(alone)
    return itertools.islice(itertools.chain(first, alone, last), count)


def _alone(count: int, *, gpu_slots: int) -> list[JsonObject]:
    """Return pods that are scheduled one by one."""
    gpu_pods = gpu_slots + max(gpu_slots // 10, 1)
    kinds: list[tuple[int, Callable[[int], JsonObject]]] = [
        (count * 40 // 100, web),
        (count * 20 // 100, api),
        (count * 8 // 100, cache),
        (min(gpu_pods, count // 10), training),
        (_some(count, one_in=500), misplaced),
        (_some(count, one_in=250), gated),
        (_some(count, one_in=500), oversized),
    ]
    rest = count - sum(number for number, _ in kinds)
    kinds.append((max(rest, 0), batch))
    return [make(number) for total, make in kinds for number in range(total)]


def _some(count: int, *, one_in: int) -> int:
    """Return how many of `count` pods are of a kind; one, unless there are only a few pods."""
    return max(count // one_in, 1 if count >= _FEW else 0)


def web(number: int) -> JsonObject:
    """A replica of a front end, evenly over the zones."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return pod("web", number, cpu="250m", memory="512Mi", topologySpreadConstraints=[spread])


def api(number: int) -> JsonObject:
    """A replica of a back end, rather not two of them on one node."""
    apart = {
        "weight": 100,
        "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": "api"}},
        },
    }
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}}
    return pod("api", number, cpu="500m", memory="1Gi", affinity=affinity)


def cache(number: int) -> JsonObject:
    """A cache, on nodes with much memory."""
    return pod("cache", number, cpu="500m", memory="8Gi", nodeSelector={"pool": "memory"})


def training(number: int) -> JsonObject:
    """A training run that needs a GPU; slightly more of them than GPUs."""
    tolerations = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    return pod("training", number, cpu="2", memory="8Gi", extra={GPU: "1"}, tolerations=tolerations)


def batch(number: int) -> JsonObject:
    """A small piece of work, of one of a few sizes."""
    cpu = ("100m", "200m", "400m")[number % 3]
    return pod("batch", number, cpu=cpu, memory="256Mi")


def misplaced(number: int) -> JsonObject:
    """A pod that requires nodes which do not exist."""
    return pod("misplaced", number, cpu="100m", memory="128Mi", nodeSelector={"pool": "arm64"})


def oversized(number: int) -> JsonObject:
    """A pod that is larger than any node."""
    return pod("oversized", number, cpu="64", memory="512Gi")


def gated(number: int) -> JsonObject:
    """A pod with a scheduling gate."""
    gates = [{"name": "example.com/quota"}]
    return pod("gated", number, cpu="100m", memory="128Mi", schedulingGates=gates)
