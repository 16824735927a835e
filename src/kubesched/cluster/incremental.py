"""The incremental core: change logs, and views that are updated from them.

    record ──> Log ──since(position)──> View.refresh() ──┬──> update(changes)   few keys changed
                                                         └──> rebuild()         all others

Everything the scheduler caches about the cluster is a `View`: derived state that is updated only
where its source changed. The base class owns the bookkeeping: how far each log was read, when to
rebuild, what happens on failure, and how to compare a view with one built from scratch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from kubesched.cluster.arrays import BoolArray, IndexArray, Rows, grown
from kubesched.cluster.node_rows import NodeRows, SupposedRows
from kubesched.cluster.recent import Recent
from kubesched.errors import require

if TYPE_CHECKING:
    from kubesched.cluster.node_table import NodeTable

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
D = TypeVar("D", bound=np.generic)

# --- thresholds ------------------------------------------------------------------------------

#: A log holds at least half as many changes; a view that missed more is rebuilt.
LOG_LENGTH: Final = 65_536
#: The same of a log that keeps names of objects, which may be gone: each holds 200 bytes.
NAMES_LENGTH: Final = 8_192
#: Above this share of changed rows (1 in N), evaluating all rows at once is cheaper.
SPARSE: Final = 4
#: Up to this many rows, evaluating them one by one is cheaper than as an array.
FEW_ROWS: Final = 8


class Log(Generic[K]):
    """A bounded, append-only list of changed keys."""

    __slots__ = ("_end", "_keys", "_length", "_resume", "_start", "position")

    def __init__(self, length: int = LOG_LENGTH) -> None:
        self._keys: list[K] = []
        self._length = length
        #: position of the oldest key still held, and one past the newest
        self._start = self._end = 0
        #: one past the newest change that was not rolled back
        self.position = 0
        #: position that was returned to → one past the changes that were undone then: a reader
        #: there need not see them, however often changes are tried out; positions ascend
        self._resume: dict[int, int] = {}

    def record(self, key: K) -> None:
        """Append a key."""
        self._keys.append(key)
        self._end += 1
        self.position = self._end
        if len(self._keys) > self._length:
            dropped = self._length // 2
            del self._keys[:dropped]
            self._start += dropped
            self._resume = {at: end for at, end in self._resume.items() if end >= self._start}

    def roll_back(self, position: int) -> None:
        """Return to an earlier position, since all changes after it were undone.

        A reader at that position sees no change. A reader that has read later changes sees their
        keys again. Positions are never reused, which distinguishes the two.
        """
        if position == self.position:
            return
        undone = self.since(position)
        if undone is None:
            # Undone changes are no longer in the log.
            self.clear()
            return
        for key in undone:
            self.record(key)
        self.position = position
        while self._resume and next(reversed(self._resume)) >= position:
            self._resume.popitem()
        self._resume[position] = self._end

    def clear(self) -> None:
        """Discard all changes: every reader must rebuild."""
        self._keys, self._resume = [], {}
        self.position = self._start = self._end = self._end + 1

    def since(self, position: int) -> list[K] | None:
        """Return the distinct keys recorded since `position`; None if some were discarded."""
        position = self._resume.get(position, position)
        if position < self._start:
            return None
        keys = self._keys[position - self._start :]
        return keys if len(keys) < 2 else list(dict.fromkeys(keys))


class View(ABC):
    """State derived from other state, updated from the logs of that state.

    A subclass lists in `derived` the attributes that `rebuild` assigns. `rebuild` must assign new
    objects; `update` may change them in place. A view that raises is invalidated, and rebuilt on
    the next refresh.
    """

    #: attributes that hold the derived state
    derived: ClassVar[tuple[str, ...]]

    __slots__ = ("__weakref__", "_log", "_logs", "_only_log", "_read", "_stamp", "version")

    def __init__(self, *logs: Log[Any]) -> None:
        self._logs = logs
        #: the log, if there is just one; and if nothing else matters either
        self._log = logs[0] if len(logs) == 1 else None
        self._only_log = None if self.has_stamp else self._log
        #: position of each log up to which it was read; None: the view is invalid
        self._read: tuple[int, ...] | None = None
        self._stamp: Hashable = None
        #: incremented by every refresh that changed something
        self.version = 0

    @abstractmethod
    def rebuild(self) -> None:
        """Derive everything from scratch."""

    def update(self, *args: Any, **kwargs: Any) -> bool:  # noqa: ANN401, ARG002 (a list a log)
        """Apply the changes of each log; return False to request a rebuild."""
        return False

    def stamp(self) -> Hashable:
        """Return the other inputs of the derived state; a different stamp causes a rebuild."""
        return None

    @property
    def has_stamp(self) -> bool:
        """Whether the derived state depends on more than its logs."""
        return type(self).stamp is not View.stamp

    @property
    def is_known(self) -> bool:
        """Whether there is derived state, current or stale."""
        return self._read is not None

    def refresh(self) -> bool:
        """Bring the view up to date; return whether anything changed."""
        before, only = self._read, self._only_log
        if only is not None and before is not None and only.position == before[0]:
            return False
        stamp, log = self.stamp(), self._log
        if log is not None:
            read: tuple[int, ...] = (log.position,)
        else:
            read = tuple([each.position for each in self._logs]) if self._logs else ()
        if read == before and stamp == self._stamp:
            return False
        # If something raises below, the view stays invalid.
        self._read = None
        if before is None or stamp != self._stamp or not self._catch_up(before):
            self.rebuild()
        self._read, self._stamp = read, stamp
        self.version += 1
        return True

    def _catch_up(self, before: tuple[int, ...]) -> bool:
        changes = []
        for log, position in zip(self._logs, before, strict=True):
            keys = log.since(position)
            if keys is None:
                return False
            changes.append(keys)
        return self.update(*changes)

    def forget(self) -> None:
        """Invalidate the view; the next refresh rebuilds it."""
        self._read = None

    def twin(self) -> Self:
        """Return a view of the same that has derived nothing yet."""
        twin = copy(self)
        twin.forget()
        return twin

    def validate(self) -> None:
        """Compare with a view built from scratch; raise InvariantError if they differ."""
        self.refresh()
        twin = self.twin()
        twin.refresh()
        for name in self.derived:
            mine, fresh = getattr(self, name), getattr(twin, name)
            what = f"{type(self).__name__}.{name}"
            require(same(mine, fresh), f"{what} equals the one built from scratch")
            require(not _shared(mine, fresh), f"rebuild assigns a new {what}")


def same(one: object, other: object) -> bool:
    """Return whether two derived values are equal, arrays included."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


def _shared(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool(one.size) and np.shares_memory(one, other)
    return isinstance(one, dict | list | set) and one is other


class RowView(View):
    """A view with one value per row; above a share of changed rows, a rebuild is cheaper."""

    __slots__ = ("_table",)

    def __init__(self, table: NodeTable, log: Log[int]) -> None:
        super().__init__(log)
        self._table = table

    def _catch_up(self, before: tuple[int, ...]) -> bool:
        rows = self._logs[0].since(before[0])
        return rows is not None and len(rows) * SPARSE <= self._table.size and self.update(rows)


class LazyRows(View):
    """A view that computes each row on first use.

    Its logs hold rows, or node names.
    """

    derived = ("values",)

    def __init__(self, table: NodeTable, *logs: Log[Any]) -> None:
        super().__init__(*logs)
        self._table = table
        #: which rows are computed; `values` is undefined on the others
        self.known: BoolArray
        #: [row], or [element, row]
        self.values: npt.NDArray[Any]

    @abstractmethod
    def empty(self, size: int) -> npt.NDArray[Any]:
        """Return uninitialized values for `size` rows."""

    @abstractmethod
    def compute(self, rows: IndexArray) -> None:
        """Compute the values of some rows."""

    def ensure(self, rows: IndexArray) -> None:
        """Compute the rows that are missing; the view must be refreshed."""
        unknown = rows[~self.known[rows]]
        if len(unknown):
            self.compute(unknown)
            self.known[unknown] = True

    def rebuild(self) -> None:
        """Invalidate all rows."""
        size = self._table.size
        self.known, self.values = np.zeros(size, dtype=np.bool_), self.empty(size)

    def update(self, *changes: list[Any]) -> bool:
        """Invalidate some rows."""
        size = self._table.size
        if len(self.known) < size:
            self.known = grown(self.known, (size,), fill=False)
            self.values = grown(self.values, (*self.values.shape[:-1], size))
        for keys in changes:
            for key in keys:
                row = self._table.row_of(key) if isinstance(key, str) else key
                if row is not None:
                    self.known[row] = False
        return True

    def validate(self) -> None:
        """Recompute all computed rows, and compare."""
        self.refresh()
        twin, rows = self.twin(), np.flatnonzero(self.known)
        twin.refresh()
        twin.ensure(rows)
        mine, fresh = self.values[..., rows], twin.values[..., rows]
        require(same(mine, fresh), f"rows of {type(self).__name__}")


_EMPTY: Final[npt.NDArray[Any]] = np.zeros(0)
#: Evaluates one row; None if there is only the array form.
EvaluateRow = Callable[[int], int | None]


class Column(RowView, Generic[D]):
    """One value per row, computed by a function and re-evaluated only for changed rows."""

    __slots__ = ("_evaluate", "_evaluate_row", "_stamp_of", "_uniform", "values")

    derived = ("values",)

    def __init__(
        self,
        table: NodeTable,
        log: Log[int],
        evaluate: Callable[[NodeRows], npt.NDArray[D]],
        *,
        evaluate_row: EvaluateRow | None = None,
        stamp: Callable[[], Hashable] | None = None,
    ) -> None:
        """`evaluate_row` gives the same for a single row at less cost; `stamp` is as for views."""
        self._stamp_of = stamp
        super().__init__(table, log)
        self._evaluate = evaluate
        self._evaluate_row = evaluate_row
        self.values: npt.NDArray[D] = _EMPTY
        #: whether all rows have the same value; None: not computed
        self._uniform: bool | None = None

    def stamp(self) -> Hashable:
        """Return the inputs that all rows depend on."""
        return self._stamp_of() if self._stamp_of is not None else None

    @property
    def has_stamp(self) -> bool:
        """Whether values depend on more than their rows."""
        return self._stamp_of is not None

    @property
    def last_stamp(self) -> Hashable:
        """The stamp of the last refresh."""
        return self._stamp

    def current(self) -> npt.NDArray[D]:
        """Return the value of each row; read-only."""
        self.refresh()
        return self.values

    def at(self, rows: Rows) -> npt.NDArray[D]:
        """Return the values of some rows; caches nothing if `current` was never called."""
        if self._read is None:
            return self._evaluate(NodeRows(self._table, rows))
        return self.current()[rows]

    def supposed(self, nodes: SupposedRows) -> npt.NDArray[D]:
        """Return the values of hypothetical rows, uncached."""
        return self._evaluate(nodes)

    def is_uniform(self) -> bool:
        """Return whether all rows with a node have the same value."""
        values = self.current()
        if self._uniform is None:
            there = values[self._table.valid[: self._table.size]]
            self._uniform = len(there) == 0 or bool((there == there[0]).all())
        return self._uniform

    def rebuild(self) -> None:
        """Evaluate all rows."""
        self._uniform = None
        self.values = self._evaluate(NodeRows.all_of(self._table))

    def update(self, rows: list[int]) -> bool:
        """Evaluate some rows."""
        self._uniform = None
        if len(self.values) < self._table.size:
            self.values = grown(self.values, (self._table.size,))
        evaluate_row = self._evaluate_row
        if evaluate_row is None or len(rows) > FEW_ROWS:
            self._evaluate_some(rows)
            return True
        for row in rows:
            value = evaluate_row(row)
            if value is None:
                self._evaluate_some(rows)
                break
            self.values[row] = value
        return True

    def _evaluate_some(self, rows: list[int]) -> None:
        changed = np.array(rows, dtype=np.intp)
        self.values[changed] = self._evaluate(NodeRows(self._table, changed))

    def forget(self) -> None:
        """Invalidate the view and free its memory."""
        super().forget()
        self.values = _EMPTY


class Memo(View, Generic[K, V]):
    """Cached results of a function, invalidated when its inputs change."""

    __slots__ = ("_answer", "_limit", "_stamp_of", "answers")

    derived = ()

    def __init__(
        self,
        answer: Callable[[K], V],
        *logs: Log[Any],
        stamp: Callable[[], Hashable] | None = None,
        limit: int = 4096,
    ) -> None:
        """At most `limit` results are cached; the least recently used are evicted."""
        self._stamp_of = stamp
        super().__init__(*logs)
        self._answer = answer
        self._limit = limit
        self.answers: Recent[K, V] = Recent(limit)

    def stamp(self) -> Hashable:
        """Return the inputs that all results depend on."""
        return self._stamp_of() if self._stamp_of is not None else None

    @property
    def has_stamp(self) -> bool:
        """Whether results depend on more than logs."""
        return self._stamp_of is not None

    def of(self, key: K) -> V:
        """Return the result for a key."""
        self.refresh()
        answer = self.answers.get(key)
        if answer is None:
            answer = self.answers[key] = self._answer(key)
        return answer

    def rebuild(self) -> None:
        """Drop all results."""
        self.answers = Recent(self._limit)

    def validate(self) -> None:
        """Recompute all cached results, and compare."""
        self.refresh()
        for key, answer in self.answers.items():
            require(same(answer, self._answer(key)), f"cached result for {key}")
