"""Random configurations: every field, mostly right, with a mistake now and then."""

from __future__ import annotations

import random
from typing import Any, Final

from tests.integration.configurations.case import CONNECTION, HEADER

Json = dict[str, Any]
#: Values that are right, and values that are not.
Values = tuple[tuple[object, ...], tuple[object, ...]]

TOP_LEVEL: Final[dict[str, Values]] = {
    "parallelism": ((1, 16, 64), (0, -1, "4", 1.5)),
    "percentageOfNodesToScore": ((0, 30, 100, None), (101, -1, "50")),
    "podInitialBackoffSeconds": ((1, 3), (0, -1, None)),
    "podMaxBackoffSeconds": ((5, 10, 100), (0, -7)),
    "enableProfiling": ((True, False), ("true",)),
    "enableContentionProfiling": ((True, False), (1,)),
    "delayCacheUntilActive": ((True, False), (0,)),
}
ELECTION: Final[dict[str, Values]] = {
    "leaderElect": ((True, False), ("true",)),
    "leaseDuration": (("15s", "20.5s", "1m"), ("9s", "-1s", "x", 15)),
    "renewDeadline": (("10s", "9s"), ("16s", "0s", "2s")),
    "retryPeriod": (("2s", "1s"), ("0s", "11s")),
    "resourceLock": (("leases",), ("endpoints", "")),
    "resourceName": (("mine", "kube-scheduler"), ("", 1)),
    "resourceNamespace": (("default", "kube-system"), ("",)),
}
CLIENT: Final[dict[str, Values]] = {
    "acceptContentTypes": (("application/json", ""), (1,)),
    "contentType": (("application/json", "application/vnd.kubernetes.protobuf"), (None, 1)),
    "qps": ((0, 50.5, 5000), ("5",)),
    "burst": ((0, 100), (-1, 1.5)),
}
POINTS: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "multiPoint",
)
SCORERS: Final = (
    "TaintToleration",
    "NodeAffinity",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
OTHERS: Final = (
    "NodePorts",
    "NodeName",
    "NodeUnschedulable",
    "VolumeRestrictions",
    "VolumeZone",
    "NodeVolumeLimits",
    "VolumeBinding",
    "DefaultPreemption",
    "DefaultBinder",
    "PrioritySort",
    "SchedulingGates",
    "DynamicResources",
)
FILTERS: Final = (
    "NodePorts",
    "NodeUnschedulable",
    "NodeAffinity",
    "TaintToleration",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
)


class DrawnConfigurations:
    """Draws configurations."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        #: the share of values that are mistakes
        self._wrong = 0.0

    def document(self) -> Json:
        """Return a configuration; of two, about one has a mistake."""
        rng = self._rng
        self._wrong = rng.choice([0.0, 0.0, 0.0, 0.02, 0.06])
        found: Json = {**HEADER, **self._fields(TOP_LEVEL, 0.3)}
        found["clientConnection"] = {**CONNECTION, **self._fields(CLIENT, 0.2)}
        if rng.random() < 0.4:
            found["leaderElection"] = self._fields(ELECTION, 0.4)
        if rng.random() < 0.85:
            found["profiles"] = self.profiles()
        if rng.random() < 0.2:
            found["extenders"] = [self._extender(number) for number in range(rng.randint(1, 2))]
        if self._is_wrong():
            found[rng.choice(["profile", "algorithmSource", "Parallelism"])] = rng.choice([1, {}])
        return found

    def profiles(self) -> list[Json]:
        """Return one profile to three; their queue sort must be the same."""
        rng = self._rng
        count = rng.choice([1, 1, 1, 2, 3])
        names = [f"scheduler-{number}" for number in range(count)]
        if count == 1 and rng.random() < 0.7:
            names = ["default-scheduler"]
        if self._is_wrong():
            names = ["same"] * count if count > 1 else [""]
        return [self._profile(name) for name in names]

    def _is_wrong(self) -> bool:
        return self._rng.random() < self._wrong

    def _fields(self, table: dict[str, Values], share: float) -> Json:
        rng = self._rng
        return {
            name: rng.choice(wrong if self._is_wrong() else right)
            for name, (right, wrong) in table.items()
            if rng.random() < share
        }

    # --- profiles ---------------------------------------------------------------------------

    def _profile(self, name: str) -> Json:
        rng = self._rng
        found: Json = {"schedulerName": name}
        if rng.random() < 0.2:
            found["percentageOfNodesToScore"] = 120 if self._is_wrong() else rng.randint(0, 100)
        if rng.random() < 0.6:
            found["plugins"] = self._plugins()
        if rng.random() < 0.7:
            found["pluginConfig"] = self._plugin_config()
        return found

    def _plugins(self) -> Json:
        rng, found = self._rng, {}
        if rng.random() < 0.5:
            found["score"] = self._reweighed("score")
        if rng.random() < 0.3:
            found["multiPoint"] = self._reweighed("multiPoint")
        if rng.random() < 0.25:
            names = rng.sample(FILTERS, rng.randint(1, 2))
            found["filter"] = {"disabled": [{"name": name} for name in names]}
        if rng.random() < 0.1:
            found["postFilter"] = {"disabled": [{"name": "*"}]}
        if rng.random() < 0.15:
            point, name = rng.choice(POINTS), rng.choice(SCORERS + OTHERS)
            found[point] = {rng.choice(["enabled", "disabled"]): [{"name": name}]}
        if self._is_wrong():
            found[rng.choice(["preSort", *POINTS])] = {"enabled": [{"name": "NoSuchPlugin"}]}
        return found

    def _reweighed(self, point: str) -> Json:
        rng = self._rng
        names = rng.sample(SCORERS, rng.randint(1, 3))
        enabled: list[Json] = [{"name": name, "weight": rng.randint(1, 20)} for name in names]
        if self._is_wrong():
            enabled[0]["weight"] = rng.choice([-1, 2**31, "1"])
        everything = point == "score" and rng.random() < 0.3
        disabled = ["*"] if everything else names
        if rng.random() < 0.15:
            disabled = []
        return {"enabled": enabled, "disabled": [{"name": name} for name in disabled]}

    def _plugin_config(self) -> list[Json]:
        rng = self._rng
        drawn = {
            "DefaultPreemption": self._preemption,
            "InterPodAffinity": self._inter_pod_affinity,
            "NodeAffinity": self._node_affinity,
            "NodeResourcesFit": self._fit,
            "NodeResourcesBalancedAllocation": self._balanced,
            "PodTopologySpread": self._spread,
            "VolumeBinding": self._volume_binding,
        }
        names = rng.sample(sorted(drawn), rng.randint(1, 4))
        found: list[Json] = [{"name": name, "args": drawn[name]()} for name in names]
        if self._is_wrong():
            found.append(rng.choice([found[0], {"name": "NoSuchPlugin", "args": {}}]))
        if self._is_wrong():
            found[0]["args"]["unknown"] = 1
        return found

    def _number(self, low: int, high: int) -> int:
        return (
            self._rng.choice([low - 1, high + 1])
            if self._is_wrong()
            else self._rng.randint(low, high)
        )

    def _preemption(self) -> Json:
        return {
            "minCandidateNodesPercentage": self._number(10, 100),
            "minCandidateNodesAbsolute": self._number(100, 1000),
        }

    def _inter_pod_affinity(self) -> Json:
        return {
            "hardPodAffinityWeight": self._number(0, 100),
            "ignorePreferredTermsOfExistingPods": self._rng.random() < 0.5,
        }

    def _node_affinity(self) -> Json:
        rng = self._rng
        operator = rng.choice(["In", "NotIn", "Exists", "Gt"])
        values = {"In": ["ssd"], "NotIn": ["hdd", "tape"], "Exists": [], "Gt": ["3"]}[operator]
        if self._is_wrong():
            operator = rng.choice(["Near", "Exists", "Lt"])
        key = "gen" if operator in ("Gt", "Lt") else "disk"
        term = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
        if rng.random() < 0.4:
            selector = {"nodeSelectorTerms": [term]}
            return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
        preferred = [{"weight": self._number(1, 100), "preference": term}]
        return {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}

    def _fit(self) -> Json:
        rng = self._rng
        found: Json = {}
        if rng.random() < 0.8:
            kind = rng.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
            strategy: Json = {"type": "Best" if self._is_wrong() else kind}
            if rng.random() < 0.7:
                strategy["resources"] = self._resources(100)
            if kind == "RequestedToCapacityRatio":
                points = sorted(rng.sample(range(101), rng.randint(1, 4)))
                if self._is_wrong():
                    points = [*points, points[0]]
                shape = [{"utilization": each, "score": self._number(0, 10)} for each in points]
                strategy["requestedToCapacityRatio"] = {"shape": shape}
            found["scoringStrategy"] = strategy
        if rng.random() < 0.2:
            found["ignoredResources"] = ["-x" if self._is_wrong() else "example.com/gpu"]
        if rng.random() < 0.2:
            found["ignoredResourceGroups"] = ["a/b" if self._is_wrong() else "example.org"]
        return found

    def _resources(self, most: int) -> list[Json]:
        names = ["cpu", "memory", "example.com/gpu", "ephemeral-storage"]
        drawn = self._rng.sample(names, self._rng.randint(1, 4))
        return [{"name": name, "weight": self._number(1, most)} for name in drawn]

    def _balanced(self) -> Json:
        return {"resources": self._resources(1)}

    def _spread(self) -> Json:
        rng = self._rng
        if rng.random() < 0.3:
            return {"defaultingType": "Systemic" if self._is_wrong() else "System"}
        keys = rng.sample(
            ["topology.kubernetes.io/zone", "kubernetes.io/hostname"], rng.randint(1, 2)
        )
        constraints: list[Json] = [
            {
                "maxSkew": self._number(1, 5),
                "topologyKey": "" if self._is_wrong() else key,
                "whenUnsatisfiable": rng.choice(["ScheduleAnyway", "DoNotSchedule"]),
            }
            for key in keys
        ]
        if self._is_wrong():
            constraints[0]["labelSelector"] = {"matchLabels": {"a": "b"}}
        return {"defaultConstraints": constraints, "defaultingType": "List"}

    def _volume_binding(self) -> Json:
        seconds = self._rng.choice([-1]) if self._is_wrong() else self._rng.choice([0, 10, 600])
        return {"bindTimeoutSeconds": seconds}

    def _extender(self, number: int) -> Json:
        rng = self._rng
        found: Json = {"urlPrefix": f"http://127.0.0.1:{9000 + number}"}
        if rng.random() < 0.8:
            found["filterVerb"] = "filter"
        if rng.random() < 0.5:
            found |= {"prioritizeVerb": "prioritize", "weight": self._number(1, 10)}
        if rng.random() < 0.3:
            found["bindVerb"] = "bind"
        if rng.random() < 0.3:
            found["httpTimeout"] = "5x" if self._is_wrong() else "5s"
        if rng.random() < 0.3:
            name = "cpu" if self._is_wrong() else f"example.com/{number}"
            found["managedResources"] = [{"name": name, "ignoredByScheduler": rng.random() < 0.5}]
        found["nodeCacheCapable"] = rng.random() < 0.5
        return found
