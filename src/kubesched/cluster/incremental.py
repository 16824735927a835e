"""The incremental core: logs of what changed, and views that follow them.

    record ──> Log ──since(position)──> View.refresh() ──┬──> update(changes)   few keys changed
                                                         └──> rebuild()         all others

Everything the scheduler caches about the cluster is a `View`: it is derived from other state and
updated only where that state changed. The base class owns the bookkeeping: how far each log was
read, when to rebuild, what happens on failure, and how to check a view against one built anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kubesched.cluster.arrays import BoolArray, IndexArray, Rows, grown
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.recent import Recent
from kubesched.errors import require

if TYPE_CHECKING:
    from kubesched.cluster.node_table import NodeTable

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
D = TypeVar("D", bound=np.generic)

# --- thresholds ------------------------------------------------------------------------------

#: A log remembers at least half as many changes; a view that missed more is rebuilt.
LOG_LENGTH: Final = 65_536
#: With more than one changed row in so many, evaluating all rows at once is cheaper.
SPARSE: Final = 4
#: Up to so many rows, evaluating one after the other is cheaper than an array of them.
FEW_ROWS: Final = 2


class Log(Generic[K]):
    """A bounded, append-only list of the keys that changed."""

    __slots__ = ("_end", "_keys", "_length", "_start", "position")

    def __init__(self, length: int = LOG_LENGTH) -> None:
        self._keys: list[K] = []
        self._length = length
        #: position of the first key that is still remembered, and after the last one
        self._start = self._end = 0
        #: the position after the newest change that was not rolled back
        self.position = 0

    def record(self, key: K) -> None:
        """Append a key."""
        self._keys.append(key)
        self._end += 1
        self.position = self._end
        if len(self._keys) > self._length:
            dropped = self._length // 2
            del self._keys[:dropped]
            self._start += dropped

    def roll_back(self, position: int) -> None:
        """Make a position the current one again, since all changes after it are undone.

        A reader that stopped there sees that nothing changed. One that has read later changes sees
        their keys once more. Positions are never given twice, which tells the two apart.
        """
        if position == self.position:
            return
        undone = self.since(position)
        if undone is None:
            # What was undone is forgotten: every reader has to look at everything again.
            self._keys = []
            self.position = self._start = self._end = self._end + 1
            return
        for key in undone:
            self.record(key)
        self.position = position

    def since(self, position: int) -> list[K] | None:
        """Return the distinct keys recorded since `position`; None if the log forgot some."""
        if position < self._start:
            return None
        keys = self._keys[position - self._start :]
        return keys if len(keys) < 2 else list(dict.fromkeys(keys))


class View(ABC):
    """State derived from other state, updated from the logs of that state.

    A subclass lists in `derived` the attributes that `rebuild` assigns. `rebuild` must assign new
    objects; `update` may change them in place. A view that raises forgets what it knew and is
    rebuilt the next time.
    """

    #: attributes that hold the derived state
    derived: ClassVar[tuple[str, ...]]

    __slots__ = ("__weakref__", "_log", "_logs", "_only_log", "_read", "_stamp", "version")

    def __init__(self, *logs: Log[Any]) -> None:
        self._logs = logs
        #: the log, if there is just one; and if nothing else matters either
        self._log = logs[0] if len(logs) == 1 else None
        self._only_log = None if self.has_stamp else self._log
        #: position of each log up to which it was read; None: the view knows nothing
        self._read: tuple[int, ...] | None = None
        self._stamp: Hashable = None
        #: grows with every refresh that found something to do
        self.version = 0

    @abstractmethod
    def rebuild(self) -> None:
        """Derive everything anew."""

    def update(self, *args: Any, **kwargs: Any) -> bool:  # noqa: ANN401, ARG002 (a list a log)
        """Apply the changes of each log; return False if only rebuilding will do."""
        return False

    def stamp(self) -> Hashable:
        """Return what else the derived state depends on; another stamp means a rebuild."""
        return None

    @property
    def has_stamp(self) -> bool:
        """Whether the derived state depends on more than logs."""
        return type(self).stamp is not View.stamp

    @property
    def is_known(self) -> bool:
        """Whether there is derived state, current or not."""
        return self._read is not None

    def refresh(self) -> bool:
        """Bring the view up to date; return whether there was anything to do."""
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
        # If something raises below, the view knows nothing.
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
        """Drop the derived state; the next refresh rebuilds it."""
        self._read = None

    def validate(self) -> None:
        """Compare with a view built anew; raise InvariantError if they differ."""
        self.refresh()
        twin = copy(self)
        twin.forget()
        twin.refresh()
        for name in self.derived:
            mine, fresh = getattr(self, name), getattr(twin, name)
            what = f"{type(self).__name__}.{name}"
            require(same(mine, fresh), f"{what} is what building it anew gives")
            require(not _shared(mine, fresh), f"rebuild assigns a new {what}")


def same(one: object, other: object) -> bool:
    """Tell whether two derived values are equal, arrays included."""
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
    """A view with one value a row, for which an array of all rows is cheaper than many updates."""

    __slots__ = ("_table",)

    def __init__(self, table: NodeTable, log: Log[int]) -> None:
        super().__init__(log)
        self._table = table

    def _catch_up(self, before: tuple[int, ...]) -> bool:
        rows = self._logs[0].since(before[0])
        return rows is not None and len(rows) * SPARSE <= self._table.size and self.update(rows)


class LazyRows(View):
    """A view that computes a row when it is first asked for.

    Its logs are of rows, or of the names of nodes.
    """

    derived = ("values",)

    def __init__(self, table: NodeTable, *logs: Log[Any]) -> None:
        super().__init__(*logs)
        self._table = table
        #: which rows are computed; `values` means nothing on the others
        self.known: BoolArray
        #: [row], or [element, row]
        self.values: npt.NDArray[Any]

    @abstractmethod
    def empty(self, size: int) -> npt.NDArray[Any]:
        """Return values for so many rows."""

    @abstractmethod
    def compute(self, rows: IndexArray) -> None:
        """Fill in the values of some rows."""

    def ensure(self, rows: IndexArray) -> None:
        """Compute those rows that are not known; the view must be refreshed."""
        unknown = rows[~self.known[rows]]
        if len(unknown):
            self.compute(unknown)
            self.known[unknown] = True

    def rebuild(self) -> None:
        """Forget all rows."""
        size = self._table.size
        self.known, self.values = np.zeros(size, dtype=np.bool_), self.empty(size)

    def update(self, *changes: list[Any]) -> bool:
        """Forget some rows."""
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
        """Compute again all rows that are known, and compare."""
        self.refresh()
        twin, rows = copy(self), np.flatnonzero(self.known)
        twin.forget()
        twin.refresh()
        twin.ensure(rows)
        mine, fresh = self.values[..., rows], twin.values[..., rows]
        require(same(mine, fresh), f"rows of {type(self).__name__}")


_EMPTY: Final[npt.NDArray[Any]] = np.zeros(0)
#: Evaluates one row; None if only an array will do.
EvaluateRow = Callable[[int], int | None]


class Column(RowView, Generic[D]):
    """One value a row: what a function of the row says, evaluated again only where rows changed."""

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
        """`evaluate_row` says the same of one row, for less; `stamp` is as for views."""
        self._stamp_of = stamp
        super().__init__(table, log)
        self._evaluate = evaluate
        self._evaluate_row = evaluate_row
        self.values: npt.NDArray[D] = _EMPTY
        #: whether all rows have the same value, None: not known
        self._uniform: bool | None = None

    def stamp(self) -> Hashable:
        """Return what all rows depend on."""
        return self._stamp_of() if self._stamp_of is not None else None

    @property
    def has_stamp(self) -> bool:
        """Whether values depend on more than their rows."""
        return self._stamp_of is not None

    @property
    def last_stamp(self) -> Hashable:
        """The stamp as of the last refresh."""
        return self._stamp

    def current(self) -> npt.NDArray[D]:
        """Return the value of each row; not to be changed."""
        self.refresh()
        return self.values

    def at(self, rows: Rows) -> npt.NDArray[D]:
        """Return the values of some rows; keeps nothing if `current` was never called."""
        if self._read is None:
            return self._evaluate(NodeRows(self._table, rows))
        return self.current()[rows]

    def is_uniform(self) -> bool:
        """Tell whether all rows with a node have the same value."""
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
        """Drop the values and free their memory."""
        super().forget()
        self.values = _EMPTY


class Memo(View, Generic[K, V]):
    """Answers to questions asked before, forgotten when what they depend on changes."""

    __slots__ = ("_answer", "_limit", "_stamp_of", "answers")

    derived = ()

    def __init__(
        self,
        answer: Callable[[K], V],
        *logs: Log[Any],
        stamp: Callable[[], Hashable] | None = None,
        limit: int = 4096,
    ) -> None:
        """Of the answers that are still good, the `limit` most recently used are kept."""
        self._stamp_of = stamp
        super().__init__(*logs)
        self._answer = answer
        self._limit = limit
        self.answers: Recent[K, V] = Recent(limit)

    def stamp(self) -> Hashable:
        """Return what all answers depend on."""
        return self._stamp_of() if self._stamp_of is not None else None

    @property
    def has_stamp(self) -> bool:
        """Whether answers depend on more than logs."""
        return self._stamp_of is not None

    def of(self, key: K) -> V:
        """Return the answer for a key."""
        self.refresh()
        answer = self.answers.get(key)
        if answer is None:
            answer = self.answers[key] = self._answer(key)
        return answer

    def rebuild(self) -> None:
        """Forget all answers."""
        self.answers = Recent(self._limit)

    def validate(self) -> None:
        """Ask again for all answers that are remembered."""
        self.refresh()
        for key, answer in self.answers.items():
            require(same(answer, self._answer(key)), f"remembered answer for {key}")
