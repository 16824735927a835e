"""Pods by namespace and labels: all that a label selector can distinguish.

Pods of one workload have the same labels, so a selector is evaluated once for all of them. Each
label set also counts its pods by row, so a new counter is a sum over label sets instead of a walk
over all pods.
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
    """A namespace and labels, and the rows of the pods that have them."""

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
        #: whether the pods are terminating: some selections exclude those
        self.terminating = terminating
        #: row → number of pods
        self.rows: dict[int, int] = {}
        #: counters that include these pods
        self.counters: list[PodCounter] = []
        #: cached terms of other pods that select these pods: terms on this namespace, and terms on
        #: any
        self.matching_terms: list[TermCounter] = []
        self.terms_seen = [0, 0]
        self.terms_epoch = -1

    def __repr__(self) -> str:
        return f"LabelSet({self.namespace}, {dict(self.labels)})"


class LabelMemo(Generic[K, V]):
    """A `Memo` per label set, dropped with the last pod that has these labels."""

    def __init__(
        self,
        answer: Callable[[LabelSet, K], V],
        *logs: Log[Any],
        stamp: Callable[[], Hashable] | None = None,
        limit: int,
    ) -> None:
        """`logs`, `stamp` and `limit` are those of each `Memo`."""
        self._answer = answer
        self._logs = logs
        self._stamp = stamp
        self._limit = limit
        self._memos: WeakKeyDictionary[LabelSet, Memo[K, V]] = WeakKeyDictionary()

    def of(self, labels: LabelSet, key: K) -> V:
        """Return the result for pods with some labels."""
        memo = self._memos.get(labels)
        if memo is None:
            # The memo lives as long as the label set, so it must not hold a strong reference to it.
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
