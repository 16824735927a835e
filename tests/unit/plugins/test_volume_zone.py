"""VolumeZone: volumes are used in their own zone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Volume
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.framework.status import SKIP, Status, unresolvable
from kubesched.queue.events import Action, Resource
from tests.support.objects import node, pod
from tests.support.storage_objects import (
    claim,
    gce_disk,
    persistent_volume,
    storage_class,
    using,
    with_volumes,
)

from .hinting import added, helps
from .storage_lab import StorageLab, StorageObject, came, changed

PLUGIN = "VolumeZone"
OTHER_ZONE = unresolvable("node(s) had no available volume zone")
ZONE, OLD_ZONE = names.LABEL_ZONE, names.LABEL_ZONE_BETA
REGION, OLD_REGION = names.LABEL_REGION, names.LABEL_REGION_BETA
WAITING = using(pod(), "c")


def lab_with(labels: dict[str, str], **nodes: dict[str, str]) -> StorageLab:
    return StorageLab(
        PLUGIN,
        *(node(name, labels=each) for name, each in nodes.items()),
        persistent_volume("pv", labels=labels),
        claim("c", volume="pv"),
    )


@pytest.mark.parametrize(
    ("volume", "of_node", "fits"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="the same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, False, id="another zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, True, id="one of several zones"),
        pytest.param({ZONE: "a__b"}, {ZONE: "c"}, False, id="none of several zones"),
        pytest.param({ZONE: "a"}, {}, True, id="a node that knows no zones"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, False, id="a node that knows regions only"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False, id="region"),
        pytest.param({OLD_ZONE: "a"}, {ZONE: "a"}, True, id="old label, new node"),
        pytest.param({OLD_ZONE: "a"}, {ZONE: "b"}, False, id="old label, new node elsewhere"),
        pytest.param({OLD_ZONE: "a"}, {OLD_ZONE: "b", ZONE: "a"}, False, id="old label first"),
        pytest.param({ZONE: "a"}, {OLD_ZONE: "a"}, False, id="new label, old node"),
        pytest.param({OLD_REGION: "r"}, {REGION: "r"}, True, id="old region, new node"),
    ],
)
def test_zones(volume: dict[str, str], of_node: dict[str, str], fits: bool) -> None:
    lab = lab_with(volume, n=of_node)

    assert lab.refused(WAITING) == ({} if fits else {"n": OTHER_ZONE})


def test_all_volumes_must_be_in_the_zone() -> None:
    lab = lab_with({ZONE: "a__b"}, a={ZONE: "a"}, b={ZONE: "b"}, c={ZONE: "c"})
    lab.put(persistent_volume("pv2", labels={ZONE: "b"}), claim("c2", volume="pv2"))

    refused = lab.refused(using(pod(), "c", "c2"))
    assert refused == {"a": OTHER_ZONE, "c": OTHER_ZONE}


def test_answers_follow_the_labels_of_nodes() -> None:
    lab = lab_with({ZONE: "a"}, n={ZONE: "a"}, m={ZONE: "b"})
    assert lab.refused(WAITING) == {"m": OTHER_ZONE}

    lab.cluster.put_node(node("m", labels={ZONE: "a"}))
    lab.cluster.put_node(node("new", labels={ZONE: "c"}))

    assert lab.refused(WAITING) == {"new": OTHER_ZONE}


@pytest.mark.parametrize(
    "labels", [{}, {"disk": "ssd"}, {ZONE: ""}, {ZONE: "a__"}], ids=["none", "other", "", "a__"]
)
def test_volumes_without_a_zone_are_used_anywhere(labels: dict[str, str]) -> None:
    assert lab_with(labels, n={ZONE: "x"}).pre_filter(WAITING).status == SKIP


def test_pods_without_claims_are_not_looked_at() -> None:
    lab = StorageLab(PLUGIN, node())

    assert lab.pre_filter(pod()).status == SKIP
    assert lab.pre_filter(with_volumes(pod(), Volume(name="v"), gce_disk("d"))).status == SKIP


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], unresolvable('persistentvolumeclaim "c" not found'), id="no claim"),
        pytest.param(
            [claim("c", volume="pv")],
            unresolvable('persistentvolume "pv" not found'),
            id="no volume",
        ),
        pytest.param(
            [claim("c")],
            unresolvable("PersistentVolumeClaim had no pv name and storageClass name"),
            id="neither volume nor class",
        ),
        pytest.param(
            [claim("c", storage_class="fast")],
            unresolvable('storageclass.storage.k8s.io "fast" not found'),
            id="no such class",
        ),
        pytest.param(
            [claim("c", storage_class="fast"), storage_class("fast", mode=None)],
            unresolvable('VolumeBindingMode not set for StorageClass "fast"'),
            id="a class without a mode",
        ),
        pytest.param(
            [claim("c", storage_class="fast"), storage_class("fast", mode="Immediate")],
            unresolvable("PersistentVolume had no name"),
            id="not bound yet",
        ),
        pytest.param(
            [claim("c", storage_class="fast"), storage_class("fast")], SKIP, id="made where it goes"
        ),
    ],
)
def test_claims_that_are_not_bound(objects: list[StorageObject], expected: Status) -> None:
    assert StorageLab(PLUGIN, node(), *objects).pre_filter(WAITING).status == expected


# --- hints --------------------------------------------------------------------------------------


def test_what_is_registered() -> None:
    registered = StorageLab(PLUGIN).plugin(PLUGIN).events_to_register()

    assert [(each.event.resource, each.event.action) for each in registered] == [
        (Resource.STORAGE_CLASS, Action.ADD),
        (Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        (Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE),
        (Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE),
    ]


def test_a_class_comes() -> None:
    lab = StorageLab(PLUGIN)

    assert helps(lab, PLUGIN, WAITING, came(storage_class("fast")))
    assert not helps(lab, PLUGIN, WAITING, came(storage_class("fast", mode="Immediate")))
    assert not helps(lab, PLUGIN, WAITING, came(storage_class("fast", mode=None)))


@pytest.mark.parametrize(
    ("news", "want"),
    [(claim("c"), True), (claim("d"), False), (claim("c", namespace="other"), False)],
    ids=["its own", "another", "another namespace"],
)
def test_a_claim_comes_or_is_bound(news: PersistentVolumeClaim, want: bool) -> None:
    lab = StorageLab(PLUGIN)
    bound = replace(news, spec=replace(news.spec, volume_name="pv"))

    assert helps(lab, PLUGIN, WAITING, came(news)) is want
    assert helps(lab, PLUGIN, WAITING, changed(news, bound)) is want


def test_a_volume_comes_or_changes_its_zone() -> None:
    lab = StorageLab(PLUGIN)
    here, there = persistent_volume("pv", labels={ZONE: "a"}), persistent_volume("pv")

    assert helps(lab, PLUGIN, WAITING, came(there))
    assert helps(lab, PLUGIN, WAITING, changed(here, there))
    relabelled = persistent_volume("pv", labels={ZONE: "a", "disk": "ssd"})
    assert not helps(lab, PLUGIN, WAITING, changed(here, relabelled))


def test_a_node_comes() -> None:
    assert helps(StorageLab(PLUGIN), PLUGIN, WAITING, added(node()))
