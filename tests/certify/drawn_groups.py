"""Random clusters with groups of pods, and what happens to them; the same for the same seed.

    RandomGroups(seed).world() ──> World: nodes, budgets, groups, placed and pending pods
                                     └── steps: what changes while a scheduler runs

Every pod prefers each node by another weight, so the node of a pod is determined wherever only one
placement is the best.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.integration.scheduler_process import node, pod, pods_path

Json = dict[str, Any]

NAMESPACE = "groups"
POD_GROUPS = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{NAMESPACE}/podgroups"
COMPOSITES = f"/apis/scheduling.k8s.io/v1alpha3/namespaces/{NAMESPACE}/compositepodgroups"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
NODES = "/api/v1/nodes"
PODS = pods_path(NAMESPACE)

ZONE = "topology.kubernetes.io/zone"
RACK = "example.com/rack"
HOSTNAME = "kubernetes.io/hostname"
#: Priority classes that the API server must have, and their values. For each there is one of the
#: same value whose pods never preempt.
PRIORITIES = {"low": 10, "middle": 100, "high": 1000}
NEVER = "-never"
#: Long enough that only the test ends a victim.
GRACE_SECONDS = 30
#: Gates that a scheduler is run with; the API server has all of them on.
GATE_SETS = (
    ("GenericWorkload",),
    ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
    ("GenericWorkload", "TopologyAwareWorkloadScheduling", "PodGroupPreemptionPolicy"),
    ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"),
)


class Write(NamedTuple):
    """A request that changes the cluster."""

    method: str
    path: str
    body: Json | None = None

    def with_slow_victims(self) -> Write:
        """Return the same request; a pod that it creates gets a grace period."""
        if self.method != "POST" or self.path != PODS or self.body is None:
            return self
        spec = {**self.body["spec"], "terminationGracePeriodSeconds": GRACE_SECONDS}
        return self._replace(body={**self.body, "spec": spec})


@dataclass
class World:
    """What there is before a scheduler starts, and what changes while it runs."""

    gates: Sequence[str]
    before: list[Write] = field(default_factory=list)
    steps: list[list[Write]] = field(default_factory=list)

    def with_slow_victims(self) -> World:
        """Return the same world with pods that do not end at once."""
        steps = [[write.with_slow_victims() for write in step] for step in self.steps]
        return World(self.gates, [write.with_slow_victims() for write in self.before], steps)


@dataclass
class _Group:
    name: str
    priority: str
    size: int
    #: what all members have in common
    spec: Json
    labels: dict[str, str]
    members: int = 0


class RandomGroups:
    """Draws worlds."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._nodes: list[str] = []
        self._groups: list[_Group] = []
        self._gates: Sequence[str] = ()
        self._placed: list[str] = []

    def world(self) -> World:
        """Return a world."""
        rng = self._rng
        self._gates = rng.choice(GATE_SETS)
        world = World(self._gates)
        world.before += self._draw_nodes(rng.randint(2, 7))
        world.before += self._draw_budgets()
        world.before += self._draw_placed()
        late: list[Write] = []
        for number in range(rng.randint(1, 4)):
            writes = self._draw_root(f"g{number}")
            # A group that comes after its pods.
            if rng.random() < 0.1:
                late.append(writes.pop(0))
            world.before += writes
        world.before += self._draw_singles()
        if late:
            world.steps.append(late)
        world.steps += [self._step() for _ in range(rng.randint(0, 2))]
        return world

    # --- nodes and what is on them ----------------------------------------------------------

    def _draw_nodes(self, count: int) -> list[Write]:
        return [Write("POST", NODES, self._node(number)) for number in range(count)]

    def _node(self, number: int) -> Json:
        rng, name = self._rng, f"n{number}"
        self._nodes.append(name)
        labels = {"disk": rng.choice(["ssd", "hdd"])}
        if rng.random() < 0.9:
            labels[ZONE] = f"zone-{rng.randrange(3)}"
            labels[RACK] = f"{labels[ZONE]}-rack-{rng.randrange(2)}"
        size = {"cpu": rng.choice(["2", "4", "6"]), "memory": rng.choice(["4Gi", "8Gi"])}
        if rng.random() < 0.1:
            size["pods"] = "3"
        spec: Json = {}
        if rng.random() < 0.15:
            spec["taints"] = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
        elif rng.random() < 0.05:
            spec["unschedulable"] = True
        return node(name, allocatable=size, labels=labels, **spec)

    def _draw_budgets(self) -> list[Write]:
        writes = []
        for app in ("guarded", "spare"):
            spec = {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1}
            allowed = 0 if app == "guarded" else 1
            status = {
                "disruptionsAllowed": allowed,
                "currentHealthy": 1 + allowed,
                "desiredHealthy": 1,
                "expectedPods": 1 + allowed,
            }
            writes.append(Write("POST", BUDGETS, {"metadata": {"name": app}, "spec": spec}))
            writes.append(Write("PATCH", f"{BUDGETS}/{app}/status", {"status": status}))
        return writes

    def _draw_placed(self) -> list[Write]:
        """Pods that have a node, by themselves and in groups: what may be preempted."""
        rng = self._rng
        writes: list[Write] = []
        for number in range(rng.choice([0, 0, 1, 2])):
            group = self._group(f"old{number}", priority=rng.choice(["low", "low", "middle"]))
            writes.append(self._pod_group(group, {"basic": {}}))
            for _ in range(rng.randint(1, 4)):
                writes += self._place(self._member(group))
        for number in range(rng.randint(0, 5)):
            spec = self._grace()
            if rng.random() < 0.8:
                spec["priorityClassName"] = rng.choice(["low", "low", "middle", "high"])
            made = pod(f"placed-{number}", requests=self._requests(), labels=self._app(), **spec)
            writes += self._place(made)
        return writes

    def _place(self, made: Json) -> list[Write]:
        name = made["metadata"]["name"]
        made["spec"]["nodeName"] = self._rng.choice(self._nodes)
        self._placed.append(name)
        # Of pods without a start, any may be taken for the youngest.
        started = f"2026-01-01T00:{len(self._placed):02d}:00Z"
        status = {"status": {"startTime": started}}
        return [Write("POST", PODS, made), Write("PATCH", f"{PODS}/{name}/status", status)]

    # --- groups -----------------------------------------------------------------------------

    def _draw_root(self, name: str) -> list[Write]:
        """A group with its members, or a tree of groups."""
        rng = self._rng
        if "CompositePodGroup" in self._gates and rng.random() < 0.5:
            return self._tree(name)
        group = self._group(name)
        return [self._pod_group(group, self._policy(group.size)), *self._members(group)]

    def _tree(self, name: str) -> list[Write]:
        rng = self._rng
        priority, count = self._priority(), rng.randint(1, 3)
        policy: Json = {"basic": {}}
        if rng.random() < 0.7:
            policy = {"gang": {"minGroupCount": rng.randint(1, count)}}
        writes = [Write("POST", COMPOSITES, self._group_body(name, policy, priority))]
        writes[0].body["spec"]["workloadRef"] = _workload(name)  # type: ignore[index]
        for number in range(count):
            child = self._group(f"{name}-{number}", priority=priority)
            made = self._pod_group(child, self._policy(child.size), parent=name)
            writes += [made, *self._members(child)]
        return writes

    def _group(self, name: str, *, priority: str | None = None) -> _Group:
        rng = self._rng
        spec = {**self._grace(), **self._wishes(name)}
        group = _Group(
            name=name,
            priority=priority or self._priority(),
            size=rng.randint(1, 6),
            spec={**spec, "requests": self._requests()},
            labels={**self._app(), "group": name},
        )
        self._groups.append(group)
        return group

    def _priority(self) -> str:
        drawn = self._rng.choice(list(PRIORITIES))
        return drawn + NEVER if self._rng.random() < 0.1 else drawn

    def _policy(self, size: int) -> Json:
        rng = self._rng
        if rng.random() < 0.3:
            return {"basic": {}}
        smallest = rng.choice([size, size, size, max(1, size - 1), max(1, size // 2), size + 1])
        return {"gang": {"minCount": smallest}}

    def _pod_group(self, group: _Group, policy: Json, *, parent: str | None = None) -> Write:
        body = self._group_body(group.name, policy, group.priority)
        if parent is not None:
            body["spec"]["parentCompositePodGroupName"] = parent
            body["spec"]["workloadRef"] = _workload(parent)
        return Write("POST", POD_GROUPS, body)

    def _group_body(self, name: str, policy: Json, priority: str) -> Json:
        rng = self._rng
        spec: Json = {"schedulingPolicy": policy, "priorityClassName": priority}
        if rng.random() < 0.4:
            spec["disruptionMode"] = {rng.choice(["all", "all", "single"]): {}}
        if "TopologyAwareWorkloadScheduling" in self._gates and rng.random() < 0.4:
            spec["schedulingConstraints"] = {"topology": [{"key": rng.choice([ZONE, RACK])}]}
        return {"metadata": {"name": name}, "spec": spec}

    def _members(self, group: _Group) -> list[Write]:
        return [Write("POST", PODS, self._member(group)) for _ in range(group.size)]

    def _member(self, group: _Group) -> Json:
        rng = self._rng
        spec = dict(group.spec)
        requests = spec.pop("requests")
        if rng.random() < 0.15:
            requests = self._requests()
        made = pod(
            f"{group.name}-m{group.members}",
            requests=requests,
            labels=group.labels,
            schedulingGroup={"podGroupName": group.name},
            **{**spec, **self._ranks(spec)},
        )
        made["spec"]["priorityClassName"] = group.priority
        if rng.random() < 0.01:
            made["spec"]["priorityClassName"] = rng.choice(list(PRIORITIES))
        group.members += 1
        return made

    def _draw_singles(self) -> list[Write]:
        """Pods of no group, which compete with groups."""
        writes = []
        for number in range(self._rng.choice([0, 0, 1, 2])):
            spec = {**self._grace(), "priorityClassName": self._rng.choice(list(PRIORITIES))}
            spec.update(self._ranks({}))
            made = pod(f"single-{number}", requests=self._requests(), labels=self._app(), **spec)
            writes.append(Write("POST", PODS, made))
        return writes

    # --- parts of pods ----------------------------------------------------------------------

    def _requests(self) -> dict[str, str]:
        rng = self._rng
        return {
            "cpu": rng.choice(["250m", "500m", "1", "1", "1500m", "2", "3"]),
            "memory": rng.choice(["128Mi", "512Mi", "1Gi", "3Gi"]),
        }

    def _app(self) -> dict[str, str]:
        return {"app": self._rng.choice(["guarded", "spare", "plain", "plain"])}

    def _grace(self) -> Json:
        # A victim with a grace period stays until the test says that it has ended.
        return {"terminationGracePeriodSeconds": self._rng.choice([0, 0, GRACE_SECONDS])}

    def _wishes(self, group: str) -> Json:
        rng = self._rng
        wishes: Json = {}
        if rng.random() < 0.3:
            wishes["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
        if rng.random() < 0.1:
            wishes["nodeSelector"] = {"disk": rng.choice(["ssd", "hdd"])}
        selector = {"matchLabels": {"group": group}}
        if rng.random() < 0.15:
            wishes["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": rng.choice([ZONE, HOSTNAME]),
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                }
            ]
        if rng.random() < 0.2:
            kind = rng.choice(["podAffinity", "podAntiAffinity"])
            term = {"topologyKey": rng.choice([ZONE, HOSTNAME]), "labelSelector": selector}
            wishes["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        return wishes

    def _ranks(self, spec: Json) -> Json:
        """Let a pod prefer each node by another weight."""
        weights = self._rng.sample(range(1, 11), len(self._nodes))
        preferred = [
            {
                "weight": 10 * weight,
                "preference": {
                    "matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [name]}]
                },
            }
            for name, weight in zip(self._nodes, weights, strict=True)
        ]
        affinity = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        return {"affinity": {**spec.get("affinity", {}), "nodeAffinity": affinity}}

    # --- changes ----------------------------------------------------------------------------

    def _step(self) -> list[Write]:
        kinds: list[Callable[[], list[Write]]] = [
            self._more_room,
            self._more_room,
            self._late_member,
            self._late_member,
            self._member_gone,
            self._group_gone,
            self._fewer_needed,
            self._placed_gone,
        ]
        return self._rng.choice(kinds)()

    def _more_room(self) -> list[Write]:
        if len(self._nodes) == 10:
            return []
        return [Write("POST", NODES, self._node(len(self._nodes)))]

    def _late_member(self) -> list[Write]:
        return [Write("POST", PODS, self._member(self._rng.choice(self._groups)))]

    def _member_gone(self) -> list[Write]:
        group = self._rng.choice(self._groups)
        name = f"{group.name}-m{self._rng.randrange(max(1, group.members))}"
        return [Write("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})]

    def _group_gone(self) -> list[Write]:
        return [Write("DELETE", f"{POD_GROUPS}/{self._rng.choice(self._groups).name}")]

    def _fewer_needed(self) -> list[Write]:
        group = self._rng.choice(self._groups)
        spec = {"schedulingPolicy": {"gang": {"minCount": max(1, group.size - 1)}}}
        return [Write("PATCH", f"{POD_GROUPS}/{group.name}", {"spec": spec})]

    def _placed_gone(self) -> list[Write]:
        if not self._placed:
            return []
        name = self._rng.choice(self._placed)
        return [Write("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})]


def _workload(name: str) -> Json:
    return {"workloadName": name, "templateName": "t"}
