"""The heap: in order, those with equal keys as they came, and any pod can be removed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.errors import InvariantError
from kubesched.queue.heap import PodHeap
from tests.support.queueing import queued, sort_key


def _heap() -> PodHeap:
    return PodHeap(sort_key)


def _drained(heap: PodHeap) -> list[str]:
    return [pod.key for pod in iter(heap.pop, None)]


def test_an_empty_heap() -> None:
    heap = _heap()
    assert heap.pop() is None
    assert heap.peek() is None
    assert heap.remove("x") is None
    assert heap.get("x") is None
    assert len(heap) == 0


def test_pods_are_ordered_by_key_then_by_arrival() -> None:
    heap = _heap()
    for name, priority, at in (("a", 0, 2), ("b", 5, 9), ("c", 0, 1), ("d", 0, 2), ("e", 5, 9)):
        heap.push(queued(name, priority=priority, at=at))
    assert _drained(heap) == ["b", "e", "c", "a", "d"]


def test_peek_leaves_the_pod() -> None:
    heap = _heap()
    heap.push(queued("a"))
    assert heap.peek() is heap.get("a")
    assert "a" in heap
    assert len(heap) == 1


def test_a_pod_cannot_be_pushed_twice_but_again_after_removal() -> None:
    heap = _heap()
    pod = queued("a")
    heap.push(pod)
    with pytest.raises(InvariantError, match="in the heap already"):
        heap.push(pod)
    assert heap.remove("a") is pod
    heap.push(pod)
    assert _drained(heap) == ["a"]


def test_a_removed_pod_leaves_no_trace() -> None:
    heap = _heap()
    for name in "abc":
        heap.push(queued(name))
    heap.remove("a")
    assert "a" not in heap
    assert heap.get("a") is None
    assert sorted(pod.key for pod in heap) == ["b", "c"]
    assert heap.peek() is heap.get("b")
    assert _drained(heap) == ["b", "c"]


def test_memory_stays_proportional_to_the_number_of_pods() -> None:
    heap = _heap()
    for number in range(1000):
        heap.push(queued(f"p{number}", at=number))
    for number in range(990):
        heap.remove(f"p{number}")
    assert len(heap._heap) <= 2 * len(heap) + 64
    assert _drained(heap) == [f"p{number}" for number in range(990, 1000)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["push", "push", "pop", "remove", "peek"]),
            st.integers(0, 9),
            st.integers(-1, 1),
            st.integers(0, 3),
        ),
        max_size=60,
    )
)
def test_a_heap_is_a_sorted_list(steps: list[tuple[str, int, int, int]]) -> None:
    heap = _heap()
    model: list[tuple[int, float, int, str]] = []
    for arrival, (what, number, priority, at) in enumerate(steps):
        name = f"p{number}"
        known = next((entry for entry in model if entry[3] == name), None)
        if what == "push" and known is None:
            heap.push(queued(name, priority=priority, at=at))
            model.append((-priority, at, arrival, name))
            model.sort()
        elif what == "remove":
            removed = heap.remove(name)
            assert (removed and removed.key) == (known and known[3])
            if known is not None:
                model.remove(known)
        elif what in ("pop", "peek"):
            found = heap.pop() if what == "pop" else heap.peek()
            assert (found and found.key) == (model[0][3] if model else None)
            if what == "pop" and model:
                del model[0]
        assert len(heap) == len(model)
        assert {pod.key for pod in heap} == {entry[3] for entry in model}
    assert _drained(heap) == [entry[3] for entry in model]
