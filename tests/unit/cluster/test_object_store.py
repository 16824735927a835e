"""Stores of API objects: change logs, listeners, indexes, and assumed copies."""

from __future__ import annotations

import pytest

from kubesched.api.meta import ObjectMeta
from kubesched.api.storage import PersistentVolumeClaim, StorageClass
from kubesched.cluster.object_store import Assumptions, NamedStore, NamespacedStore
from kubesched.errors import ObjectError


def storage_class(name: str) -> StorageClass:
    return StorageClass(metadata=ObjectMeta(name=name))


def claim(name: str, version: str = "1", **labels: str) -> PersistentVolumeClaim:
    meta = ObjectMeta(name=name, namespace="x", resource_version=version, labels=labels)
    return PersistentVolumeClaim(metadata=meta)


class Claims(
    Assumptions[PersistentVolumeClaim, tuple[str, str]], NamespacedStore[PersistentVolumeClaim]
):
    """Claims with decisions that are not written yet."""

    def shown(self, name: str) -> PersistentVolumeClaim | None:
        return self._shown(("x", name))


def test_each_change_is_logged_and_reported_after_it_is_made() -> None:
    store, told = NamedStore[StorageClass](), list[tuple[str, bool]]()
    start = store.changes.position
    store.listeners.append(lambda key: told.append((key, store.get(key) is not None)))

    store.put(storage_class("a"))
    store.remove(storage_class("a"))
    store.remove(storage_class("a"))

    assert told == [("a", True), ("a", False)]
    assert list(store.changes.since(start) or ()) == ["a"]


def test_an_assumed_copy_hides_the_object_it_was_made_from() -> None:
    claims = Claims()
    claims.put(claim("a"))
    assumed = claim("a", state="assumed")
    claims.assume(assumed)

    assert claims.shown("a") is assumed
    assert list(claims) == [assumed]
    assert claims.is_assumed(("x", "a"))
    claims.validate()

    claims.restore(("x", "a"))
    assert claims.shown("a") == claim("a")


def test_a_new_version_discards_the_copy_and_the_same_version_does_not() -> None:
    claims = Claims()
    claims.put(claim("a"))
    claims.assume(claim("a", state="assumed"))

    claims.put(claim("a"))
    assert claims.is_assumed(("x", "a"))

    claims.put(claim("a", version="2"))
    assert not claims.is_assumed(("x", "a"))


def test_a_copy_of_an_old_version_or_of_a_deleted_object_is_rejected() -> None:
    claims = Claims()
    with pytest.raises(ObjectError, match='"x/a" not found'):
        claims.assume(claim("a"))

    claims.put(claim("a", version="2"))
    with pytest.raises(ObjectError, match=r"out of sync \(stored: 2, assume: 1\)"):
        claims.assume(claim("a", version="1"))
