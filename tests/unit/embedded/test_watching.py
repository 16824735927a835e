"""Watchers: what they hear of, and what happens to those who do not listen."""

from __future__ import annotations

import asyncio
from typing import Any

from kubesched.embedded.resources import PODS
from kubesched.embedded.selectors import parse_fields, parse_labels
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.versions import ADDED, VersionChange, opening_of
from kubesched.embedded.watching import ChangeWatcher, WatchSelection

JsonObject = dict[str, Any]


def pod(labels: dict[str, str] | None = None, node: str = "") -> JsonObject:
    return {"metadata": {"name": "x", "labels": labels or {}}, "spec": {"nodeName": node}}


def kind_and_labels(kind: str, change: VersionChange) -> tuple[str, dict[str, str]]:
    return kind, change.state(kind).obj["metadata"]["labels"]


def watched(
    selection: WatchSelection, *states: JsonObject | None
) -> list[tuple[str, dict[str, str]]]:
    """Return what a watcher hears of a pod that goes through these states; None deletes it."""
    store = VersionedStore()
    watcher = store.watch(PODS, selection, kind_and_labels, since=0)
    for state in states:
        old = store.get(PODS, "ns/x")
        if old is None:
            assert state is not None
            store.add(PODS, "ns/x", state)
        elif state is None:
            store.remove(PODS, old)
        else:
            store.replace(PODS, old, state)
    return watcher.take()


def test_an_object_comes_and_goes_with_its_labels() -> None:
    selection = WatchSelection(PODS, labels=parse_labels("seen=yes"))

    heard = watched(
        selection,
        pod({"seen": "no"}),
        pod({"seen": "yes", "n": "1"}),
        pod({"seen": "yes", "n": "2"}),
        pod({"seen": "no", "n": "3"}),
        None,
    )

    assert heard == [
        ("ADDED", {"seen": "yes", "n": "1"}),
        ("MODIFIED", {"seen": "yes", "n": "2"}),
        ("DELETED", {"seen": "yes", "n": "2"}),
    ]


def test_what_stops_matching_has_the_revision_of_the_change() -> None:
    store = VersionedStore()
    selection = WatchSelection(PODS, labels=parse_labels("seen"))
    watcher = store.watch(PODS, selection, lambda kind, change: change.state(kind), since=0)
    first = store.add(PODS, "ns/x", pod({"seen": "yes"}))
    store.replace(PODS, first, pod())

    *_, last = watcher.take()

    assert last.obj["metadata"] == {
        "name": "x",
        "labels": {"seen": "yes"},
        "resourceVersion": "2",
    }
    assert first.obj["metadata"]["resourceVersion"] == "1"


def test_fields_are_read_by_their_names() -> None:
    fields = parse_fields("spec.nodeName=n1", PODS.field_name)

    heard = watched(WatchSelection(PODS, fields=fields), pod(), pod(node="n1"), pod(node="n2"))

    assert [kind for kind, _ in heard] == ["ADDED", "DELETED"]


def test_namespaces_are_told_apart() -> None:
    assert watched(WatchSelection(PODS, namespace="ns"), pod(), None) == [
        ("ADDED", {}),
        ("DELETED", {}),
    ]
    assert watched(WatchSelection(PODS, namespace="n"), pod(), None) == []


def test_some_kinds_of_changes_can_be_asked_for() -> None:
    store = VersionedStore()
    watcher = store.watch(
        PODS, WatchSelection(PODS), kind_and_labels, since=0, kinds=frozenset({ADDED})
    )

    version = store.add(PODS, "ns/x", pod())
    store.replace(PODS, version, pod({"a": "b"}))

    assert [kind for kind, _ in watcher.take()] == ["ADDED"]


def test_watchers_share_the_bytes_of_a_line() -> None:
    store = VersionedStore()
    opening = opening_of("Pod", "v1")
    watchers = [
        store.watch(PODS, WatchSelection(PODS), lambda k, c: c.line(k, opening), since=0)
        for _ in range(2)
    ]

    version = store.add(PODS, "ns/x", pod())

    (first,), (second,) = (watcher.take() for watcher in watchers)
    assert first is second
    assert (
        first
        == b'{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1",%b}\n' % (version.body[1:])
    )


def test_who_does_not_listen_is_cut_off() -> None:
    store = VersionedStore()
    slow = store.watch(PODS, WatchSelection(PODS), kind_and_labels, since=0, limit=3)
    keen = store.watch(PODS, WatchSelection(PODS), kind_and_labels, since=0, limit=3)
    for number in range(5):
        store.add(PODS, f"ns/{number}", pod())
        keen.take()

    assert slow.closed
    assert slow.take() == []
    assert not keen.closed


def test_a_long_history_does_not_cut_off_who_resumes() -> None:
    store = VersionedStore()
    for number in range(5):
        store.add(PODS, f"ns/{number}", pod())

    watcher = store.watch(PODS, WatchSelection(PODS), kind_and_labels, since=0, limit=3)

    assert len(watcher.take()) == 5


def test_waiting_ends_with_a_change_with_time_and_with_closing() -> None:
    async def scenario() -> None:
        store = VersionedStore()
        watcher: ChangeWatcher[Any] = store.watch(
            PODS, WatchSelection(PODS), kind_and_labels, since=0
        )
        loop = asyncio.get_running_loop()

        loop.call_soon(store.add, PODS, "ns/x", pod())
        await asyncio.wait_for(watcher.wait(), 5)
        assert len(watcher.take()) == 1

        await asyncio.wait_for(watcher.wait(0.01), 5)
        assert watcher.take() == []

        loop.call_soon(watcher.close)
        await asyncio.wait_for(watcher.wait(), 5)
        assert watcher.closed

    asyncio.run(scenario())
