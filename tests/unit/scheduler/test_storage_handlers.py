"""What informers report about storage goes to the state first, and then wakes whom it may help."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubesched.api.meta import ObjectMeta
from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.client.access import ClusterAccess, Server
from kubesched.client.rest import ApiClient
from kubesched.cluster.object_store import ObjectStore
from kubesched.cluster.storage import Storage
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change
from kubesched.scheduler.storage_handlers import Stopwatch, StorageHandler, storage_informers
from tests.unit.storage_builders import claim

KINDS: list[tuple[str, type[Any], Resource]] = [
    ("classes", StorageClass, Resource.STORAGE_CLASS),
    ("csi_nodes", CSINode, Resource.CSI_NODE),
    ("drivers", CSIDriver, Resource.CSI_DRIVER),
    ("capacities", CSIStorageCapacity, Resource.CSI_STORAGE_CAPACITY),
    ("attachments", VolumeAttachment, Resource.VOLUME_ATTACHMENT),
    ("volumes", PersistentVolume, Resource.PERSISTENT_VOLUME),
    ("claims", PersistentVolumeClaim, Resource.PERSISTENT_VOLUME_CLAIM),
]


class Queue:
    """A queue that notes what it is told, and what the store had at that moment."""

    def __init__(self, store: ObjectStore[Any, Any]) -> None:
        self.store = store
        self.told: list[tuple[Change[Any], list[str]]] = []

    def hears_of(self, event: ClusterEvent) -> bool:
        return event.action is not Action.DELETE

    def move(self, change: Change[Any]) -> None:
        versions = [each.metadata.resource_version for each in self.store]
        self.told.append((change, versions))


@pytest.mark.parametrize(("store_name", "kind", "resource"), KINDS)
def test_the_queue_hears_of_everything_after_the_state(
    store_name: str, kind: type[Any], resource: Resource
) -> None:
    store = getattr(Storage(), store_name)
    queue: Any = Queue(store)
    handler: StorageHandler[Any] = StorageHandler(store, queue, resource)
    old = kind(metadata=ObjectMeta(name="x", namespace="ns", resource_version="1"))
    new = kind(metadata=ObjectMeta(name="x", namespace="ns", resource_version="2"))

    handler.on_add(old, True)
    handler.on_update(old, new)
    handler.on_delete(new)

    events = [change.event for change, _ in queue.told]
    assert [event.resource for event in events] == [resource] * 3
    assert [event.action for event in events] == [Action.ADD, Action.UPDATE, Action.DELETE]
    assert [(change.old, change.new) for change, _ in queue.told] == [
        (None, old),
        (old, new),
        (new, None),
    ]
    assert [versions for _, versions in queue.told] == [["1"], ["2"], []]


def test_news_of_a_claim_end_what_was_assumed_of_it() -> None:
    storage = Storage()
    queue: Any = Queue(storage.claims)
    handler: StorageHandler[PersistentVolumeClaim] = StorageHandler(
        storage.claims, queue, Resource.PERSISTENT_VOLUME_CLAIM
    )
    handler.on_add(claim("c"), False)
    storage.claims.assume(claim("c", volume="decided"))

    handler.on_update(claim("c"), claim("c", volume="done", version="2"))

    assert storage.claims.get("default", "c") == claim("c", volume="done", version="2")


OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "d"},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "spec": {"drivers": []}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "spec": {}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "storageClassName": "x"},
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "x"}},
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "d", "volumeHandle": "h"},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    },
]


def test_informers_fill_the_stores_from_an_api_server() -> None:
    async def scenario() -> None:
        storage = Storage()
        queue: Any = Queue(storage.classes)
        async with EmbeddedCluster(run_kubelet=False) as cluster:
            for each in OBJECTS:
                cluster.create({**each, "metadata": {"name": "x"}})
            access = ClusterAccess(server=Server.parse(cluster.url, where="the test"))
            async with ApiClient(access) as client:
                informers = storage_informers(client, storage, queue)
                tasks = [asyncio.create_task(one.run()) for one in informers]
                try:
                    async with asyncio.timeout(10):
                        for informer in informers:
                            await informer.synced.wait()
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
        for store_name, kind, _ in KINDS:
            found = list(getattr(storage, store_name))
            assert [type(each) for each in found] == [kind], store_name
            assert found[0].metadata.name == "x"
        assert {change.event.resource for change, _ in queue.told} == {each[2] for each in KINDS}

    asyncio.run(scenario())


def test_what_some_plugin_wants_to_hear_of_is_timed() -> None:
    storage, told, readings = Storage(), list[tuple[str, float]](), iter(range(100))
    queue: Any = Queue(storage.claims)
    watch = Stopwatch(lambda: float(next(readings)), lambda *each: told.append(each))
    handler = StorageHandler(storage.claims, queue, Resource.PERSISTENT_VOLUME_CLAIM, watch)
    handler.on_add(claim("c"), False)
    handler.on_update(claim("c"), claim("c"))
    handler.on_delete(claim("c"))
    assert told == [("PersistentVolumeClaimAdd", 1.0), ("PersistentVolumeClaimUpdate", 1.0)]
