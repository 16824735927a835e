"""What informers report goes to the store of its kind first, and then wakes pods it may help."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.meta import ObjectMeta
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.object_store import ObjectStore
from kubesched.cluster.storage import Storage
from kubesched.kinds import KINDS, ObjectKind, stores
from kubesched.queue.events import Action, ClusterEvent
from kubesched.queue.hints import Change
from kubesched.scheduler.store_handler import Stopwatch, StoreHandler
from tests.support.storage_objects import claim

#: All kinds that are kept in a store.
STORED = [kind for kind, _ in stores(Cluster())]
CLAIM = KINDS["PersistentVolumeClaim"]


class Queue:
    """A queue that notes what it is told, and what the store had at that moment."""

    def __init__(self, store: ObjectStore[Any, Any]) -> None:
        self.store = store
        self.told: list[tuple[Change[Any], list[str]]] = []

    def has_listeners(self, event: ClusterEvent) -> bool:
        return event.action is not Action.DELETE

    def move(self, change: Change[Any]) -> None:
        versions = [each.metadata.resource_version for each in self.store]
        self.told.append((change, versions))


def _versions(kind: ObjectKind) -> tuple[Any, Any]:
    meta = ObjectMeta(name="x", namespace="ns", resource_version="1")
    newer = ObjectMeta(name="x", namespace="ns", resource_version="2")
    return kind.type(metadata=meta), kind.type(metadata=newer)


def _store(kind: ObjectKind, cluster: Cluster) -> ObjectStore[Any, Any]:
    assert kind.store is not None
    return kind.store(cluster)


@pytest.mark.parametrize("kind", STORED, ids=lambda kind: kind.name)
def test_objects_come_change_and_go(kind: ObjectKind) -> None:
    cluster = Cluster()
    store = _store(kind, cluster)
    queue: Any = Queue(store)
    handler = StoreHandler(kind, store, queue)
    old, new = _versions(kind)

    def check(*want: Any) -> None:
        assert list(store) == list(want)
        cluster.validate()

    handler.on_add(old, True)
    check(old)
    handler.on_update(old, new)
    check(new)
    for _ in range(2):
        handler.on_delete(new)
        check()


@pytest.mark.parametrize("kind", STORED, ids=lambda kind: kind.name)
def test_the_queue_hears_of_what_may_help_after_the_state(kind: ObjectKind) -> None:
    store = _store(kind, Cluster())
    queue: Any = Queue(store)
    handler = StoreHandler(kind, store, queue)
    old, new = _versions(kind)

    handler.on_add(old, True)
    handler.on_update(old, new)
    handler.on_delete(new)

    if not kind.causes_events:
        assert queue.told == []
        return
    events = [change.event for change, _ in queue.told]
    assert [event.resource for event in events] == [kind.event_resource] * 3
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
    handler = StoreHandler(CLAIM, storage.claims, queue)
    handler.on_add(claim("c"), False)
    storage.claims.assume(claim("c", volume="decided"))

    handler.on_update(claim("c"), claim("c", volume="done", version="2"))

    assert storage.claims.get("default", "c") == claim("c", volume="done", version="2")


def test_what_some_plugin_wants_to_hear_of_is_timed() -> None:
    storage, told, readings = Storage(), list[tuple[str, float]](), iter(range(100))
    queue: Any = Queue(storage.claims)
    watch = Stopwatch(lambda: float(next(readings)), lambda *each: told.append(each))
    handler = StoreHandler(CLAIM, storage.claims, queue, watch)
    handler.on_add(claim("c"), False)
    handler.on_update(claim("c"), claim("c"))
    handler.on_delete(claim("c"))
    assert told == [("PersistentVolumeClaimAdd", 1.0), ("PersistentVolumeClaimUpdate", 1.0)]
