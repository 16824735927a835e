"""Objects of kinds that only plugins read."""

from __future__ import annotations

import pytest

from kubesched.api.meta import ApiStruct, ObjectMeta
from kubesched.cluster.plugin_objects import Lister, PluginObjects
from kubesched.errors import ConfigError


class Quota(ApiStruct, frozen=True):
    metadata: ObjectMeta
    limit: int = 0


def _quota(name: str, *, namespace: str = "", limit: int = 0) -> Quota:
    return Quota(metadata=ObjectMeta(name=name, namespace=namespace), limit=limit)


def test_a_lister_shows_what_the_store_has() -> None:
    store = PluginObjects().store("Quota", namespaced=True)
    lister: Lister[Quota] = Lister(store)
    assert (len(lister), list(lister)) == (0, [])

    store.put(_quota("a", namespace="ns", limit=3))

    assert lister.get("a", namespace="ns") == _quota("a", namespace="ns", limit=3)
    assert lister.get("a", namespace="other") is None
    assert [each.limit for each in lister] == [3]


def test_objects_without_namespace_are_found_by_name() -> None:
    store = PluginObjects().store("Quota", namespaced=False)
    store.put(_quota("a"))
    assert Lister(store).get("a") == _quota("a")


def test_each_change_is_another_version() -> None:
    objects = PluginObjects()
    store = objects.store("Quota", namespaced=False)
    lister = Lister(store)
    seen = {(lister.version, objects.version)}
    for change in (store.put, store.put, store.remove):
        change(_quota("a"))
        seen.add((lister.version, objects.version))
    assert len(seen) == 4
    objects.validate()


def test_a_kind_that_comes_after_the_informers_is_refused() -> None:
    objects = PluginObjects()
    before = objects.store("Quota", namespaced=True)
    objects.informers_started()

    assert objects.store("Quota", namespaced=True) is before
    with pytest.raises(ConfigError, match=r"Grant objects are not watched yet: .* restart it"):
        objects.store("Grant", namespaced=True)
