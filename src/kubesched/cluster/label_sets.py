"""Pods by namespace and labels: all that a label selector can distinguish.

Pods of one workload have the same labels, so a selector is evaluated once for all of them. Each
label set also counts its pods by row, so a new counter is a sum over label sets instead of a walk
over all pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from kubesched.api.meta import ObjectMeta

if TYPE_CHECKING:
    from kubesched.cluster.pod_counters import PodCounter


class LabelSet:
    """A namespace and labels, and the rows of the pods that have them."""

    __slots__ = (
        "__weakref__",
        "counters",
        "labels",
        "namespace",
        "rows",
        "terminating",
    )

    def __init__(self, namespace: str, labels: Mapping[str, str], *, terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        #: whether the pods are terminating: some selections exclude those
        self.terminating = terminating
        #: row → number of pods
        self.rows: dict[int, int] = {}
        #: counters that include these pods
        self.counters: tuple[PodCounter, ...] = ()

    def __repr__(self) -> str:
        return f"LabelSet({self.namespace}, {dict(self.labels)})"


class LabelSets:
    """All label sets in use."""

    def __init__(self) -> None:
        self._sets: WeakValueDictionary[object, LabelSet] = WeakValueDictionary()

    def of(self, meta: ObjectMeta) -> LabelSet:
        """Return the label set of a pod."""
        labels = meta.labels or {}
        terminating = meta.deletion_timestamp is not None
        # Smaller than a set of pairs.
        keys = sorted(labels)
        key = (meta.namespace, terminating, *keys, *[labels[each] for each in keys])
        found = self._sets.get(key)
        if found is None:
            found = LabelSet(meta.namespace, labels, terminating=terminating)
            self._sets[key] = found
        return found
