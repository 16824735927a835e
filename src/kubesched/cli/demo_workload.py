"""The demo's cluster of three kinds of nodes, and its pods of several kinds.

Some pods are unschedulable on purpose, to show the scheduler's messages.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from kubesched.embedded.nodes import NodeTemplate

JsonObject = dict[str, Any]

#: With fewer pods, all are schedulable.
_FEW = 20
ZONES = ("zone-a", "zone-b", "zone-c")
GPU = "nvidia.com/gpu"
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}


def node_templates(count: int) -> list[tuple[int, NodeTemplate]]:
    """Split nodes into general ones, ones with much memory, and a few with GPUs."""
    gpus = max(count // 20, count > 1)
    large = count // 5
    general = count - gpus - large
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
    ]


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


def pods(count: int, *, gpu_slots: int, seed: int) -> Iterator[JsonObject]:
    """Return `count` pods in a mixed order."""
    rng = random.Random(seed)  # noqa: S311 (a workload, not a secret)
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
    made = [make(number) for total, make in kinds for number in range(total)]
    rng.shuffle(made)
    return itertools.islice(made, count)


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
    return _pod("web", number, cpu="250m", memory="512Mi", topologySpreadConstraints=[spread])


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
    return _pod("api", number, cpu="500m", memory="1Gi", affinity=affinity)


def cache(number: int) -> JsonObject:
    """A cache, on nodes with much memory."""
    return _pod("cache", number, cpu="500m", memory="8Gi", nodeSelector={"pool": "memory"})


def training(number: int) -> JsonObject:
    """A training run that needs a GPU; slightly more of them than GPUs."""
    tolerations = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    return _pod(
        "training", number, cpu="2", memory="8Gi", extra={GPU: "1"}, tolerations=tolerations
    )


def batch(number: int) -> JsonObject:
    """A small piece of work, of one of a few sizes."""
    cpu = ("100m", "200m", "400m")[number % 3]
    return _pod("batch", number, cpu=cpu, memory="256Mi")


def misplaced(number: int) -> JsonObject:
    """A pod that requires nodes which do not exist."""
    return _pod("misplaced", number, cpu="100m", memory="128Mi", nodeSelector={"pool": "arm64"})


def oversized(number: int) -> JsonObject:
    """A pod that is larger than any node."""
    return _pod("oversized", number, cpu="64", memory="512Gi")


def gated(number: int) -> JsonObject:
    """A pod with a scheduling gate."""
    gates = [{"name": "example.com/quota"}]
    return _pod("gated", number, cpu="100m", memory="128Mi", schedulingGates=gates)


def _pod(
    app: str,
    number: int,
    *,
    cpu: str,
    memory: str,
    extra: dict[str, str] | None = None,
    **spec: object,
) -> JsonObject:
    amounts = {"cpu": cpu, "memory": memory, **(extra or {})}
    container = {
        "name": "main",
        "image": f"registry.example.com/{app}:1",
        # Extended resources need a limit that equals the request.
        "resources": {"requests": amounts, **({"limits": extra} if extra else {})},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-{number:05d}",
            "namespace": "default",
            "labels": {"app": app},
        },
        "spec": {"containers": [container], **spec},
    }
