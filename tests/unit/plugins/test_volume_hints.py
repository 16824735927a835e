"""What may help a pod that VolumeBinding turned away."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import CSIVolumeSource, Pod, Volume
from kubesched.cluster.node_rows import NodeRows
from kubesched.framework.cycle_state import CycleState
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change
from tests.support.objects import node, pod
from tests.support.storage_objects import ephemeral_volume, using, with_volumes
from tests.support.volume_scheduling import (
    VolumeLab,
    capacity,
    claim,
    csi_node,
    driver,
    storage_class,
    volume,
)

INLINE = with_volumes(pod(), Volume(name="v", csi=CSIVolumeSource(driver="disk.example.com")))


def helps(
    waiting: Pod, resource: Resource, old: Any, new: Any, *, lab: VolumeLab | None = None
) -> bool:
    """Ask what is registered, as the queue does; nothing registered means no."""
    lab = lab or VolumeLab().have(storage_class(), claim())
    action = Action.ADD if old is None else Action.UPDATE if new is not None else Action.DELETE
    event = ClusterEvent(resource, action)
    registrations = lab.plugin.events_to_register()
    assert registrations is not None
    matching = [each for each in registrations if event.matches(each.event)]
    assert len(matching) <= 1
    if not matching:
        return False
    hint = matching[0].hint
    return hint is None or hint(lab.pending(waiting), Change(event, old, new))


@pytest.mark.parametrize(
    ("resource", "old", "new", "wanted"),
    [
        (Resource.STORAGE_CLASS, None, storage_class(), True),
        (Resource.STORAGE_CLASS, storage_class(), storage_class(zones=["a"]), True),
        (Resource.STORAGE_CLASS, storage_class(), storage_class(provisioner="other"), False),
        (Resource.STORAGE_CLASS, storage_class(), None, False),
        (Resource.PERSISTENT_VOLUME, None, volume(), True),
        (Resource.PERSISTENT_VOLUME, volume(), volume(size="2Gi"), True),
        (Resource.PERSISTENT_VOLUME, volume(), None, False),
        (Resource.NODE, None, node(), True),
        (Resource.NODE, node(), None, False),
        (Resource.CSI_NODE, None, csi_node("n1"), True),
        (Resource.CSI_NODE, csi_node("n1"), csi_node("n1", migrated="a"), True),
        (Resource.CSI_NODE, csi_node("n1", migrated="a"), csi_node("n1", migrated="a"), False),
        (Resource.CSI_STORAGE_CAPACITY, None, capacity(), True),
        (Resource.CSI_STORAGE_CAPACITY, capacity(size="1Gi"), capacity(size="2Gi"), True),
        (Resource.CSI_STORAGE_CAPACITY, capacity(size=None), capacity(size="1"), True),
        (Resource.CSI_STORAGE_CAPACITY, capacity(size="2Gi"), capacity(size="2048Mi"), False),
        (Resource.CSI_STORAGE_CAPACITY, capacity(size="2Gi"), capacity(size=None), False),
        (
            Resource.CSI_STORAGE_CAPACITY,
            capacity(size="1Gi", largest="1Gi"),
            capacity(size="9Gi", largest="1Gi"),
            False,
        ),
    ],
)
def test_what_helps_any_pod(resource: Resource, old: Any, new: Any, wanted: bool) -> None:
    assert helps(using(pod(), "c"), resource, old, new) is wanted


@pytest.mark.parametrize(
    ("objects", "rejected"),
    [
        pytest.param([claim(storage_class="at-once")], True, id="to be bound at once"),
        pytest.param([claim(storage_class=None)], True, id="without a class"),
        pytest.param([], True, id="missing"),
        pytest.param([claim(deleting=True)], True, id="being deleted"),
        pytest.param([claim(phase="Lost", volume="v")], True, id="lost its volume"),
        pytest.param([claim(volume="v")], True, id="half bound"),
        pytest.param([claim()], False, id="waits for the pod"),
        pytest.param([claim(volume="v", bound=True)], False, id="bound"),
    ],
)
def test_a_volume_helps_unless_claims_reject_the_pod_before_volumes_are_looked_at(
    objects: list[Any], rejected: bool
) -> None:
    classes = storage_class(), storage_class("at-once", mode="Immediate")
    lab, waiting = VolumeLab(node()).have(*classes, *objects), using(pod(), "c")
    nodes = NodeRows.all_of(lab.cluster.table)
    status = lab.plugin.pre_filter(CycleState(), lab.pending(waiting), nodes).status
    assert status.rejected is rejected
    for old in (None, volume(size="2Gi")):
        assert helps(waiting, Resource.PERSISTENT_VOLUME, old, volume(), lab=lab) is not rejected


def test_labels_of_nodes_help() -> None:
    event = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
    registrations = VolumeLab().plugin.events_to_register()
    assert registrations is not None
    assert [each.hint for each in registrations if event.matches(each.event)] == [None]


@pytest.mark.parametrize(
    ("waiting", "wanted"),
    [
        (using(pod(), "c"), True),
        (using(pod(), "other", "c"), True),
        (using(pod(), "other"), False),
        (using(pod(namespace="elsewhere"), "c"), False),
        (with_volumes(pod("c"), ephemeral_volume("c")), False),
    ],
)
def test_a_claim_helps_the_pods_that_use_it(waiting: Pod, wanted: bool) -> None:
    assert helps(waiting, Resource.PERSISTENT_VOLUME_CLAIM, None, claim()) is wanted
    changed = claim(volume="v", bound=True)
    assert helps(waiting, Resource.PERSISTENT_VOLUME_CLAIM, claim(), changed) is wanted


def test_a_claim_that_is_made_for_the_pod_helps_it() -> None:
    waiting = with_volumes(pod("p"), ephemeral_volume("scratch"))
    made = claim("p-scratch")
    assert helps(waiting, Resource.PERSISTENT_VOLUME_CLAIM, None, made)


@pytest.mark.parametrize(
    ("waiting", "before", "after", "wanted"),
    [
        (INLINE, True, None, True),
        (INLINE, True, False, True),
        (INLINE, False, True, False),
        (INLINE, None, False, False),
        (INLINE, True, True, False),
        (using(pod(), "c"), True, False, False),
    ],
)
def test_a_driver_that_stops_counting_space_helps_pods_that_use_it_directly(
    waiting: Pod, before: bool | None, after: bool | None, wanted: bool
) -> None:
    old, new = driver(storage_capacity=before), driver(storage_capacity=after)
    assert helps(waiting, Resource.CSI_DRIVER, old, new) is wanted
    other = replace(new, metadata=replace(new.metadata, name="other.example.com"))
    assert not helps(waiting, Resource.CSI_DRIVER, old, other)


def test_what_is_registered() -> None:
    registrations = VolumeLab().plugin.events_to_register()
    assert registrations is not None
    changed = Action.ADD | Action.UPDATE
    assert {each.event.resource: each.event.action for each in registrations} == {
        Resource.STORAGE_CLASS: changed,
        Resource.PERSISTENT_VOLUME_CLAIM: changed,
        Resource.PERSISTENT_VOLUME: changed,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
        Resource.CSI_NODE: changed,
        Resource.CSI_DRIVER: Action.UPDATE,
        Resource.CSI_STORAGE_CAPACITY: changed,
    }
