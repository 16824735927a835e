"""PrioritySort: by priority, then by time in the queue."""

from __future__ import annotations

import pytest

from kubesched.cluster.pod_info import PodCompiler
from kubesched.plugins.priority_sort import PrioritySort
from kubesched.queue.queued_pod import QueuedPod
from tests.support.objects import pod

_COMPILER = PodCompiler()


def _queued(priority: int | None, at: float) -> QueuedPod:
    return QueuedPod(_COMPILER.pending(pod(priority=priority)), queued_at=at)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((10, 5.0), (0, 1.0), id="the more important one, however late it came"),
        pytest.param((0, 1.0), (0, 2.0), id="among equals the one that waited longest"),
        pytest.param((None, 9.0), (-1, 1.0), id="no priority is priority zero"),
        pytest.param((2_000_000_000, 9.0), (1_999_999_999, 1.0), id="no rounding"),
    ],
)
def test_order(first: tuple[int | None, float], second: tuple[int | None, float]) -> None:
    key = PrioritySort().sort_key
    assert key(_queued(*first)) < key(_queued(*second))


def test_neither_comes_first_if_nothing_tells_them_apart() -> None:
    key = PrioritySort().sort_key
    assert key(_queued(1, 2.0)) == key(_queued(1, 2.0))
