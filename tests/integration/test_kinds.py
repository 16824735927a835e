"""Every kind that the scheduler reads, as the real API server writes it.

An object with nothing but required fields has what Go's encoder makes of fields that were never
set, and some of that is ``null``. It is read in a list, in a watch and alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

import pytest

from kubesched.app import App
from kubesched.client import ApiClient, kubeconfig
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.kinds import KINDS
from tests.minimal_objects import DRIVER, MINIMAL

from .control_plane import MERGE_PATCH, ApiError, ControlPlane, JsonObject
from .scheduler_process import (
    node,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")


class Objects:
    """Minimal objects of all kinds, and where they are."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._namespace = namespace

    def create(self, name: str) -> None:
        """Create one of each kind."""
        for kind, required in MINIMAL.items():
            body = {"metadata": {"name": name}, **required}
            self._plane.request("POST", self.collection(kind), body)

    def touch(self, name: str) -> None:
        """Change one of each kind."""
        patch = {"metadata": {"annotations": {"touched": ""}}}
        for kind in MINIMAL:
            path = f"{self.collection(kind)}/{name}"
            self._plane.request("PATCH", path, patch, content_type=MERGE_PATCH)

    def collection(self, kind: str) -> str:
        path = KINDS[kind].path
        return path.collection(self._namespace if path.namespaced else "")

    def remove(self, name: str) -> None:
        """Delete what is neither in the namespace nor cleaned up anyway."""
        self._plane.request("DELETE", f"{self.collection('PriorityClass')}/{name}")
        self._plane.delete_namespace(name)


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


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
            await until(lambda: have("watched"))
            await asyncio.to_thread(objects.touch, "listed")
            await until(lambda: have("listed", touched=True))
            assert not any(app.informers.unreadable().values()), app.informers.unreadable()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await app.client.aclose()

    async def get_all() -> None:
        async with ApiClient(access) as client:
            for name, kind in KINDS.items():
                got = await client.get(f"{objects.collection(name)}/listed", kind.type)
                assert got.metadata.name == "listed"

    objects.create("listed")
    try:
        asyncio.run(read_all())
        asyncio.run(get_all())
    finally:
        for name in ("listed", "watched"):
            with contextlib.suppress(ApiError):  # not made, if the test failed early
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
