"""Pods by namespace and labels."""

from __future__ import annotations

import gc
import weakref

import pytest

from kubesched.api.meta import ObjectMeta
from kubesched.cluster.label_sets import LabelSets

BASE = ObjectMeta(name="a", namespace="ns", labels={"x": "1", "y": "2"})


@pytest.mark.parametrize(
    "other",
    [
        ObjectMeta(name="b", uid="u", namespace="ns", labels={"x": "1", "y": "2"}),
        ObjectMeta(name="a", namespace="ns", labels={"y": "2", "x": "1"}),
        ObjectMeta(namespace="ns", labels={"x": "1", "y": "2"}, annotations={"z": "3"}),
    ],
    ids=["name", "order", "annotations"],
)
def test_pods_with_the_same_labels_share_a_set(other: ObjectMeta) -> None:
    sets = LabelSets()
    first = sets.of(BASE)
    assert sets.of(other) is first


@pytest.mark.parametrize(
    "other",
    [
        ObjectMeta(namespace="other", labels={"x": "1", "y": "2"}),
        ObjectMeta(namespace="ns", labels={"x": "1"}),
        ObjectMeta(namespace="ns", labels={"x": "1", "y": "3"}),
        ObjectMeta(namespace="ns", labels={"x": "2", "y": "1"}),
        ObjectMeta(
            namespace="ns",
            labels={"x": "1", "y": "2"},
            deletion_timestamp="2026-01-01T00:00:00Z",
        ),
    ],
    ids=["namespace", "fewer", "value", "swapped", "terminating"],
)
def test_whatever_a_selector_can_tell_apart_is_apart(other: ObjectMeta) -> None:
    sets = LabelSets()
    first, second = sets.of(BASE), sets.of(other)
    assert second is not first
    assert (second.namespace, second.labels) == (other.namespace, other.labels)
    assert second.terminating is (other.deletion_timestamp is not None)


def test_no_labels_and_empty_labels_are_the_same() -> None:
    sets = LabelSets()
    none = sets.of(ObjectMeta(namespace="ns"))
    assert sets.of(ObjectMeta(namespace="ns", labels={})) is none
    assert none.labels == {}


def test_a_set_that_nobody_uses_is_forgotten() -> None:
    sets = LabelSets()
    found = weakref.ref(sets.of(BASE))
    gc.collect()
    assert found() is None
