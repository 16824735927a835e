"""A random cluster and random pods that ask for everything at once; the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
APPS = [f"app-{number}" for number in range(8)]
TAINTS = [
    {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
    {"key": "spot", "value": "true", "effect": "PreferNoSchedule"},
    {"key": "old", "effect": "PreferNoSchedule"},
]


def random_nodes(rng: random.Random, count: int) -> list[Json]:
    """Return nodes of several sizes in three zones, some tainted, one cordoned."""
    nodes = []
    for number in range(count):
        name = f"node-{number:02d}"
        labels = {HOSTNAME: name, "disk": rng.choice(["ssd", "hdd"])}
        if number % 10 != 9:
            labels[ZONE] = f"zone-{number % 3}"
        size = rng.choice([4, 8, 16])
        amounts = {"cpu": str(size), "memory": f"{4 * size}Gi", "pods": "40"}
        taints = [taint for taint in TAINTS if rng.random() < 0.15]
        nodes.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints, "unschedulable": number == 7},
                "status": {"allocatable": amounts, "capacity": amounts},
            }
        )
    return nodes


def random_pods(rng: random.Random, count: int) -> Iterator[Json]:
    """Return pods of a few applications, each with a random selection of wishes."""
    for number in range(count):
        yield _pod(rng, number)


def _pod(rng: random.Random, number: int) -> Json:
    app = rng.choice(APPS)
    cpu = rng.choice(["50m", "100m", "250m", "500m", "1", "2"])
    memory = rng.choice(["64Mi", "256Mi", "1Gi", "3Gi"])
    requests = {"cpu": cpu, "memory": memory} if rng.random() < 0.9 else {}
    spec: Json = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
        "terminationGracePeriodSeconds": 0,
    }
    if rng.random() < 0.4:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if rng.random() < 0.15:
        spec["nodeSelector"] = {"disk": rng.choice(["ssd", "hdd", "hdd", "tape"])}
    if rng.random() < 0.4:
        spec["topologySpreadConstraints"] = [_spread(rng, app)]
    affinity = _affinity(rng)
    if affinity:
        spec["affinity"] = affinity
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:04d}", "labels": {"app": app}},
        "spec": spec,
    }


def _spread(rng: random.Random, app: str) -> Json:
    return {
        "maxSkew": rng.choice([1, 2, 5]),
        "topologyKey": rng.choice([ZONE, HOSTNAME]),
        "whenUnsatisfiable": rng.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": app}},
    }


def _affinity(rng: random.Random) -> Json:
    affinity: Json = {}
    if rng.random() < 0.2:
        term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
        affinity["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": rng.randint(1, 100), "preference": term}
            ]
        }
    for kind, required in (("podAffinity", 0.08), ("podAntiAffinity", 0.08)):
        terms: Json = {}
        if rng.random() < required:
            terms["requiredDuringSchedulingIgnoredDuringExecution"] = [_term(rng)]
        if rng.random() < 0.2:
            terms["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.randint(1, 100), "podAffinityTerm": _term(rng)}
            ]
        if terms:
            affinity[kind] = terms
    return affinity


def _term(rng: random.Random) -> Json:
    return {
        "topologyKey": rng.choice([ZONE, HOSTNAME]),
        "labelSelector": {"matchLabels": {"app": rng.choice(APPS)}},
    }
