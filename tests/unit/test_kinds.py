"""The table of kinds says the same as kube-scheduler, and as the documents say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kubesched import kinds
from kubesched.api import core
from kubesched.api.meta import ApiStruct, ObjectMeta
from kubesched.cluster.cluster import Cluster
from kubesched.config.features import FeatureGates
from kubesched.errors import PluginError
from kubesched.kinds import KINDS, ObjectKind, Watched, kind_of, stores, watched
from kubesched.queue.events import Resource
from kubesched.recording.redaction import NameRedactor

DOCS = Path(__file__).parents[2] / "docs"
#: Not kinds: pods in some state, and everything.
SPECIAL = {Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD, Resource.TARGET_POD, Resource.ANY}


def test_what_plugins_register_for_is_what_kinds_cause() -> None:
    caused = {
        kind.event_resource
        for kind in watched()
        if kind.causes_events or kind.name in ("Node", "Pod")
    }
    assert set(Resource) - SPECIAL <= caused


def test_devices_are_watched_if_their_gate_is_on() -> None:
    without, by_default = FeatureGates.of({"DRADeviceTaintRules": False}), FeatureGates.of()
    more = {kind.name for kind in watched(by_default)} - {kind.name for kind in watched(without)}
    assert more == {"DeviceTaintRule"}
    assert {"DeviceClass", "ResourceSlice", "ResourceClaim"} <= {
        kind.name for kind in watched(without)
    }


def test_what_pods_refer_to_is_read_before_them() -> None:
    assert list(KINDS)[-1] == "Pod"


def test_each_kind_but_nodes_and_pods_has_a_store_of_its_own() -> None:
    found = list(stores(Cluster()))
    assert {kind.name for kind in watched()} - {kind.name for kind, _ in found} == {"Node", "Pod"}
    assert len({id(store) for _, store in found}) == len(found)


@pytest.mark.parametrize(
    ("api_version", "name", "want"),
    [
        ("v1", "Pod", "Pod"),
        ("storage.k8s.io/v1beta1", "CSINode", "CSINode"),
        ("serving.knative.dev/v1", "Service", None),
        ("v1", "Secret", None),
        (None, "Pod", None),
        ("v1", ["Pod"], None),
    ],
)
def test_objects_say_of_which_kind_they_are(
    api_version: object, name: object, want: str | None
) -> None:
    found = kind_of(api_version, name)
    assert (found and found.name) == want


def test_shadow_s_page_names_all_that_it_needs_to_see() -> None:
    text = (DOCS / "shadow.md").read_text()
    (needed,) = re.findall(r"`get`, `list` and `watch` on ([^.]*)\.", text)
    assert set(re.split(r",\s+|\s+and\s+", needed)) == {kind.path.plural for kind in watched()}


# --- kinds that plugins watch ---------------------------------------------------------------------


class Quota(ApiStruct, frozen=True):
    metadata: ObjectMeta
    limit: int = 0


QUOTAS = Watched(Quota, "example.com/v1", "quotas")


@pytest.fixture
def quotas() -> Iterator[ObjectKind]:
    kinds.add(QUOTAS)
    yield KINDS["Quota"]
    kinds.remove("Quota")


def test_a_kind_that_a_plugin_watches_is_a_row_before_pods(quotas: ObjectKind) -> None:
    assert list(KINDS)[-2:] == ["Quota", "Pod"]
    assert quotas.path.collection("ns") == "/apis/example.com/v1/namespaces/ns/quotas"
    assert quotas.event_resource == "example.com/Quota"
    assert quotas.causes_events
    assert quotas.optional
    assert kind_of("example.com/v2", "Quota") is quotas


def test_its_objects_are_kept_and_shown_to_plugins(quotas: ObjectKind) -> None:
    cluster = Cluster()
    ((_, store),) = [each for each in stores(cluster) if each[0] is quotas]
    store.put(Quota(metadata=ObjectMeta(namespace="ns", name="q"), limit=3))
    assert store is cluster.plugin_objects.store("Quota", namespaced=True)


def test_a_recording_without_names_has_its_metadata_alone(quotas: ObjectKind) -> None:
    known = Quota(metadata=ObjectMeta(namespace="ns", name="secret"), limit=3)
    redacted = NameRedactor().object("Quota", known)
    assert redacted.limit == 0
    assert "secret" not in str(redacted)


def test_two_plugins_may_watch_the_same_kind(quotas: ObjectKind) -> None:
    kinds.add(QUOTAS)
    assert KINDS["Quota"] is quotas


def test_kinds_of_the_tree_and_other_kinds_of_the_name_are_refused(quotas: ObjectKind) -> None:
    for wanted in (
        Watched(core.Node, "example.com/v1", "nodes"),
        Watched(Quota, "example.org/v1", "quotas"),
        Watched(Quota, "example.com/v1", "quotas", namespaced=False),
    ):
        with pytest.raises(PluginError, match="is watched already, as "):
            kinds.add(wanted)


def test_a_struct_whose_fields_changed_is_refused(quotas: ObjectKind) -> None:
    changed = msgspec.defstruct(
        "Quota", [("metadata", ObjectMeta), ("amount", int, 0)], bases=(ApiStruct,), frozen=True
    )
    with pytest.raises(PluginError, match="Quota has other fields now"):
        kinds.add(Watched(changed, "example.com/v1", "quotas"))


def test_a_struct_that_an_object_may_not_fill_is_refused() -> None:
    strict = msgspec.defstruct(
        "Strict", [("metadata", ObjectMeta), ("limit", int)], kw_only=True, frozen=True
    )
    with pytest.raises(PluginError, match="defaults for all others"):
        kinds.add(Watched(strict, "example.com/v1", "stricts"))
    assert "Strict" not in KINDS


def test_kinds_of_the_tree_stay() -> None:
    kinds.remove("Pod")
    assert "Pod" in KINDS
