"""The provisioner that only pretends: claims get volumes, volumes get claims."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubesched.api import names
from kubesched.clock import VirtualClock
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.embedded.provisioner import CLAIMS, CLASSES, VOLUMES, SimulatedProvisioner
from kubesched.embedded.resources import ServedResource
from kubesched.embedded.versions import Version
from tests.support.waiting import eventually

JsonObject = dict[str, Any]

START = 1_767_323_045.0
SELECTED = "volume.kubernetes.io/selected-node"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
COMPLETED = "pv.kubernetes.io/bind-completed"


class World:
    """A cluster whose provisioner is shown everything after each step."""

    def __init__(self) -> None:
        self.cluster = EmbeddedCluster(clock=VirtualClock(START), run_kubelet=False)
        self.store = self.cluster.store
        self.provisioner = SimulatedProvisioner(self.cluster.registry)

    def storage_class(self, name: str, **fields: Any) -> None:
        self._create(
            "storage.k8s.io/v1",
            "StorageClass",
            {"metadata": {"name": name}, "provisioner": "disk.example.com", **fields},
        )

    def claim(
        self, name: str = "c", storage: str = "1Gi", *, meta: JsonObject | None = None, **spec: Any
    ) -> None:
        wanted = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}},
            **spec,
        }
        self._create(
            "v1",
            "PersistentVolumeClaim",
            {"metadata": {"name": name, **(meta or {})}, "spec": wanted},
        )

    def volume(
        self, name: str = "v", storage: str = "5Gi", *, meta: JsonObject | None = None, **spec: Any
    ) -> None:
        offered = {
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "capacity": {"storage": storage},
            "csi": {"driver": "disk.example.com", "volumeHandle": name},
            **spec,
        }
        self._create(
            "v1", "PersistentVolume", {"metadata": {"name": name, **(meta or {})}, "spec": offered}
        )

    def _create(self, api_version: str, kind: str, obj: JsonObject) -> None:
        self.cluster.create({"apiVersion": api_version, "kind": kind, **obj})
        self.notice()

    def change(self, resource: ServedResource, key: str, **fields: Any) -> None:
        """Write parts of an object, as a client would."""
        old = self._get(resource, key)
        obj = {**old.obj, "metadata": dict(old.obj["metadata"])}
        for name, value in fields.items():
            obj[name] = {**obj[name], **value}
        self.store.replace(resource, old, obj)
        self.notice()

    def remove(self, resource: ServedResource, key: str) -> None:
        self.store.remove(resource, self._get(resource, key))
        look_at = {VOLUMES: self.provisioner.look_at_volume, CLAIMS: self.provisioner.look_at_claim}
        look_at[resource](key)
        self.notice()

    def _get(self, resource: ServedResource, key: str) -> Version:
        version = self.store.get(resource, key)
        assert version is not None, key
        return version

    def notice(self) -> None:
        """Show the provisioner everything until it has nothing more to do."""
        revision = -1
        while revision != self.store.revision:
            revision = self.store.revision
            for resource, look_at in (
                (CLASSES, self.provisioner.look_at_class),
                (VOLUMES, self.provisioner.look_at_volume),
                (CLAIMS, self.provisioner.look_at_claim),
            ):
                for key in list(self.store.collection(resource).keys()):
                    look_at(key)

    def of_claim(self, name: str = "c") -> JsonObject:
        return self._get(CLAIMS, f"default/{name}").obj

    def of_volume(self, name: str = "v") -> JsonObject:
        return self._get(VOLUMES, name).obj

    def bound_to(self, name: str = "c") -> str:
        """Return the volume of a claim, "" if the two are not bound to each other for good."""
        claim = self.of_claim(name)
        volume_name = claim["spec"].get("volumeName", "")
        if not volume_name or claim["status"]["phase"] != "Bound":
            return ""
        volume = self.of_volume(volume_name)
        assert volume["status"]["phase"] == "Bound"
        assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
        assert claim["metadata"]["annotations"][COMPLETED] == "yes"
        return str(volume_name)


@pytest.fixture
def world() -> World:
    return World()


# --- classes that do not wait -------------------------------------------------------------------


def test_a_claim_of_an_immediate_class_gets_a_new_volume_at_once(world: World) -> None:
    world.storage_class("fast")
    world.claim(storageClassName="fast", volumeMode="Block")

    claim = world.of_claim()
    name = world.bound_to()
    assert name == f"pvc-{claim['metadata']['uid']}"
    assert claim["status"]["capacity"] == {"storage": "1Gi"}
    assert claim["status"]["accessModes"] == ["ReadWriteOnce"]
    spec = world.of_volume(name)["spec"]
    assert spec["csi"] == {"driver": "disk.example.com", "volumeHandle": name}
    assert (spec["persistentVolumeReclaimPolicy"], spec["volumeMode"]) == ("Delete", "Block")
    assert "nodeAffinity" not in spec


def test_the_smallest_volume_that_serves_is_taken_before_one_is_made(world: World) -> None:
    world.storage_class("fast")
    world.volume("large", "10Gi", storageClassName="fast")
    world.volume("right", "5Gi", storageClassName="fast")
    world.volume("small", "1Gi", storageClassName="fast")
    world.volume("elsewhere", "3Gi", storageClassName="slow")
    world.claim(storage="2Gi", storageClassName="fast")

    assert world.bound_to() == "right"
    assert world.of_claim()["status"]["capacity"] == {"storage": "5Gi"}
    assert world.of_volume("right")["metadata"]["annotations"][BY_CONTROLLER] == "yes"
    assert world.of_volume("large")["status"]["phase"] == "Available"


@pytest.mark.parametrize(
    "wanted",
    [
        {"storage": "6Gi"},
        {"accessModes": ["ReadWriteMany"]},
        {"volumeMode": "Block"},
        {"selector": {"matchLabels": {"disk": "ssd"}}},
        {"selector": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}},
        {"volumeAttributesClassName": "gold"},
        {"storageClassName": "other"},
    ],
    ids=["size", "modes", "volume mode", "labels", "selector", "attributes", "class"],
)
def test_volumes_that_do_not_serve(world: World, wanted: dict[str, Any]) -> None:
    world.volume(storageClassName="", meta={"labels": {"disk": "hdd"}})
    world.claim(**{"storageClassName": "", **wanted})
    assert world.bound_to() == ""

    world.claim("d", storageClassName="", selector={"matchLabels": {"disk": "hdd"}})
    assert world.bound_to("d") == "v"


def test_a_claim_waits_for_a_volume_to_come(world: World) -> None:
    world.claim(storageClassName="")
    world.claim("d", storageClassName="")
    assert world.bound_to() == ""
    assert world.of_claim()["status"]["phase"] == "Pending"

    world.volume()
    assert [world.bound_to("c"), world.bound_to("d")] == ["v", ""]


def test_a_claim_waits_for_its_class_to_come(world: World) -> None:
    world.claim(storageClassName="fast")
    assert world.bound_to() == ""

    world.storage_class("fast")
    assert world.bound_to().startswith("pvc-")


def test_claims_without_a_class_get_the_default_one(world: World) -> None:
    world.claim()
    world.claim("none", storageClassName="")
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    world.storage_class("standard", metadata={"name": "standard", "annotations": default})

    assert world.of_claim()["spec"]["storageClassName"] == "standard"
    assert world.bound_to().startswith("pvc-")
    assert world.bound_to("none") == ""


def test_nobody_makes_volumes_of_a_class_without_provisioner(world: World) -> None:
    world.storage_class("local", provisioner="kubernetes.io/no-provisioner")
    world.claim(storageClassName="local")

    assert world.bound_to() == ""


# --- classes that wait --------------------------------------------------------------------------


def test_a_claim_of_a_class_that_waits_gets_its_volume_once_a_node_is_selected(
    world: World,
) -> None:
    world.storage_class("wait", volumeBindingMode="WaitForFirstConsumer")
    world.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1", "labels": {names.LABEL_ZONE: "a"}},
        }
    )
    world.volume(storageClassName="wait")
    world.claim(storageClassName="wait")
    assert world.bound_to() == "", "not even a volume that would serve"

    world.change(CLAIMS, "default/c", metadata={"annotations": {SELECTED: "n1"}})

    name = world.bound_to()
    assert name.startswith("pvc-")
    required = world.of_volume(name)["spec"]["nodeAffinity"]["required"]
    condition = {"key": names.LABEL_ZONE, "operator": "In", "values": ["a"]}
    assert required == {"nodeSelectorTerms": [{"matchExpressions": [condition]}]}
    assert world.of_claim()["metadata"]["annotations"][SELECTED] == "n1"


def test_a_node_that_is_not_there_is_given_back(world: World) -> None:
    world.storage_class("wait", volumeBindingMode="WaitForFirstConsumer")
    world.claim(storageClassName="wait", meta={"annotations": {SELECTED: "gone"}})

    assert world.bound_to() == ""
    assert SELECTED not in world.of_claim()["metadata"]["annotations"]


def test_a_volume_that_the_scheduler_took_for_a_claim_is_bound_to_it(world: World) -> None:
    world.storage_class(
        "local",
        provisioner="kubernetes.io/no-provisioner",
        volumeBindingMode="WaitForFirstConsumer",
    )
    world.volume(storageClassName="local")
    world.claim(storageClassName="local")
    reference = {
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "c",
        "uid": world.of_claim()["metadata"]["uid"],
    }

    world.change(
        VOLUMES,
        "v",
        metadata={"annotations": {BY_CONTROLLER: "yes"}},
        spec={"claimRef": reference},
    )

    assert world.bound_to() == "v"
    assert world.of_claim()["metadata"]["annotations"][BY_CONTROLLER] == "yes"


# --- volumes and claims that name each other ----------------------------------------------------


def test_a_volume_that_names_its_claim_waits_for_it(world: World) -> None:
    world.volume(claimRef={"namespace": "default", "name": "c"}, storageClassName="")
    world.claim("first", storageClassName="")
    assert world.of_volume()["status"]["phase"] == "Available"
    assert world.bound_to("first") == "", "it is not for everybody"

    world.claim(storageClassName="")
    assert world.bound_to() == "v"
    assert BY_CONTROLLER not in (world.of_volume()["metadata"].get("annotations") or {})


def test_a_claim_that_names_its_volume_waits_for_it(world: World) -> None:
    world.claim(volumeName="v", storageClassName="")
    assert world.of_claim()["status"]["phase"] == "Pending"

    world.volume(storageClassName="")
    assert world.bound_to() == "v"
    assert BY_CONTROLLER not in world.of_claim()["metadata"]["annotations"]


def test_a_claim_cannot_have_a_volume_that_is_another_claims(world: World) -> None:
    world.volume(storageClassName="")
    world.claim("first", storageClassName="")
    world.claim(volumeName="v", storageClassName="")

    assert (world.bound_to("first"), world.bound_to()) == ("v", "")


def test_a_volume_taken_for_a_claim_that_has_another_is_given_back(world: World) -> None:
    world.volume("mine", storageClassName="")
    world.claim(storageClassName="")
    world.volume(storageClassName="")
    uid = world.of_claim()["metadata"]["uid"]

    world.change(
        VOLUMES,
        "v",
        metadata={"annotations": {BY_CONTROLLER: "yes"}},
        spec={"claimRef": {"namespace": "default", "name": "c", "uid": uid}},
    )

    assert world.bound_to() == "mine"
    assert "claimRef" not in world.of_volume()["spec"]
    assert world.of_volume()["status"]["phase"] == "Available"


# --- the end ------------------------------------------------------------------------------------


def test_a_volume_goes_with_its_claim_or_stays_as_its_policy_says(world: World) -> None:
    world.storage_class("fast")
    world.claim(storageClassName="fast")
    made = world.bound_to()
    world.volume("kept", storageClassName="")
    world.claim("d", storageClassName="")
    assert world.bound_to("d") == "kept"

    world.remove(CLAIMS, "default/c")
    world.remove(CLAIMS, "default/d")

    assert world.store.get(VOLUMES, made) is None
    assert world.of_volume("kept")["status"]["phase"] == "Released"
    world.claim("e", storageClassName="")
    assert world.bound_to("e") == "", "it may still hold somebody's data"


def test_a_claim_that_comes_back_under_the_same_name_is_another_claim(world: World) -> None:
    world.volume(storageClassName="")
    world.claim(storageClassName="")
    world.remove(CLAIMS, "default/c")
    world.claim(storageClassName="")

    assert world.of_volume()["status"]["phase"] == "Released"
    assert world.bound_to() == ""


def test_a_claim_whose_volume_is_gone_is_lost(world: World) -> None:
    world.volume(storageClassName="")
    world.claim(storageClassName="")

    world.remove(VOLUMES, "v")

    assert world.of_claim()["status"]["phase"] == "Lost"


def test_nothing_is_written_when_there_is_nothing_to_do(world: World) -> None:
    world.storage_class("fast")
    world.claim(storageClassName="fast")
    world.volume()
    revision = world.store.revision

    world.notice()

    assert world.store.revision == revision


# --- at work ------------------------------------------------------------------------------------


def test_it_runs_with_the_kubelet() -> None:
    async def until_bound(cluster: EmbeddedCluster, name: str) -> None:
        def is_bound() -> bool:
            claim = cluster.store.get(CLAIMS, f"default/{name}")
            return claim is not None and claim.obj["status"]["phase"] == "Bound"

        await eventually(is_bound)

    def claim(name: str) -> JsonObject:
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "fast",
            },
        }

    async def scenario() -> None:
        cluster = EmbeddedCluster()
        cluster.create(claim("early"))
        async with cluster:
            cluster.create(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": "fast"},
                    "provisioner": "disk.example.com",
                }
            )
            cluster.create(claim("late"))
            await until_bound(cluster, "early")
            await until_bound(cluster, "late")

    asyncio.run(scenario())
