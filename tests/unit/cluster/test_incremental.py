"""The incremental core: logs say what changed, and views compute again only that."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.incremental import SPARSE, Column, LazyRows, Log, Memo, View
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.resources import CPU
from kubesched.errors import InvariantError
from tests.support.objects import node

# --- logs -------------------------------------------------------------------------------------


def test_nothing_changed_since_the_newest_position() -> None:
    log: Log[int] = Log()
    log.record(3)
    assert log.since(log.position) == []


def test_keys_are_distinct_in_the_order_of_their_first_change() -> None:
    log: Log[int] = Log()
    for key in (5, 1, 5, 3, 1):
        log.record(key)
    assert log.since(0) == [5, 1, 3]


def test_each_reader_gets_what_came_after_its_own_position() -> None:
    log: Log[str] = Log()
    log.record("a")
    early = log.position
    log.record("b")
    late = log.position
    log.record("c")
    assert log.since(early) == ["b", "c"]
    assert log.since(late) == ["c"]


def test_changes_that_are_rolled_back_concern_only_readers_that_saw_them() -> None:
    log: Log[int] = Log()
    log.record(1)
    before = log.position
    log.record(2)
    during = log.position
    log.record(3)
    log.roll_back(before)
    assert log.position == before, "a reader that stopped before sees that nothing changed"
    assert 2 in (log.since(during) or []), "one that read them sees them once more"
    assert during != log.position
    log.record(4)
    assert log.position > during
    assert {2, 4} <= set(log.since(during) or [])
    assert 4 in (log.since(before) or [])


def test_a_log_that_forgot_what_was_rolled_back_says_so_to_all_readers() -> None:
    log: Log[int] = Log(length=2)
    log.record(0)
    before = log.position
    for key in range(5):
        log.record(key)
    log.roll_back(before)
    assert log.position != before
    assert log.since(before) is None


def test_a_reader_that_comes_too_late_is_told_so() -> None:
    log: Log[int] = Log(length=4)
    for key in range(5):
        log.record(key)
    assert log.position == 5
    assert log.since(0) is None
    assert log.since(1) is None
    assert log.since(2) == [2, 3, 4]


@given(
    length=st.integers(2, 9),
    keys=st.lists(st.integers(0, 5), max_size=40),
    read_at=st.integers(0, 40),
)
def test_a_bounded_log_never_lies(length: int, keys: list[int], read_at: int) -> None:
    log: Log[int] = Log(length=length)
    for key in keys:
        log.record(key)
    assert log.position == len(keys)
    read_at = min(read_at, len(keys))
    found = log.since(read_at)
    if found is None:
        assert len(keys) - read_at > length // 2
    else:
        assert found == list(dict.fromkeys(keys[read_at:]))


# --- views ------------------------------------------------------------------------------------


class Squares(View):
    """The square of each number in a dict."""

    derived = ("squares",)

    def __init__(self, numbers: dict[str, int], log: Log[str]) -> None:
        super().__init__(log)
        self._numbers = numbers
        self.power: int = 2
        self.squares: dict[str, int] = {}
        self.did: list[object] = []
        self.fails = False

    def stamp(self) -> Hashable:
        return self.power

    def rebuild(self) -> None:
        self.did.append("rebuild")
        self.squares = {}
        self._apply(list(self._numbers))

    def update(self, keys: list[str]) -> bool:
        self.did.append(keys)
        self._apply(keys)
        return True

    def _apply(self, keys: list[str]) -> None:
        for key in keys:
            self.squares[key] = self._numbers[key] ** self.power
            if self.fails:
                raise RuntimeError("in the middle")


class Bench:
    """Numbers, their log and a view of them."""

    def __init__(self, length: int = 100) -> None:
        self.numbers: dict[str, int] = {}
        self.log: Log[str] = Log(length)
        self.view = Squares(self.numbers, self.log)

    def set(self, key: str, number: int) -> None:
        self.numbers[key] = number
        self.log.record(key)


def test_a_view_is_built_once_and_updated_from_then_on() -> None:
    bench = Bench()
    bench.set("a", 2)
    assert bench.view.refresh()
    assert not bench.view.refresh()
    bench.set("b", 3)
    bench.set("b", 4)
    assert bench.view.refresh()
    assert bench.view.did == ["rebuild", ["b"]]
    assert bench.view.squares == {"a": 4, "b": 16}
    bench.view.validate()


def test_another_stamp_means_a_rebuild() -> None:
    bench = Bench()
    bench.set("a", 2)
    bench.view.refresh()
    bench.view.power = 3
    bench.view.refresh()
    assert bench.view.did == ["rebuild", "rebuild"]
    assert bench.view.squares == {"a": 8}


def test_a_view_that_missed_too_much_is_rebuilt() -> None:
    bench = Bench(length=2)
    bench.set("a", 1)
    bench.view.refresh()
    for number in range(5):
        bench.set("a", number)
    bench.view.refresh()
    assert bench.view.did == ["rebuild", "rebuild"]


@pytest.mark.parametrize("known", [False, True])
def test_a_view_that_raises_knows_nothing(known: bool) -> None:
    bench = Bench()
    bench.set("a", 1)
    if known:
        bench.view.refresh()
    bench.set("b", 2)
    bench.set("c", 3)
    bench.view.fails = True
    with pytest.raises(RuntimeError):
        bench.view.refresh()
    assert not bench.view.is_known
    bench.view.fails = False
    bench.view.refresh()
    assert bench.view.did[-1] == "rebuild"
    assert bench.view.squares == {"a": 1, "b": 4, "c": 9}


def test_validate_finds_what_updating_got_wrong() -> None:
    bench = Bench()
    bench.set("a", 2)
    bench.view.refresh()
    bench.view.squares["a"] = 5
    with pytest.raises(InvariantError, match=r"Squares\.squares"):
        bench.view.validate()


def test_validate_finds_a_rebuild_that_changes_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.set("a", 2)
    monkeypatch.setattr(Squares, "rebuild", lambda self: self._apply(list(self._numbers)))
    with pytest.raises(InvariantError, match="assigns a new"):
        bench.view.validate()


# --- columns ----------------------------------------------------------------------------------


class Watched:
    """A column of cpu, and which rows it was asked for."""

    def __init__(self, nodes: int) -> None:
        self.table = NodeTable()
        for number in range(nodes):
            self.table.put_node(node(f"n{number}", cpu=str(number)))
        self.asked: list[list[int]] = []
        self.stamp: Hashable = None
        self.column = Column(
            self.table, self.table.node_changes, self._evaluate, stamp=lambda: self.stamp
        )

    def _evaluate(self, nodes: NodeRows) -> Int64Array:
        self.asked.append(nodes.row_numbers().tolist())
        return nodes.allocatable(CPU) // 1000

    def read(self) -> list[int]:
        """Read the column; `asked` then tells what this reading evaluated."""
        self.asked.clear()
        return self.column.current().tolist()


def test_the_first_reader_has_all_rows_evaluated() -> None:
    watched = Watched(5)
    assert watched.read() == [0, 1, 2, 3, 4]
    assert watched.asked == [[0, 1, 2, 3, 4]]


def test_nothing_is_evaluated_while_nothing_changes() -> None:
    watched = Watched(5)
    watched.read()
    watched.read()
    assert watched.asked == []


def test_only_changed_rows_are_evaluated_again() -> None:
    watched = Watched(SPARSE * 2)
    watched.read()
    watched.table.put_node(node("n3", cpu="33"))
    watched.table.put_node(node("n1", cpu="11"))
    watched.table.put_node(node("n3", cpu="34"))
    assert watched.read() == [0, 11, 2, 34, 4, 5, 6, 7]
    assert watched.asked == [[3, 1]]


def test_many_changed_rows_are_evaluated_all_at_once() -> None:
    watched = Watched(SPARSE)
    watched.read()
    watched.table.put_node(node("n0", cpu="10"))
    watched.table.put_node(node("n1", cpu="11"))
    assert watched.read() == [10, 11, 2, 3]
    assert watched.asked == [[0, 1, 2, 3]]


def test_new_rows_are_evaluated() -> None:
    watched = Watched(SPARSE * 2)
    watched.read()
    watched.table.put_node(node("new", cpu="77"))
    assert watched.read() == [0, 1, 2, 3, 4, 5, 6, 7, 77]
    assert watched.asked == [[8]]


def test_a_row_given_to_another_node_is_evaluated() -> None:
    watched = Watched(SPARSE * 2)
    watched.read()
    watched.table.remove_node("n2")
    watched.table.put_node(node("new", cpu="77"))
    assert watched.read() == [0, 1, 77, 3, 4, 5, 6, 7]
    assert watched.asked == [[2]]


def test_another_stamp_makes_all_rows_stale() -> None:
    watched = Watched(SPARSE * 2)
    watched.stamp = "one"
    watched.read()
    watched.read()
    assert watched.asked == []
    watched.stamp = "two"
    watched.read()
    assert watched.asked == [list(range(SPARSE * 2))]


def test_some_rows_are_evaluated_alone_if_no_others_are_known() -> None:
    watched = Watched(5)
    assert watched.column.at(np.array([1, 3])).tolist() == [1, 3]
    assert watched.column.at(slice(3, 5)).tolist() == [3, 4]
    assert watched.asked == [[1, 3], [3, 4]]


def test_some_rows_are_taken_from_all_if_those_are_known() -> None:
    watched = Watched(5)
    watched.read()
    watched.asked.clear()
    assert watched.column.at(np.array([1, 3])).tolist() == [1, 3]
    assert watched.asked == []
    watched.table.put_node(node("n1", cpu="9"))
    assert watched.column.at(np.array([1, 3])).tolist() == [9, 3]
    assert watched.asked == [[1]]


def test_whether_all_nodes_have_the_same() -> None:
    watched = Watched(3)
    assert not watched.column.is_uniform()
    for number in range(3):
        watched.table.put_node(node(f"n{number}", cpu="7"))
    assert watched.column.is_uniform()
    watched.asked.clear()
    assert watched.column.is_uniform()
    assert watched.asked == []
    watched.table.put_node(node("n1", cpu="8"))
    assert not watched.column.is_uniform()
    watched.table.remove_node("n1")
    assert watched.column.is_uniform(), "rows without a node do not count"


# --- rows computed when they are asked for ------------------------------------------------------


class LazyCpu(LazyRows):
    """The cpu of rows, and which rows were computed."""

    def __init__(self, table: NodeTable, names: Log[str]) -> None:
        super().__init__(table, table.node_changes, names)
        self.computed: list[int] = []

    def empty(self, size: int) -> Int64Array:
        return np.zeros(size, dtype=np.int64)

    def compute(self, rows: IndexArray) -> None:
        self.computed += rows.tolist()
        self.values[rows] = self._table.allocatable[CPU, rows]


def test_lazy_rows_are_computed_once_until_a_log_names_them() -> None:
    table, names = NodeTable(), Log[str]()
    for number in range(3):
        table.put_node(node(f"n{number}", cpu=str(number)))
    lazy = LazyCpu(table, names)

    def computed(*rows: int) -> list[int]:
        lazy.computed = []
        lazy.refresh()
        lazy.ensure(np.array(rows, dtype=np.intp))
        return lazy.computed

    assert computed(0, 2) == [0, 2]
    assert computed(0, 1) == [1]
    table.put_node(node("n2", cpu="9"))
    names.record("n0")
    names.record("unknown")
    assert computed(0, 1, 2) == [0, 2]
    assert lazy.values.tolist() == [0, 1000, 9000]
    table.put_node(node("n3", cpu="4"))
    assert computed(3) == [3]
    lazy.validate()
    lazy.values[1] += 1
    with pytest.raises(InvariantError):
        lazy.validate()


# --- answers that are remembered --------------------------------------------------------------


def test_a_memo_forgets_when_something_changes() -> None:
    log, asked = Log[int](), list[int]()

    def double(key: int) -> int:
        asked.append(key)
        return 2 * key

    memo = Memo(double, log, limit=2)
    assert [memo.of(1), memo.of(1), memo.of(2)] == [2, 2, 4]
    assert asked == [1, 2]
    memo.of(3)
    memo.of(1)
    assert asked == [1, 2, 3, 1], "the least recently used one was dropped"
    log.record(0)
    memo.of(1)
    assert asked == [1, 2, 3, 1, 1]


def test_a_memo_checks_what_it_remembers() -> None:
    factor = [2]
    memo: Memo[int, int] = Memo(lambda key: factor[0] * key, Log[int]())
    memo.of(4)
    memo.validate()
    factor[0] = 3
    with pytest.raises(InvariantError, match="cached result for 4"):
        memo.validate()
