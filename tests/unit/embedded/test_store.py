"""The store: versions, history, and the past states that it can still show."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.embedded.refusals import StatusError
from kubesched.embedded.resources import EVENTS, NEW_EVENTS, NODES, PODS, RESOURCES
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.versions import VersionChange
from kubesched.embedded.watching import WatchSelection

JsonObject = dict[str, Any]


def obj(name: str, **fields: object) -> JsonObject:
    return {"metadata": {"name": name}, **fields}


def add(store: VersionedStore, key: str, **fields: object) -> int:
    return store.add(PODS, key, obj(key, **fields)).revision


def replace(store: VersionedStore, key: str, **fields: object) -> int:
    old = store.get(PODS, key)
    assert old is not None
    return store.replace(PODS, old, obj(key, **fields)).revision


def remove(store: VersionedStore, key: str) -> int:
    old = store.get(PODS, key)
    assert old is not None
    return store.remove(PODS, old).revision


def described(kind: str, change: VersionChange) -> tuple[str, str, int]:
    return kind, change.current.key, change.revision


def test_one_counter_numbers_all_writes() -> None:
    store = VersionedStore()

    revisions = [
        add(store, "a/x"),
        store.add(NODES, "n", obj("n")).revision,
        replace(store, "a/x", spec=1),
        remove(store, "a/x"),
    ]

    assert revisions == [1, 2, 3, 4]
    assert store.revision == 4


def test_a_version_carries_its_number_and_its_json() -> None:
    store = VersionedStore()

    version = store.add(PODS, "a/x", obj("x", spec={"y": 1}))

    assert version.obj["metadata"]["resourceVersion"] == "1"
    assert msgspec.json.decode(version.body) == version.obj


def test_older_versions_are_not_touched_by_newer_ones() -> None:
    store = VersionedStore()
    first = store.add(PODS, "a/x", obj("x"))

    replace(store, "a/x", spec=1)
    remove(store, "a/x")

    assert first.obj == {"metadata": {"name": "x", "resourceVersion": "1"}}


def test_a_deleted_object_has_the_number_of_its_deletion() -> None:
    store = VersionedStore()
    first = store.add(PODS, "a/x", obj("x", spec=1))

    last = store.remove(PODS, first)

    assert last.obj == {"metadata": {"name": "x", "resourceVersion": "2"}, "spec": 1}
    assert store.get(PODS, "a/x") is None


def test_keys_are_in_the_order_of_etcd() -> None:
    store = VersionedStore()
    for key in ("b/x", "a/y", "a-b/x", "a/x", "a.b/x"):
        add(store, key)
    pods = store.collection(PODS)

    assert list(pods.keys()) == ["a-b/x", "a.b/x", "a/x", "a/y", "b/x"]
    assert list(pods.keys("a")) == ["a/x", "a/y"]
    assert list(pods.keys("c")) == []


def test_the_two_event_apis_share_a_collection() -> None:
    store = VersionedStore()

    assert store.collection(EVENTS) is store.collection(NEW_EVENTS)
    others = [r for r in RESOURCES if r is not NEW_EVENTS]
    assert len({id(store.collection(r)) for r in others}) == len(others)


def test_a_past_state_is_rebuilt() -> None:
    store = VersionedStore()
    add(store, "a/x", value=1)
    add(store, "a/y", value=1)
    then = store.revision
    replace(store, "a/x", value=2)
    remove(store, "a/y")
    add(store, "a/y", value=3)
    add(store, "b/z", value=1)
    pods = store.collection(PODS)

    past = {v.key: v.obj["value"] for v in pods.snapshot(at=then)}
    present = {v.key: v.obj["value"] for v in pods.snapshot(at=store.revision)}

    assert past == {"a/x": 1, "a/y": 1}
    assert present == {"a/x": 2, "a/y": 3, "b/z": 1}
    assert [v.key for v in pods.snapshot(at=store.revision, namespace="b")] == ["b/z"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["put", "remove"])), max_size=40))
def test_every_state_can_be_rebuilt(steps: list[tuple[str, str]]) -> None:
    store = VersionedStore()
    states: dict[int, dict[str, int]] = {0: {}}
    model: dict[str, int] = {}
    for number, (key, action) in enumerate(steps):
        if action == "put":
            (replace if key in model else add)(store, key, value=number)
            model[key] = number
        elif key in model:
            remove(store, key)
            del model[key]
        states[store.revision] = dict(model)

    for revision, state in states.items():
        found = store.collection(PODS).snapshot(at=revision)
        assert {version.key: version.obj["value"] for version in found} == state


def test_changes_are_resumed_after_a_revision() -> None:
    store = VersionedStore()
    add(store, "a/x")
    then = store.revision
    replace(store, "a/x", value=1)
    remove(store, "a/x")

    watcher = store.watch(PODS, WatchSelection(PODS), described, since=then)

    assert watcher.take() == [("MODIFIED", "a/x", 2), ("DELETED", "a/x", 3)]


def test_old_changes_are_forgotten() -> None:
    store = VersionedStore(history=2)
    for name in "abcd":
        add(store, name)
    pods = store.collection(PODS)

    assert pods.forgotten == 2
    assert [c.current.key for c in pods.changes_since(2)] == ["c", "d"]
    with pytest.raises(StatusError, match=r"too old resource version: 1 \(2\)") as caught:
        pods.changes_since(1)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")
    assert pods.remembers(2)
    assert not pods.remembers(1)


def test_compaction_forgets_all_but_the_present() -> None:
    store = VersionedStore()
    add(store, "a")
    add(store, "b")

    store.compact()
    add(store, "c")

    pods = store.collection(PODS)
    assert [v.key for v in pods.snapshot(at=store.revision)] == ["a", "b", "c"]
    assert pods.remembers(2)
    assert not pods.remembers(1)
    assert not store.collection(NODES).remembers(1)


def test_changes_of_other_collections_are_not_heard() -> None:
    store = VersionedStore()
    watcher = store.watch(PODS, WatchSelection(PODS), described, since=0)

    store.add(NODES, "n", obj("n"))

    assert watcher.take() == []


def test_a_watcher_that_left_hears_nothing() -> None:
    store = VersionedStore()
    watcher = store.watch(PODS, WatchSelection(PODS), described, since=0)

    store.collection(PODS).unwatch(watcher)
    add(store, "a")

    assert watcher.take() == []
