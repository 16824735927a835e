"""What is alpha about devices, on a real API server with the gates on: as kube-scheduler does it.

Each claim is served twice in the same cluster, by the real kube-scheduler and by ours. What both
write must be equal, but for what is unique by nature.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until

from .control_plane import ControlPlane
from .scheduler_process import (
    all_pods,
    configuration,
    node,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
)
from .test_devices import DEVICES, DRIVER, give_back

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clean_cluster")]

Json = dict[str, Any]
GATES = (
    "DRAListTypeAttributes",
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAOptionalNodeOperations",
    "DRANodeAllocatableResources",
    "DRAWorkloadResourceClaims",
    "GenericWorkload",
    "SchedulerPreQueueingHints",
)
ON = ",".join(f"{each}=true" for each in GATES)
OF = f'device.attributes["{DRIVER}"]'
GROUPS = "/apis/scheduling.k8s.io/v1beta1"


@pytest.fixture(scope="module")
def control_plane(assets: Path) -> Iterator[ControlPlane]:
    """A control plane with the features that are alpha."""
    of_server = ",".join(f"{each}=true" for each in GATES[:-1])
    runtime = "scheduling.k8s.io/v1beta1=true"
    with ControlPlane(assets, feature_gates=of_server, runtime_config=runtime) as plane:
        yield plane


def slice_of(name: str, devices: list[Json], count: int = 1, pool: str = "", **spec: Any) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n1",
            "pool": {"name": pool or name, "generation": 1, "resourceSliceCount": count},
            **({"devices": devices} if devices else {}),
            **spec,
        },
    }


def kind_of(name: str, kind: str, **more: Any) -> Json:
    attributes = {"kind": {"string": kind}, **more.pop("attributes", {})}
    return {"name": name, "attributes": attributes, **more}


def part(name: str, *groups: str) -> Json:
    draws: Json = {"counterSet": "card", "counters": {"units": {"value": "1"}}}
    if groups:
        draws["compatibilityGroups"] = list(groups)
    return kind_of(name, "part", consumesCounters=[draws])


CORES = {
    "cpu": {"mapping": {"deviceMultiplier": "1"}, "overhead": {"perPod": "100m"}},
    "memory": {"overhead": {"perPod": "64Mi", "perContainer": "32Mi"}},
}
SHARED = kind_of(
    "pool",
    "shared",
    allowMultipleAllocations=True,
    capacity={"memory": {"value": "4Gi"}},
    nodeAllocatableResources={
        "memory": {"mapping": {"capacityKey": "memory", "capacityMultiplier": "0.5"}}
    },
)
SLICES = [
    slice_of(
        "lists",
        [
            kind_of("l0", "list", attributes={"sockets": {"ints": [0, 1]}, "slot": {"int": 1}}),
            kind_of("l1", "list", attributes={"sockets": {"ints": [2]}, "slot": {"int": 2}}),
            kind_of("l2", "list", attributes={"sockets": {"ints": [1, 2]}, "slot": {"int": 3}}),
            kind_of("l3", "list", attributes={"sockets": {"int": 1}, "slot": {"int": 5}}),
        ],
    ),
    slice_of(
        "parts-a",
        [part("p0", "x"), part("p1", "y"), part("p2", "y", "x"), part("p3")],
        count=2,
        pool="parts",
    ),
    slice_of(
        "parts-b",
        [],
        count=2,
        pool="parts",
        sharedCounters=[{"name": "card", "counters": {"units": {"value": "4"}}}],
    ),
    slice_of("optional", [kind_of("o0", "optional")], skipNodeOperations=["*"]),
    slice_of(
        "cores",
        [kind_of(f"c{n}", "core", nodeAllocatableResources=CORES) for n in range(2)],
    ),
    slice_of("shared", [SHARED]),
]


def exactly(name: str, kind: str, count: int = 1, **fields: Any) -> Json:
    selectors = [{"cel": {"expression": f'{OF}.kind == "{kind}"'}}]
    return {
        "name": name,
        "exactly": {"deviceClassName": "gpu", "count": count, "selectors": selectors, **fields},
    }


def asking(*requests: Json, **constraint: str) -> Json:
    made: Json = {"requests": list(requests)}
    if constraint:
        made["constraints"] = [{k: f"{DRIVER}/{v}" for k, v in constraint.items()}]
    return made


def derives(**expressions: str) -> list[Json]:
    return [{"name": f"{DRIVER}/{k}", "expression": v} for k, v in expressions.items()]


#: Each by itself, on all devices.
CLAIMS: dict[str, Json] = {
    "list-match": asking(exactly("r", "list", 3), matchAttribute="sockets"),
    "list-distinct": asking(exactly("r", "list", 2), distinctAttribute="sockets"),
    "list-none": asking(exactly("r", "list", 4), matchAttribute="sockets"),
    "derived": asking(
        exactly("r", "list", 2, derivedAttributes=derives(half=f"{OF}.slot / 2")),
        matchAttribute="half",
    ),
    "derived-list": asking(
        exactly(
            "r", "list", 2, derivedAttributes=derives(near=f"[int({OF}.slot), int({OF}.slot) + 2]")
        ),
        distinctAttribute="near",
    ),
    "derived-error": asking(
        exactly("r", "list", 2, derivedAttributes=derives(bad=f"{OF}.nothing")),
        matchAttribute="bad",
    ),
    "groups": asking(exactly("r", "part", 2)),
    "groups-none": asking(exactly("r", "part", 3)),
    "optional": asking(exactly("r", "optional")),
    "cores": asking(exactly("r", "core", 2)),
    "share": asking(exactly("r", "shared", capacity={"requests": {"memory": "3Gi"}})),
}


class Served:
    """What became of claims that one scheduler served, each by itself."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._path = f"{DEVICES}/namespaces/{namespace}/resourceclaims"
        self._namespace = namespace

    def serve(self) -> dict[str, Json]:
        return {name: self._serve(name, spec) for name, spec in CLAIMS.items()}

    def _serve(self, name: str, devices: Json) -> Json:
        plane, namespace = self._plane, self._namespace
        body = {"metadata": {"name": name}, "spec": {"devices": devices}}
        plane.request("POST", self._path, body)
        made = pod(name, resourceClaims=[{"name": "c", "resourceClaimName": name}])
        made["spec"]["containers"][0]["resources"] = {
            "requests": {"cpu": "1500m", "memory": "1Gi"},
            "claims": [{"name": "c"}],
        }
        plane.request("POST", pods_path(namespace), made)

        def settled() -> Json | None:
            found = plane.request("GET", pods_path(namespace, name))
            said = [each for each in found["status"].get("conditions", []) if each.get("message")]
            return found if said or found["spec"].get("nodeName") else None

        found = until(settled)
        claim = plane.request("GET", f"{self._path}/{name}")
        allocation = copy.deepcopy(claim.get("status", {}).get("allocation", {}))
        allocation.pop("allocationTimestamp", None)
        for each in allocation.get("devices", {}).get("results", []):
            each.pop("shareID", None)
        status = found["status"]
        result = {
            "node": found["spec"].get("nodeName", ""),
            "said": [each["message"] for each in status.get("conditions", []) if "message" in each],
            "allocation": allocation,
            "takes": status.get("nodeAllocatableResourceClaimStatuses"),
        }
        plane.purge(pods_path(namespace))
        give_back(plane, namespace)
        return result


def prepare(plane: ControlPlane, *slices: Json, features: list[str]) -> None:
    made = node("n1", allocatable={"cpu": "4"})
    made["status"]["declaredFeatures"] = ["DRANodeAllocatableResources", *features]
    plane.request("POST", "/api/v1/nodes", made)
    plane.request("POST", f"{DEVICES}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
    for each in slices:
        plane.request("POST", f"{DEVICES}/resourceslices", each)


@pytest.mark.parametrize("features", [[], ["DRAOptionalNodeOperations"]], ids=["", "optional"])
def test_claims_are_served_as_by_kube_scheduler(
    control_plane: ControlPlane, namespace: str, features: list[str]
) -> None:
    prepare(control_plane, *SLICES, features=features)
    settings = configuration(control_plane.scheduler_kubeconfig)
    other = f"{namespace}-real"
    control_plane.create_namespace(other)
    with control_plane.run_kube_scheduler(settings, f"--feature-gates={ON}"):
        theirs = Served(control_plane, other).serve()
    with run_scheduler(control_plane, settings, f"--feature-gates={ON}"):
        ours = Served(control_plane, namespace).serve()
    said = str(theirs).replace(other, namespace)
    assert str(ours) == said
    bound = {name for name, each in theirs.items() if each["node"]}
    assert bound >= {"list-match", "list-distinct", "derived", "derived-list", "groups", "cores"}
    assert ("optional" in bound) == bool(features)
    assert theirs["cores"]["takes"]
    assert theirs["share"]["takes"]


def test_the_pods_of_a_group_share_its_claim(control_plane: ControlPlane, namespace: str) -> None:
    prepare(control_plane, SLICES[0], features=[])
    settings = configuration(control_plane.scheduler_kubeconfig)
    other = f"{namespace}-real"
    control_plane.create_namespace(other)
    with control_plane.run_kube_scheduler(settings, f"--feature-gates={ON}"):
        theirs = gang(control_plane, other)
    control_plane.purge(pods_path(other))
    give_back(control_plane, other)
    with run_scheduler(control_plane, settings, f"--feature-gates={ON}"):
        ours = gang(control_plane, namespace)
    assert ours == theirs
    assert theirs["reservedFor"] == [("scheduling.k8s.io", "podgroups", "g")]


def gang(plane: ControlPlane, namespace: str) -> Json:
    """What becomes of the claim that three pods of a group share."""
    claims = f"{DEVICES}/namespaces/{namespace}/resourceclaims"
    body = {"metadata": {"name": "c"}, "spec": {"devices": asking(exactly("r", "list", 2))}}
    plane.request("POST", claims, body)
    shared = [{"name": "own", "resourceClaimName": "c"}]
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}, "resourceClaims": shared}
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": spec,
    }
    plane.request("POST", f"{GROUPS}/namespaces/{namespace}/podgroups", group)
    for name in ("a", "b", "c"):
        made = pod(name, schedulingGroup={"podGroupName": "g"}, resourceClaims=shared)
        plane.request("POST", pods_path(namespace), made)
    wait_until_bound(plane, namespace)
    assert len(all_pods(plane, namespace)) == 3
    status = plane.request("GET", f"{claims}/c")["status"]
    return {
        "devices": [each["device"] for each in status["allocation"]["devices"]["results"]],
        "reservedFor": [
            (each.get("apiGroup", ""), each["resource"], each["name"])
            for each in status["reservedFor"]
        ],
    }
