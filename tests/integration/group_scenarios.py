"""What may happen to groups of pods, told as data and played on a real API server.

    Scenario: nodes, groups, pods that are there, pods that come ──> which are bound, gone, waiting

Pods that come do so before their groups, so that all of them are tried at once, in their order. A
group is written as ``g``, a pod as ``p``; a priority is a number, for which there is a priority
class, and one more for pods that must not preempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.waiting import stays, until

from .control_plane import ControlPlane, JsonObject
from .pod_groups import groups_path
from .scheduler_process import (
    all_pods,
    configuration,
    create_budget,
    node,
    pod,
    pods_path,
    run_scheduler,
)

PRIORITIES = (5, 10, 20, 50, 100, 200, 500)
RACK = "example.com/rack"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
RUNTIME_CONFIG = "scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"


def g(
    name: str,
    *,
    gang: int | None = None,
    priority: int | None = None,
    topology: str | None = None,
    all_or_none: bool = False,
    parent: str | None = None,
    composite: bool = False,
) -> JsonObject:
    """A PodGroup, or a CompositePodGroup: a gang if it is said how many it needs."""
    needs = "minGroupCount" if composite else "minCount"
    policy: JsonObject = {"basic": {}} if gang is None else {"gang": {needs: gang}}
    spec: JsonObject = {"schedulingPolicy": policy}
    if priority is not None:
        spec["priorityClassName"] = f"p{priority}"
    if topology is not None:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    if all_or_none:
        spec["disruptionMode"] = {"all": {}}
    if parent is not None:
        spec["parentCompositePodGroupName"] = parent
    if composite or parent is not None:
        spec["workloadRef"] = {"workloadName": "w", "templateName": "t"}
    kind = "CompositePodGroup" if composite else "PodGroup"
    return {"kind": kind, "metadata": {"name": name}, "spec": spec}


def p(
    name: str,
    cpu: str = "1",
    *,
    group: str | None = None,
    priority: int | None = None,
    on: str | None = None,
    prefers: str | None = None,
    labels: dict[str, str] | None = None,
    ports: tuple[int, ...] = (),
    never: bool = False,
    **spec: Any,
) -> JsonObject:
    """A pod, maybe of a group, maybe on a node; it may prefer one, or never preempt."""
    made = pod(name, requests={"cpu": cpu}, labels=labels, host_ports=ports)
    made["spec"].update(terminationGracePeriodSeconds=0, **spec)
    if group is not None:
        made["spec"]["schedulingGroup"] = {"podGroupName": group}
    if priority is not None:
        made["spec"]["priorityClassName"] = f"p{priority}" + ("-never" if never else "")
    if on is not None:
        made["spec"]["nodeName"] = on
    if prefers is not None:
        match = [{"key": HOSTNAME, "operator": "In", "values": [prefers]}]
        term = {"weight": 100, "preference": {"matchExpressions": match}}
        affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
        made["spec"].setdefault("affinity", {})["nodeAffinity"] = affinity
    return made


def several(count: int, prefix: str, cpu: str = "1", **options: Any) -> list[JsonObject]:
    """Pods that differ in their number only."""
    return [p(f"{prefix}{number}", cpu, **options) for number in range(1, count + 1)]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A cluster, what comes, and what is to become of it."""

    #: name → CPUs, or CPUs and labels
    nodes: Mapping[str, str | tuple[str, dict[str, str]]]
    groups: list[JsonObject]
    #: bound already, or to be bound before the others come
    there: list[JsonObject] = field(default_factory=list)
    come: list[JsonObject]
    #: the app of pods that a budget does not let go
    guarded: str = ""
    #: pods that come, with the nodes they may be on; all others that come must wait
    bound: Mapping[str, str] = field(default_factory=dict)
    #: of the pods that are there
    gone: frozenset[str] = frozenset()


class Stage:
    """Where scenarios are played."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._namespace = namespace

    def play(self, scenario: Scenario) -> None:
        """Play a scenario, and check its end."""
        for name, room in scenario.nodes.items():
            cpu, labels = room if isinstance(room, tuple) else (room, {})
            made = node(name, allocatable={"cpu": cpu}, labels=labels)
            self._plane.request("POST", "/api/v1/nodes", made)
        if scenario.guarded:
            create_budget(self._plane, self._namespace, scenario.guarded, allowed=0)
        late = {_group_of(each) for each in scenario.come}
        early = [each for each in scenario.groups if each["metadata"]["name"] not in late]
        self._create_groups(early)
        self._create_pods(scenario.there)
        self._create_pods(scenario.come)
        self._create_groups([each for each in scenario.groups if each not in early])
        until(lambda: self._is_as_told(scenario), seconds=40, every=0.1)
        stays(lambda: self._is_as_told(scenario), seconds=0.5)

    def _create_pods(self, pods: list[JsonObject]) -> None:
        for each in pods:
            self._plane.request("POST", pods_path(self._namespace), each)

    def _create_groups(self, groups: list[JsonObject]) -> None:
        for each in groups:
            self._plane.request("POST", self._group_path(each), each)

    def _group_path(self, group: JsonObject) -> str:
        if group["kind"] == "PodGroup":
            return groups_path(self._namespace)
        return f"/apis/scheduling.k8s.io/v1alpha3/namespaces/{self._namespace}/compositepodgroups"

    def _is_as_told(self, scenario: Scenario) -> bool:
        pods = {each["metadata"]["name"]: each for each in all_pods(self._plane, self._namespace)}
        there = {each["metadata"]["name"] for each in scenario.there}
        if there - pods.keys() != scenario.gone:
            return False
        return all(_fares(pods[each["metadata"]["name"]], scenario.bound) for each in scenario.come)


def _group_of(each: JsonObject) -> str:
    return str(each["spec"].get("schedulingGroup", {}).get("podGroupName", ""))


def _fares(each: JsonObject, bound: Mapping[str, str]) -> bool:
    where = bound.get(each["metadata"]["name"])
    if where is not None:
        on: str = each["spec"].get("nodeName", "")
        return bool(on) and (not where or on in where.split())
    conditions = each["status"].get("conditions", [])
    return "nodeName" not in each["spec"] and any(
        c.get("reason") in ("Unschedulable", "SchedulerError") for c in conditions
    )


@contextmanager
def staged_plane(assets: Path) -> Iterator[ControlPlane]:
    """Run a control plane with a scheduler for many scenarios."""
    gates = ",".join(f"{gate}=true" for gate in GATES)
    with (
        ControlPlane(assets, feature_gates=gates, runtime_config=RUNTIME_CONFIG) as plane,
        staged(plane),
    ):
        yield plane


@contextmanager
def staged(plane: ControlPlane, gates: tuple[str, ...] = GATES) -> Iterator[None]:
    """Run a scheduler for many scenarios."""
    for value in PRIORITIES:
        for name, policy in ((f"p{value}", "PreemptLowerPriority"), (f"p{value}-never", "Never")):
            body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
            plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    config = configuration(
        plane.scheduler_kubeconfig, podInitialBackoffSeconds=1, podMaxBackoffSeconds=1
    )
    flag = "--feature-gates=" + ",".join(f"{gate}=true" for gate in gates)
    with run_scheduler(plane, config, flag):
        yield
