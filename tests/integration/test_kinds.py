"""Every kind that the scheduler reads, as the real API server writes it.

An object with nothing but required fields has what Go's encoder makes of fields that were never
set, and some of that is ``null``. It is read in a list, in a watch and alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import msgspec
import pytest

from kubesched.api.decoding import decoder_of
from kubesched.app import App
from kubesched.client import ApiClient, kubeconfig
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.kinds import KINDS
from tests.support.minimal_objects import DRIVER, MINIMAL
from tests.support.waiting import eventually

from .control_plane import MERGE_PATCH, ControlPlane, JsonObject, PlaneApiError
from .scheduler_process import (
    node,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")

#: Kinds of features that are switched off are not served by default, nor are custom resources.
SERVED = {
    name: required
    for name, required in MINIMAL.items()
    if not KINDS[name].plugin
    and (not KINDS[name].gate or FeatureGates.of().enabled(KINDS[name].gate))
}


class Objects:
    """Minimal objects of all kinds, and where they are."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._namespace = namespace

    def create(self, name: str) -> None:
        """Create one of each kind."""
        for kind, required in SERVED.items():
            body = {"metadata": {"name": name}, **required}
            self._plane.request("POST", self.collection(kind), body)

    def touch(self, name: str) -> None:
        """Change one of each kind."""
        patch = {"metadata": {"annotations": {"touched": ""}}}
        for kind in SERVED:
            path = f"{self.collection(kind)}/{name}"
            self._plane.request("PATCH", path, patch, content_type=MERGE_PATCH)

    def collection(self, kind: str) -> str:
        path = KINDS[kind].path
        return path.collection(self._namespace if path.namespaced else "")

    def remove(self, name: str) -> None:
        """Delete what is neither in the namespace nor cleaned up anyway."""
        self._plane.request("DELETE", f"{self.collection('PriorityClass')}/{name}")
        self._plane.delete_namespace(name)


def test_minimal_objects_are_read_in_lists_watches_and_alone(
    control_plane: ControlPlane, namespace: str
) -> None:
    access = kubeconfig.load(control_plane.admin_kubeconfig)
    objects = Objects(control_plane, namespace)

    async def read_all() -> None:
        gates = FeatureGates.of()
        config = SchedulerConfiguration.default(gates)
        app = App(config, gates, access)

        def have(name: str, *, touched: bool = False) -> bool:
            found = (
                next((each for (_, known), each in informer.objects.items() if known == name), None)
                for informer in app.informers.all
            )
            return all(
                each is not None and touched <= ("touched" in (each.metadata.annotations or {}))
                for each in found
            )

        tasks = [asyncio.create_task(informer.run()) for informer in app.informers.all]
        try:
            await app.informers.wait_until_synced()
            assert have("listed")
            await asyncio.to_thread(objects.create, "watched")
            await eventually(lambda: have("watched"))
            await asyncio.to_thread(objects.touch, "listed")
            await eventually(lambda: have("listed", touched=True))
            assert not any(app.informers.unreadable().values()), app.informers.unreadable()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await app.client.aclose()

    async def get_all() -> None:
        async with ApiClient(access) as client:
            for name in SERVED:
                kind = KINDS[name]
                got = await client.get(f"{objects.collection(name)}/listed", kind.type)
                assert got.metadata.name == "listed"

    objects.create("listed")
    try:
        asyncio.run(read_all())
        asyncio.run(get_all())
    finally:
        for name in ("listed", "watched"):
            with contextlib.suppress(PlaneApiError):  # not made, if the test failed early
                objects.remove(name)


def test_the_limit_of_a_driver_without_topology_is_enforced(
    control_plane: ControlPlane, namespace: str
) -> None:
    """It has ``"topologyKeys": null``, which once cost the node all its limits."""
    plane = control_plane
    plane.request("POST", "/api/v1/nodes", node("n1"))
    driver = {"name": DRIVER, "nodeID": "n1", "topologyKeys": [], "allocatable": {"count": 1}}
    csi_node = {"metadata": {"name": "n1"}, "spec": {"drivers": [driver]}}
    plane.request("POST", "/apis/storage.k8s.io/v1/csinodes", csi_node)
    written = plane.request("GET", "/apis/storage.k8s.io/v1/csinodes/n1")
    assert written["spec"]["drivers"][0]["topologyKeys"] is None, "what the test is about"
    for number in (1, 2):
        create_bound_claim(plane, namespace, f"disk{number}")
    with run_scheduler(plane):
        plane.request("POST", pods_path(namespace), with_claim(pod("first"), "disk1"))
        assert wait_until_bound(plane, namespace, "first") == {"first": "n1"}
        plane.request("POST", pods_path(namespace), with_claim(pod("second"), "disk2"))
        said = wait_until_refused(plane, namespace, "second")
    assert "1 node(s) exceed max volume count" in said


#: Kind → a spec with all fields that an API server accepts by default.
DEVICES: dict[str, JsonObject] = {
    "DeviceClass": {
        "selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}],
        "config": [{"opaque": {"driver": DRIVER, "parameters": {"kind": "C", "deep": [1, None]}}}],
        "extendedResourceName": "example.com/gpu",
    },
    "ResourceSlice": {
        "driver": DRIVER,
        "pool": {"name": "p", "generation": 2, "resourceSliceCount": 3},
        "perDeviceNodeSelection": True,
        "devices": [
            {
                "name": "gpu-0",
                "nodeName": "n1",
                "attributes": {
                    "index": {"int": 0},
                    "ecc": {"bool": False},
                    "model": {"string": "A"},
                    "firmware": {"version": "1.2.3"},
                },
                "capacity": {
                    "memory": {
                        "value": "40Gi",
                        "requestPolicy": {
                            "default": "1Gi",
                            "validRange": {"min": "1Gi", "max": "20Gi", "step": "1Gi"},
                        },
                    }
                },
                "allowMultipleAllocations": True,
                "taints": [{"key": "broken", "value": "fan", "effect": "NoSchedule"}],
            },
            {
                "name": "gpu-1",
                "allNodes": True,
                "consumesCounters": [
                    {"counterSet": "card", "counters": {"memory": {"value": "40Gi"}}}
                ],
            },
            {
                "name": "gpu-2",
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
                    ]
                },
                "bindsToNode": True,
                "bindingConditions": ["example.com/attached"],
                "bindingFailureConditions": ["example.com/failed"],
            },
        ],
    },
    "ResourceClaim": {
        "devices": {
            "requests": [
                {
                    "name": "exact",
                    "exactly": {
                        "deviceClassName": "c",
                        "selectors": [{"cel": {"expression": "true"}}],
                        "allocationMode": "ExactCount",
                        "count": 2,
                        "tolerations": [{"key": "broken", "operator": "Exists"}],
                        "capacity": {"requests": {"memory": "2Gi"}},
                    },
                },
                {
                    "name": "any",
                    "firstAvailable": [
                        {"name": "large", "deviceClassName": "c", "allocationMode": "All"},
                        {
                            "name": "small",
                            "deviceClassName": "d",
                            "allocationMode": "ExactCount",
                            "count": 1,
                        },
                    ],
                },
            ],
            "constraints": [{"requests": ["exact", "any"], "matchAttribute": "example.com/numa"}],
            "config": [
                {"requests": ["any/small"], "opaque": {"driver": DRIVER, "parameters": {"a": "b"}}}
            ],
        }
    },
}
ALLOCATED: JsonObject = {
    "allocation": {
        "devices": {
            "results": [
                {"request": "exact", "driver": DRIVER, "pool": "p", "device": "gpu-0"},
                {"request": "any/small", "driver": DRIVER, "pool": "p", "device": "gpu-1"},
            ],
            "config": [
                {
                    "source": "FromClaim",
                    "requests": ["any/small"],
                    "opaque": {"driver": DRIVER, "parameters": {"a": "b"}},
                }
            ],
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
            ]
        },
    },
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "some-uid"}],
    "devices": [
        {
            "driver": DRIVER,
            "pool": "p",
            "device": "gpu-0",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Ok",
                    "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
            "data": {"serial": "4711"},
            "networkData": {"interfaceName": "net1", "ips": ["10.0.0.1/24"]},
        }
    ],
}


def test_of_devices_nothing_is_lost_on_the_way(control_plane: ControlPlane, namespace: str) -> None:
    """They are read as the API server writes them: written again, they are the same."""
    for name, spec in DEVICES.items():
        kind = KINDS[name]
        collection = kind.path.collection(namespace if kind.path.namespaced else "")
        body = {"metadata": {"name": "whole"}, "spec": spec}
        written = control_plane.request("POST", collection, body)
        if name == "ResourceClaim":
            body = {**written, "status": ALLOCATED}
            written = control_plane.request("PUT", f"{collection}/whole/status", body)
            assert set(written["status"]) == set(ALLOCATED)
        read = decoder_of(kind.type).decode(json.dumps(written).encode())
        again = json.loads(msgspec.json.encode(read))
        assert again["spec"] == _without_empty(written["spec"])
        assert again.get("status") == _without_empty(written.get("status"))
        _assert_part_of(spec, written["spec"], name)


def _without_empty(tree: Any) -> Any:
    """Leave out what says nothing, as both sides may: "", 0 of a count, and the like."""
    if isinstance(tree, dict):
        return {
            key: _without_empty(each)
            for key, each in tree.items()
            if each != "" and not (key == "observedGeneration" and each == 0)
        }
    return [_without_empty(each) for each in tree] if isinstance(tree, list) else tree


def _assert_part_of(sent: Any, written: Any, where: str) -> None:
    """Check that the API server has not dropped anything, so that the test is about it."""
    if isinstance(sent, dict):
        for key, each in sent.items():
            assert key in written, f"{where}.{key} is not served by default"
            _assert_part_of(each, written[key], f"{where}.{key}")
    elif isinstance(sent, list):
        for number, (each, got) in enumerate(zip(sent, written, strict=True)):
            _assert_part_of(each, got, f"{where}[{number}]")
    else:
        assert sent == written, where


def create_bound_claim(plane: ControlPlane, namespace: str, name: str) -> None:
    """Create a volume and a claim that are bound to each other."""
    access = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    claim = plane.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/persistentvolumeclaims",
        {
            "metadata": {
                "name": name,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                **access,
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": f"{namespace}-{name}",
            },
        },
    )
    reference = {"namespace": namespace, "name": name, "uid": claim["metadata"]["uid"]}
    volume: JsonObject = {
        "metadata": {"name": f"{namespace}-{name}"},
        "spec": {
            **access,
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
        },
    }
    plane.request("POST", "/api/v1/persistentvolumes", volume)


def with_claim(body: JsonObject, claim: str) -> JsonObject:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return {**body, "spec": {**body["spec"], "volumes": [volume]}}
