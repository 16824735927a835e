"""The table of kinds says the same as kube-scheduler, and as the documents say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kubesched.cluster.cluster import Cluster
from kubesched.config.features import FeatureGates
from kubesched.kinds import KINDS, kind_of, stores, watched
from kubesched.queue.events import Resource

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


#: The gate, which can be switched off up to 1.34, and those that need it.
WITHOUT_DEVICES = dict.fromkeys(
    (
        "DynamicResourceAllocation",
        "DRAAdminAccess",
        "DRAPrioritizedList",
        "DRASchedulerFilterTimeout",
    ),
    False,
)


def test_devices_are_watched_if_their_gate_is_on() -> None:
    devices = {"DeviceClass", "ResourceSlice", "ResourceClaim"}
    then, now = FeatureGates.of(WITHOUT_DEVICES, emulated_version=(1, 34)), FeatureGates.of()
    assert {kind.name for kind in watched(now)} - {kind.name for kind in watched(then)} == devices


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
