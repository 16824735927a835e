"""Claims to devices on a real API server: the same devices as kube-scheduler gives, and in order.

Each claim is served twice in the same cluster, by the real kube-scheduler and by ours. What both
write must be equal, but for what is unique by nature: ids of shares, and times.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.waiting import until

from .control_plane import MERGE_PATCH, ControlPlane
from .scheduler_process import (
    configuration,
    node,
    node_of,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")

Json = dict[str, Any]
DRIVER = "gpu.example.com"
DEVICES = "/apis/resource.k8s.io/v1"


def gpu(name: str, numa: int, **more: Any) -> Json:
    attributes = {"numa": {"int": numa}, "model": {"string": "a100" if numa else "t4"}}
    return {"name": name, "attributes": attributes, **more}


def slice_of(name: str, pool: str, devices: list[Json], count: int = 1, **spec: Any) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n1",
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": count},
            **({"devices": devices} if devices else {}),
            **spec,
        },
    }


def part(name: str, units: str) -> Json:
    counters = [{"counterSet": "card", "counters": {"units": {"value": units}}}]
    return {
        "name": name,
        "consumesCounters": counters,
        "attributes": {"kind": {"string": "part"}},
    }


SHARED = {
    "name": "shared",
    "allowMultipleAllocations": True,
    "attributes": {"kind": {"string": "shared"}},
    "capacity": {
        "memory": {
            "value": "10Gi",
            "requestPolicy": {
                "default": "1Gi",
                "validRange": {"min": "1Gi", "step": "1Gi", "max": "8Gi"},
            },
        }
    },
}
SLICES = [
    slice_of("b", "main", [gpu("g1", 1), gpu("g0", 0)], count=2),
    slice_of("a", "main", [gpu("g3", 1), gpu("g2", 0)], count=2),
    slice_of("c", "parts", [part("whole", "4"), part("half-1", "2"), part("half-2", "2")], count=2),
    slice_of(
        "d",
        "parts",
        [],
        count=2,
        sharedCounters=[{"name": "card", "counters": {"units": {"value": "4"}}}],
    ),
    slice_of("e", "shared", [SHARED]),
]
IS = 'device.attributes["gpu.example.com"].?kind.orValue("whole") == "{}"'


def exactly(name: str, kind: str = "whole", *more: str, **fields: Any) -> Json:
    expressions = (IS.format(kind), *more)
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {
        "name": name,
        "exactly": {"deviceClassName": "gpu", "selectors": selectors, **fields},
    }


def opaque(*requests: str) -> Json:
    return {
        "requests": list(requests),
        "opaque": {"driver": DRIVER, "parameters": {"z": 1, "for": " ".join(requests)}},
    }


NUMA_1 = 'device.attributes["gpu.example.com"].numa == 1'
ALTERNATIVES = [
    {"name": "five", "deviceClassName": "gpu", "count": 5},
    {
        "name": "one",
        "deviceClassName": "gpu",
        "selectors": [{"cel": {"expression": IS.format("whole")}}],
    },
]
#: In turn, each on what those before it leave.
CLAIMS: dict[str, Json] = {
    "all-parts": {"requests": [exactly("r", "part", allocationMode="All", adminAccess=None)]},
    "one": {"requests": [exactly("r")], "config": [opaque("r"), opaque()]},
    "same": {
        "requests": [exactly("r", count=2)],
        "constraints": [{"matchAttribute": f"{DRIVER}/numa"}],
    },
    "half": {"requests": [exactly("r", "part"), exactly("s", "part")]},
    "share": {
        "requests": [
            exactly("r", "shared", capacity={"requests": {"memory": "1500Mi"}}),
            exactly("s", "shared"),
        ]
    },
    "first": {
        "requests": [{"name": "r", "firstAvailable": ALTERNATIVES}],
        "config": [opaque("r/one"), opaque("r/five")],
    },
    "numa": {"requests": [exactly("r", "whole", NUMA_1)]},
}


class Served:
    """What became of all claims, served by one scheduler."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._path = f"{DEVICES}/namespaces/{namespace}/resourceclaims"
        self._namespace = namespace

    def serve(self) -> dict[str, Json | str]:
        """What each claim got, or why its pod was refused."""
        return {name: self._serve(name, spec) for name, spec in CLAIMS.items()}

    def _serve(self, name: str, devices: Json) -> Json | str:
        plane, namespace = self._plane, self._namespace
        # Blanks that are sent here become part of the parameters.
        body = {"metadata": {"name": name}, "spec": {"devices": devices}}
        plane.request("POST", self._path, body)
        claims = [{"name": "c", "resourceClaimName": name}]
        plane.request("POST", pods_path(namespace), pod(name, resourceClaims=claims))

        def settled() -> Json | None:
            found = plane.request("GET", pods_path(namespace, name))
            conditions = found["status"].get("conditions", [])
            refused = any(each.get("reason") == "Unschedulable" for each in conditions)
            return found if refused or found["spec"].get("nodeName") else None

        found = until(settled)
        if not found["spec"].get("nodeName"):
            said: str = wait_until_refused(plane, namespace, name)
            return said
        claim = plane.request("GET", f"{self._path}/{name}")
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        assert [each["name"] for each in claim["status"]["reservedFor"]] == [name]
        return comparable(claim["status"]["allocation"])


def comparable(allocation: Json) -> Json:
    """An allocation without what no two can have in common."""
    made = copy.deepcopy(allocation)
    assert made.pop("allocationTimestamp")
    for each in made["devices"]["results"]:
        each.pop("shareID", None)
    return made


def give_back(plane: ControlPlane, namespace: str) -> None:
    """Deallocate all claims, which is up to controllers that are not here; they stay, deleted."""
    path = f"{DEVICES}/namespaces/{namespace}/resourceclaims"
    for each in plane.request("GET", path)["items"]:
        item = f"{path}/{each['metadata']['name']}"
        nothing = {"status": {"reservedFor": None, "devices": None, "allocation": None}}
        plane.request("PATCH", f"{item}/status", nothing, content_type=MERGE_PATCH)


def prepare(plane: ControlPlane) -> None:
    plane.request("POST", "/api/v1/nodes", node("n1"))
    config = [{"opaque": {"driver": DRIVER, "parameters": {"of": "class"}}}]
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    spec = {"selectors": selectors, "config": config}
    plane.request("POST", f"{DEVICES}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": spec})
    for each in SLICES:
        plane.request("POST", f"{DEVICES}/resourceslices", each)


def test_claims_get_the_devices_that_kube_scheduler_gives_them(
    control_plane: ControlPlane, namespace: str
) -> None:
    prepare(control_plane)
    settings = configuration(control_plane.scheduler_kubeconfig)
    other = f"{namespace}-real"
    control_plane.create_namespace(other)
    with control_plane.run_kube_scheduler(settings):
        theirs = Served(control_plane, other).serve()
    control_plane.purge(pods_path(other))
    give_back(control_plane, other)
    with run_scheduler(control_plane, settings):
        ours = Served(control_plane, namespace).serve()
    assert ours == theirs
    assert sum(isinstance(each, dict) for each in theirs.values()) >= 5


def test_extended_resources_become_claims(control_plane: ControlPlane, namespace: str) -> None:
    prepare(control_plane)
    control_plane.request(
        "PATCH",
        f"{DEVICES}/deviceclasses/gpu",
        {"spec": {"extendedResourceName": "example.com/gpu"}},
        content_type=MERGE_PATCH,
    )
    amounts = {"example.com/gpu": "2"}
    container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
    with run_scheduler(control_plane):
        made = pod("p")
        made["spec"]["containers"] = [container]
        control_plane.request("POST", pods_path(namespace), made)
        wait_until_bound(control_plane, namespace, "p")
    found = control_plane.request("GET", pods_path(namespace, "p"))
    status = found["status"]["extendedResourceClaimStatus"]
    path = f"{DEVICES}/namespaces/{namespace}/resourceclaims/{status['resourceClaimName']}"
    claim = control_plane.request("GET", path)
    results = claim["status"]["allocation"]["devices"]["results"]
    assert [each["request"] for each in results] == ["container-0-request-0"] * 2
    assert node_of(control_plane, namespace, "p") == "n1"
