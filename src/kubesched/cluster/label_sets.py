"""Pods by their namespace and labels: all that a label selector can tell apart.

Pods of one workload have the same labels, so a selector is evaluated once for all of them. Each
label set also knows on which rows its pods are, which makes a new counter a sum over label sets
instead of a walk over all pods.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

from kubesched.api.meta import ObjectMeta
from kubesched.cluster.incremental import Log, Memo
from kubesched.errors import InvariantError

if TYPE_CHECKING:
    from kubesched.cluster.pod_counters import PodCounter
    from kubesched.cluster.term_counters import TermCounter

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LabelSet:
    """A namespace and labels, and where the pods are that have them."""

    __slots__ = (
        "__weakref__",
        "counters",
        "labels",
        "matching_terms",
        "namespace",
        "rows",
        "terminating",
        "terms_epoch",
        "terms_seen",
    )

    def __init__(self, namespace: str, labels: Mapping[str, str], *, terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        #: whether the pods are being deleted: some rules do not count those
        self.terminating = terminating
        #: row → number of pods
        self.rows: dict[int, int] = {}
        #: counters that count these pods
        self.counters: list[PodCounter] = []
        #: terms of other pods that are about these pods, of those that had been seen by then:
        #: terms about pods of this namespace, and terms about pods of any
        self.matching_terms: list[TermCounter] = []
        self.terms_seen = [0, 0]
        self.terms_epoch = -1

    def __repr__(self) -> str:
        return f"LabelSet({self.namespace}, {dict(self.labels)})"


class LabelMemo(Generic[K, V]):
    """Answers about pods with the same labels, remembered as long as there are such pods."""

    def __init__(
        self,
        answer: Callable[[LabelSet, K], V],
        *logs: Log[Any],
        stamp: Callable[[], Hashable] | None = None,
        limit: int,
    ) -> None:
        """`logs`, `stamp` and `limit` are those of a `Memo`, of which each label set has one."""
        self._answer = answer
        self._logs = logs
        self._stamp = stamp
        self._limit = limit
        self._memos: WeakKeyDictionary[LabelSet, Memo[K, V]] = WeakKeyDictionary()

    def of(self, labels: LabelSet, key: K) -> V:
        """Return the answer about pods with some labels."""
        memo = self._memos.get(labels)
        if memo is None:
            # What a memo refers to lives as long as the label set: it must not be that itself.
            answer = partial(_about, ref(labels), self._answer)
            memo = Memo(answer, *self._logs, stamp=self._stamp, limit=self._limit)
            self._memos[labels] = memo
        return memo.of(key)


def _about(labels: ref[LabelSet], answer: Callable[[LabelSet, K], V], key: K) -> V:
    found = labels()
    if found is None:
        raise InvariantError("pods with these labels are gone")
    return answer(found, key)


class LabelSets:
    """All label sets in use."""

    def __init__(self) -> None:
        self._sets: WeakValueDictionary[object, LabelSet] = WeakValueDictionary()

    def of(self, meta: ObjectMeta) -> LabelSet:
        """Return the label set of a pod."""
        labels = meta.labels or {}
        terminating = meta.deletion_timestamp is not None
        key = (meta.namespace, terminating, frozenset(labels.items()))
        found = self._sets.get(key)
        if found is None:
            found = LabelSet(meta.namespace, labels, terminating=terminating)
            self._sets[key] = found
        return found
