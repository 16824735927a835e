"""The pod itself as the page tells of it."""

from __future__ import annotations

from typing import Any

from kubesched.api.core import Pod
from kubesched.api.decoding import convert
from kubesched.web.pod_state import pod_told
from kubesched.web.world_state import WorldState
from tests.support.worlds import world_of


def told(meta: dict[str, Any] | None = None, **spec: Any) -> Any:
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    pod = convert(
        {
            "metadata": {"name": "p", "namespace": "shop", "uid": "p", **(meta or {})},
            "spec": {
                "schedulerName": "default-scheduler",
                "containers": [{"name": "c", "resources": resources}],
                **spec,
            },
        },
        Pod,
    )
    return pod_told(WorldState(world_of(pod)), pod)


def owner(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": True}


def test_what_it_asks_for() -> None:
    pod = told({"labels": {"b": "2", "a": "1"}}, priority=7)

    assert pod.requests == {"cpu": "500m", "memory": "1Gi"}
    assert (pod.priority, list(pod.labels)) == (7, ["a", "b"])
    assert (pod.workload, pod.group, pod.claims) == ("", None, ())


def test_its_workload() -> None:
    job = told({"ownerReferences": [owner("Job", "nightly")]})
    labels = {"pod-template-hash": "5d8f"}
    replica = told({"ownerReferences": [owner("ReplicaSet", "web-5d8f")], "labels": labels})

    assert job.workload == "Job/nightly"
    assert replica.workload == "Deployment/web"


def test_what_it_demands() -> None:
    expression = {"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    labels = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
    pod = told(
        nodeSelector={"pool": "gpu"},
        affinity={
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required},
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [labels]},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [labels]},
        },
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
            {"maxSkew": 2, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway"},
        ],
        tolerations=[
            {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
            {"operator": "Exists"},
        ],
        schedulingGates=[{"name": "example.com/hold"}],
    )

    assert pod.gates == ("example.com/hold",)
    assert pod.demands == (
        "nodes with pool=gpu",
        "nodes with disk In ssd, nvme",
        "spread over zone with a skew of at most 1",
        "spread over host with a skew of at most 2 if possible",
        "near pods with app=db in the same zone",
        "apart from pods with app=db in the same zone",
        "tolerates gpu:NoSchedule",
        "tolerates every taint",
    )
