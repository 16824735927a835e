"""Random nodes, profiles and pods that ask for everything that plugins look at; by seed."""

from __future__ import annotations

import random
from typing import Any, Final

from tests.integration.scheduler_process import profile

Json = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
GPU: Final = "example.com/gpu"
APPS: Final = tuple(f"app-{number}" for number in range(6))
IMAGES: Final = tuple(f"registry.example.com/{name}:1" for name in ("web", "db", "cache"))
TAINTS: Final = (
    {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
    {"key": "drain", "effect": "NoExecute"},
    {"key": "spot", "value": "true", "effect": "PreferNoSchedule"},
    {"key": "old", "effect": "PreferNoSchedule"},
)
TOLERATIONS: Final = (
    {"key": "dedicated", "operator": "Exists"},
    {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
    {"key": "spot", "operator": "Equal", "value": "true"},
    {"operator": "Exists", "effect": "NoExecute"},
)


class DrawnPods:
    """Draws what a comparison is made of."""

    def __init__(self, rng: random.Random, *, most_nodes: int = 30) -> None:
        self._rng = rng
        self._most_nodes = most_nodes
        self._made = 0

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    # --- nodes ------------------------------------------------------------------------------

    def nodes(self) -> list[Json]:
        """Return nodes of several sizes."""
        found = [self._node(number) for number in range(self._rng.randint(4, self._most_nodes))]
        # Of an image that several nodes have, kube-scheduler counts those that it knew when a node
        # changed last (docs/differences.md): so each is on one node.
        for name in IMAGES:
            image = {"names": [name], "sizeBytes": self._rng.randint(200, 3000) << 20}
            self._rng.choice(found)["status"]["images"].append(image)
        return found

    def _node(self, number: int) -> Json:
        rng, name = self._rng, f"node-{number:02d}"
        labels = {HOSTNAME: name, "disk": rng.choice(["ssd", "hdd"]), "gen": str(rng.randint(1, 9))}
        if self._chance(0.9):
            labels[ZONE] = f"zone-{rng.randrange(3)}"
        size = rng.choice([2, 4, 8, 16])
        room = {"cpu": str(size), "memory": f"{rng.choice([2, 4]) * size}Gi"}
        room["pods"] = rng.choice(["5", "40", "110"])
        if self._chance(0.3):
            room[GPU] = str(rng.randint(1, 8))
        if self._chance(0.5):
            room["ephemeral-storage"] = f"{rng.randint(10, 200)}Gi"
        spec: Json = {"taints": [each for each in TAINTS if self._chance(0.12)]}
        if self._chance(0.06):
            spec["unschedulable"] = True
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"allocatable": room, "capacity": room, "images": []},
        }

    # --- profiles ---------------------------------------------------------------------------

    def profile(self) -> Json:
        """Return the default profile, often with other arguments, weights or plugins."""
        rng = self._rng
        args: dict[str, Json] = {}
        if self._chance(0.5):
            args["NodeResourcesFit"] = {"scoringStrategy": self._strategy()}
        if self._chance(0.3):
            resources = [{"name": name, "weight": 1} for name in ("cpu", "memory", GPU)]
            args["NodeResourcesBalancedAllocation"] = {"resources": resources}
        if self._chance(0.3):
            weight = rng.randint(0, 100)
            args["InterPodAffinity"] = {
                "hardPodAffinityWeight": weight,
                "ignorePreferredTermsOfExistingPods": self._chance(0.5),
            }
        if self._chance(0.3):
            constraint = {
                "maxSkew": rng.randint(1, 3),
                "topologyKey": rng.choice([ZONE, HOSTNAME]),
                "whenUnsatisfiable": "ScheduleAnyway",
            }
            args["PodTopologySpread"] = {
                "defaultConstraints": [constraint],
                "defaultingType": "List",
            }
        if self._chance(0.2):
            term = {"matchExpressions": [self._requirement()]}
            preferred = [{"weight": rng.randint(1, 100), "preference": term}]
            args["NodeAffinity"] = {
                "addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
            }
        plugins: Json = {}
        if self._chance(0.3):
            name = rng.choice(["NodeResourcesFit", "TaintToleration", "PodTopologySpread"])
            plugins["score"] = {
                "disabled": [{"name": name}],
                "enabled": [{"name": name, "weight": rng.randint(1, 9)}],
            }
        return profile(plugins=plugins, args=args)

    def _strategy(self) -> Json:
        rng = self._rng
        kind = rng.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
        names = rng.sample(["cpu", "memory", GPU, "ephemeral-storage"], rng.randint(1, 4))
        strategy: Json = {
            "type": kind,
            "resources": [{"name": name, "weight": rng.randint(1, 5)} for name in names],
        }
        if kind == "RequestedToCapacityRatio":
            points = sorted(rng.sample(range(101), 3))
            shape = [{"utilization": each, "score": rng.randint(0, 10)} for each in points]
            strategy["requestedToCapacityRatio"] = {"shape": shape}
        return strategy

    # --- pods -------------------------------------------------------------------------------

    def pod(self) -> Json:
        """Return a pod with a random selection of wishes."""
        rng = self._rng
        self._made += 1
        app = rng.choice(APPS)
        spec: Json = {
            "containers": [self._container("c")],
            "terminationGracePeriodSeconds": 0,
        }
        if self._chance(0.15):
            spec["initContainers"] = [self._container("i")]
        if self._chance(0.1):
            spec["containers"].append(self._container("d"))
        if self._chance(0.08):
            port = {"containerPort": 80, "hostPort": rng.choice([80, 443])}
            spec["containers"][0]["ports"] = [port]
        if self._chance(0.4):
            spec["tolerations"] = rng.sample(TOLERATIONS, rng.randint(1, 2))
        if self._chance(0.12):
            spec["nodeSelector"] = {"disk": rng.choice(["ssd", "hdd", "hdd", "tape"])}
        if self._chance(0.4):
            spec["topologySpreadConstraints"] = self._spread(app)
        if affinity := self._affinity():
            spec["affinity"] = affinity
        labels = {"app": app, "version": rng.choice(["1", "2"])}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{self._made:04d}", "labels": labels},
            "spec": spec,
        }

    def _container(self, name: str) -> Json:
        rng = self._rng
        requests: dict[str, str] = {}
        if self._chance(0.9):
            requests["cpu"] = rng.choice(["50m", "100m", "333m", "500m", "1", "2500m"])
        if self._chance(0.85):
            requests["memory"] = rng.choice(["64Mi", "200M", "1Gi", "3Gi"])
        if self._chance(0.1):
            requests["ephemeral-storage"] = "5Gi"
        limits = {}
        if self._chance(0.08):
            requests[GPU] = limits[GPU] = str(rng.randint(1, 3))
        resources = {"requests": requests, "limits": limits}
        return {"name": name, "image": rng.choice(IMAGES), "resources": resources}

    def _spread(self, app: str) -> list[Json]:
        rng, found = self._rng, []
        for key in rng.sample([ZONE, HOSTNAME], rng.choice([1, 1, 2])):
            hard = self._chance(0.5)
            each: Json = {
                "maxSkew": rng.choice([1, 2, 5]),
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": app}},
            }
            if hard and self._chance(0.2):
                each["minDomains"] = rng.randint(1, 4)
            if self._chance(0.2):
                each["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore"])
            if self._chance(0.2):
                each["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore"])
            if self._chance(0.2):
                each["matchLabelKeys"] = ["version"]
            found.append(each)
        return found

    def _requirement(self) -> Json:
        rng = self._rng
        match rng.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]):
            case "Gt" | "Lt" as operator:
                return {"key": "gen", "operator": operator, "values": [str(rng.randint(1, 9))]}
            case "In" | "NotIn" as operator:
                return {"key": "disk", "operator": operator, "values": [rng.choice(["ssd", "hdd"])]}
            case operator:
                return {"key": rng.choice(["disk", ZONE, "rack"]), "operator": operator}

    def _affinity(self) -> Json:
        rng = self._rng
        affinity: Json = {}
        to_nodes: Json = {}
        if self._chance(0.1):
            terms = [{"matchExpressions": [self._requirement()]} for _ in range(rng.randint(1, 2))]
            to_nodes["requiredDuringSchedulingIgnoredDuringExecution"] = {
                "nodeSelectorTerms": terms
            }
        if self._chance(0.2):
            term = {"matchExpressions": [self._requirement()]}
            to_nodes["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.randint(1, 100), "preference": term}
            ]
        if to_nodes:
            affinity["nodeAffinity"] = to_nodes
        for kind in ("podAffinity", "podAntiAffinity"):
            to_pods: Json = {}
            if self._chance(0.08):
                to_pods["requiredDuringSchedulingIgnoredDuringExecution"] = [self._term()]
            if self._chance(0.2):
                to_pods["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": rng.randint(1, 100), "podAffinityTerm": self._term()}
                ]
            if to_pods:
                affinity[kind] = to_pods
        return affinity

    def _term(self) -> Json:
        rng = self._rng
        term: Json = {
            "topologyKey": rng.choice([ZONE, HOSTNAME]),
            "labelSelector": {"matchLabels": {"app": rng.choice(APPS)}},
        }
        if self._chance(0.2):
            term["namespaceSelector"] = {}
        if self._chance(0.15):
            term["matchLabelKeys"] = ["version"]
        return term
