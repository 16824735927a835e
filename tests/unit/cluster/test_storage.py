"""Storage objects: found by key and by index, hidden by what was decided about them."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from kubesched.api.meta import ObjectMeta
from kubesched.api.storage import (
    ClaimReference,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.cluster.incremental import Log
from kubesched.cluster.storage import Claims, Storage, Volumes
from kubesched.errors import InvariantError, ObjectError
from tests.support.storage_objects import (
    attachment,
    claim,
    csi_node,
    persistent_volume,
    storage_class,
)


def reserved(volume: PersistentVolume, claim_name: str = "c") -> PersistentVolume:
    reference = ClaimReference(namespace="default", name=claim_name)
    return replace(volume, spec=replace(volume.spec, claim_ref=reference))


# --- stores -------------------------------------------------------------------------------------


def test_objects_are_found_by_name_until_they_are_removed() -> None:
    storage = Storage()
    storage.classes.put(storage_class("fast"))
    storage.csi_nodes.put(csi_node("n1"))
    storage.claims.put(claim("c", namespace="ns"))

    assert storage.classes.get("fast") == storage_class("fast")
    assert storage.csi_nodes.get("n2") is None
    assert storage.claims.get("ns", "c") == claim("c", namespace="ns")
    assert storage.claims.get("other", "c") is None
    assert [each.metadata.name for each in storage.classes] == ["fast"]

    storage.classes.remove(storage_class("fast"))
    storage.classes.remove(storage_class("fast"))

    assert storage.classes.get("fast") is None
    assert len(storage.classes) == 0
    storage.validate()


def test_volumes_are_found_by_class_wherever_they_move() -> None:
    volumes = Volumes()
    volumes.put(persistent_volume("a", storage_class="fast"))
    volumes.put(persistent_volume("b", storage_class="fast"))
    volumes.put(persistent_volume("c"))
    volumes.put(persistent_volume("a", storage_class="slow"))

    def names(class_name: str) -> list[str]:
        return [each.metadata.name for each in volumes.of_class(class_name)]

    assert (names("fast"), names("slow"), names(""), names("x")) == (["b"], ["a"], ["c"], [])
    volumes.remove(persistent_volume("b"))
    assert names("fast") == []
    volumes.validate()


def test_attachments_are_found_by_node_and_by_volume() -> None:
    storage = Storage()
    storage.attachments.put(attachment("x", node="n1", volume="pv1"))
    storage.attachments.put(attachment("y", node="n1", volume="pv2"))
    storage.attachments.put(attachment("y", node="n2", volume="pv2"))

    assert [each.metadata.name for each in storage.attachments.of_node("n1")] == ["x"]
    assert [each.metadata.name for each in storage.attachments.of_node("n2")] == ["y"]
    assert [each.metadata.name for each in storage.attachments.of_volume("pv2")] == ["y"]
    assert storage.attachments.of_node("n3") == []


def test_capacities_are_found_by_class() -> None:
    storage = Storage()
    meta = ObjectMeta(name="a", namespace="kube-system")
    storage.capacities.put(CSIStorageCapacity(metadata=meta, storage_class_name="fast"))

    assert len(storage.capacities.of_class("fast")) == 1
    assert storage.capacities.of_class("slow") == []
    assert storage.capacities.get("kube-system", "a") is not None


def test_claims_are_found_by_the_volume_that_they_name() -> None:
    claims = Claims()
    claims.put(claim("c"))
    claims.put(claim("d", volume="pv1"))
    claims.put(claim("c", volume="pv1", version="2"))

    assert claims.keys_of_volume("pv1") == [("default", "d"), ("default", "c")]


def test_validate_notices_an_index_that_is_wrong() -> None:
    volumes = Volumes()
    volumes.put(persistent_volume("a", storage_class="fast"))
    volumes._objects["a"] = persistent_volume("a", storage_class="slow")

    with pytest.raises(InvariantError, match="index"):
        volumes.validate()


# --- what changed -------------------------------------------------------------------------------


def test_readers_learn_what_changed_since_they_last_looked() -> None:
    claims = Claims()
    seen = claims.changes.position
    claims.put(claim("a"))
    claims.put(claim("a", version="2"))
    claims.remove(claim("nobody"))

    assert claims.changes.since(seen) == [("default", "a")]
    assert claims.changes.since(claims.changes.position) == []

    seen = claims.changes.position
    claims.assume(claim("a", volume="pv1", version="2"))
    assert claims.changes.since(seen) == [("default", "a")]
    seen = claims.changes.position
    claims.restore(("default", "a"))
    claims.restore(("default", "a"))
    assert claims.changes.position == seen + 1


def test_readers_that_come_too_late_are_told_so() -> None:
    claims = Claims(Log(4))
    for number in range(10):
        claims.put(claim(f"c{number}"))

    assert claims.changes.position == 10
    assert claims.changes.since(0) is None
    assert claims.changes.since(8) == [("default", "c8"), ("default", "c9")]


# --- assumptions --------------------------------------------------------------------------------


def test_what_is_assumed_hides_the_object_until_it_is_restored() -> None:
    volumes = Volumes()
    seen = persistent_volume("a", storage_class="fast")
    volumes.put(seen)
    volumes.assume(reserved(seen))

    assert volumes.get("a") == reserved(seen)
    assert volumes.observed("a") == seen
    assert volumes.of_class("fast") == [reserved(seen)]
    assert list(volumes) == [reserved(seen)]
    assert volumes.is_assumed("a")

    volumes.restore("a")

    assert volumes.get("a") == seen
    assert not volumes.is_assumed("a")


def test_any_other_version_of_the_object_ends_the_assumption() -> None:
    volumes = Volumes()
    volumes.put(persistent_volume("a", version="5"))
    volumes.assume(reserved(persistent_volume("a", version="5")))

    volumes.put(persistent_volume("a", version="5"))
    assert volumes.is_assumed("a"), "a resync is not news"

    volumes.put(persistent_volume("a", version="6"))
    assert volumes.get("a") == persistent_volume("a", version="6")


def test_the_assumption_ends_with_the_object() -> None:
    volumes = Volumes()
    volumes.put(persistent_volume("a"))
    volumes.assume(reserved(persistent_volume("a")))
    volumes.remove(persistent_volume("a"))

    assert volumes.get("a") is None
    volumes.put(persistent_volume("a"))
    assert volumes.get("a") == persistent_volume("a")


def test_only_what_was_made_from_the_current_version_can_be_assumed() -> None:
    claims = Claims()
    with pytest.raises(ObjectError, match=r'^"default/c" not found$'):
        claims.assume(claim("c"))

    claims.put(claim("c", version="7"))
    with pytest.raises(ObjectError, match=r'^"default/c" is out of sync \(stored: 7, assume: 6\)$'):
        claims.assume(claim("c", version="6"))
    assert not claims.is_assumed(("default", "c"))


NAMES = st.sampled_from(["a", "b", "c"])
CLASSES = st.sampled_from(["", "fast", "slow"])


class AssumeStores(RuleBasedStateMachine):
    """Compares the stores with a model of two dictionaries."""

    @initialize()
    def begin(self) -> None:
        self.storage = Storage()
        self.seen: dict[str, PersistentVolume] = {}
        self.assumed: dict[str, PersistentVolume] = {}
        self.versions = 0
        self.read_position = 0
        self.changed: set[str] = set()

    @rule(name=NAMES, class_name=CLASSES)
    def informer_has_news(self, name: str, class_name: str) -> None:
        self.versions += 1
        volume = persistent_volume(name, storage_class=class_name, version=str(self.versions))
        self.storage.volumes.put(volume)
        self.seen[name] = volume
        self.assumed.pop(name, None)
        self.changed.add(name)

    @rule(name=NAMES)
    def informer_resyncs(self, name: str) -> None:
        if name in self.seen:
            self.storage.volumes.put(self.seen[name])
            self.changed.add(name)

    @rule(name=NAMES)
    def object_goes(self, name: str) -> None:
        self.storage.volumes.remove(persistent_volume(name))
        if self.seen.pop(name, None):
            self.changed.add(name)
        self.assumed.pop(name, None)

    @rule(name=NAMES, claim_name=NAMES)
    def assume(self, name: str, claim_name: str) -> None:
        if name in self.seen:
            self.assumed[name] = reserved(self.seen[name], claim_name)
            self.storage.volumes.assume(self.assumed[name])
            self.changed.add(name)

    @rule(name=NAMES)
    def assume_what_is_outdated(self, name: str) -> None:
        with pytest.raises(ObjectError):
            self.storage.volumes.assume(persistent_volume(name, version="outdated"))

    @rule(name=NAMES)
    def restore(self, name: str) -> None:
        self.storage.volumes.restore(name)
        if self.assumed.pop(name, None):
            self.changed.add(name)

    @rule()
    def read(self) -> None:
        changes = self.storage.volumes.changes
        assert set(changes.since(self.read_position) or ()) == self.changed
        self.read_position, self.changed = changes.position, set()

    @invariant()
    def the_store_shows_what_the_model_has(self) -> None:
        self.storage.validate()
        shown = {**self.seen, **self.assumed}
        volumes = self.storage.volumes
        assert {each.metadata.name: each for each in volumes} == shown
        for name in "abc":
            assert volumes.get(name) == shown.get(name)
            assert volumes.observed(name) == self.seen.get(name)
        for class_name in ("", "fast", "slow"):
            expected = [each for each in shown.values() if each.storage_class == class_name]
            found = sorted(volumes.of_class(class_name), key=lambda each: each.metadata.name)
            assert found == sorted(expected, key=lambda each: each.metadata.name)


TestAssumeStores = AssumeStores.TestCase


def test_stores_hold_their_own_kind() -> None:
    storage = Storage()
    storage.volumes.put(persistent_volume("same"))
    storage.claims.put(claim("same"))

    assert isinstance(storage.volumes.get("same"), PersistentVolume)
    assert isinstance(storage.claims.get("default", "same"), PersistentVolumeClaim)
