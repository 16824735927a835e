"""The store against a naive model: what handlers hear is exactly what changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.client.store import Added, Change, Deleted, InformerStore, Key, Updated, key_of

from .objects import Meta, Thing


def _thing(name: str, uid: str = "u", version: str = "1") -> Thing:
    return Thing(Meta(name, "ns", uid, version))


def _filled(*things: Thing) -> InformerStore[Thing]:
    store: InformerStore[Thing] = InformerStore()
    for item in things:
        list(store.apply(item))
    return store


def test_a_new_object_is_added() -> None:
    store = _filled()

    assert list(store.apply(_thing("a"))) == [Added(_thing("a"))]
    assert dict(store.objects) == {("ns", "a"): _thing("a")}


def test_another_version_is_an_update() -> None:
    store = _filled(_thing("a"))

    changes = list(store.apply(_thing("a", version="2")))

    assert changes == [Updated(_thing("a"), _thing("a", version="2"))]


def test_the_same_version_is_no_news() -> None:
    assert list(_filled(_thing("a")).apply(_thing("a"))) == []


def test_a_namesake_is_another_object() -> None:
    store = _filled(_thing("a", uid="old"))

    changes = list(store.apply(_thing("a", uid="new", version="5")))

    assert changes == [Deleted(_thing("a", uid="old")), Added(_thing("a", uid="new", version="5"))]


def test_a_deletion_brings_the_last_state() -> None:
    store = _filled(_thing("a"))

    assert list(store.remove(_thing("a", version="7"))) == [Deleted(_thing("a", version="7"))]
    assert list(store.remove(_thing("a", version="7"))) == []


def test_a_deletion_of_a_namesake_is_the_deletion_of_what_we_had() -> None:
    store = _filled(_thing("a", uid="mine"))

    assert list(store.remove(_thing("a", uid="other"))) == [Deleted(_thing("a", uid="mine"))]


def test_the_store_has_changed_when_the_change_is_heard() -> None:
    store = _filled(_thing("a", uid="old"))
    seen = [
        (type(change), key_of(_thing("a")) in store.objects)
        for change in store.apply(_thing("a", "new"))
    ]

    assert seen == [(Deleted, False), (Added, True)]


names = st.sampled_from("abc")
things = st.builds(_thing, names, uid=st.sampled_from("xy"), version=st.sampled_from("123"))
steps = st.one_of(
    st.tuples(st.just("apply"), things),
    st.tuples(st.just("remove"), things),
    st.tuples(st.just("list"), st.lists(things, unique_by=key_of, max_size=3)),
)


@given(st.lists(steps, max_size=30))
def test_who_follows_the_changes_has_the_same_state(history: list[tuple[str, object]]) -> None:
    store: InformerStore[Thing] = InformerStore()
    follower: dict[Key, Thing] = {}

    def follow(change: Change[Thing]) -> None:
        if isinstance(change, Added):
            assert key_of(change.object) not in follower
            follower[key_of(change.object)] = change.object
        elif isinstance(change, Updated):
            assert follower[key_of(change.old)] == change.old
            assert change.old.metadata.uid == change.new.metadata.uid
            assert change.old.metadata.resource_version != change.new.metadata.resource_version
            follower[key_of(change.new)] = change.new
        else:
            gone = follower.pop(key_of(change.object))
            assert gone.metadata.uid == change.object.metadata.uid

    for step, value in history:
        if step == "apply":
            assert isinstance(value, Thing)
            for change in store.apply(value):
                follow(change)
            assert store.objects[key_of(value)].metadata == value.metadata
        elif step == "remove":
            assert isinstance(value, Thing)
            for change in store.remove(value):
                follow(change)
            assert key_of(value) not in store.objects
        else:
            assert isinstance(value, list)
            for item in value:
                for change in store.apply(item):
                    follow(change)
            for change in store.retain({key_of(item) for item in value}):
                follow(change)
            assert {key_of(item): item for item in value} == store.objects
        assert follower == store.objects
