"""How long a pod waits: 1, 2, 4, 8, 10, 10 s, cut to whole seconds."""

from __future__ import annotations

import pytest

from kubesched.queue.backoff import Backoff
from kubesched.queue.queued_pod import QueuedPod
from tests.support.queueing import queued


def _failed(*, rejections: int = 0, errors: int = 0, at: float = 100.0) -> QueuedPod:
    pod = queued("p", at=at)
    pod.unschedulable_count = rejections
    pod.consecutive_errors = errors
    return pod


@pytest.mark.parametrize(
    ("failures", "want"),
    [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (100, 10), (10**6, 10)],
)
def test_the_backoff_doubles_up_to_ten_seconds(failures: int, want: float) -> None:
    assert Backoff().duration_s(_failed(rejections=failures)) == want
    assert Backoff().duration_s(_failed(errors=failures)) == want


@pytest.mark.parametrize(
    ("initial_s", "max_s", "want"),
    [
        pytest.param(3, 10, [3, 6, 10, 10], id="not a power of two"),
        pytest.param(1, 1, [1, 1, 1, 1], id="constant"),
        pytest.param(2, 60, [2, 4, 8, 16], id="longer"),
        pytest.param(1, 0, [0, 0, 0, 0], id="a longest wait of zero switches it off"),
    ],
)
def test_initial_and_longest_backoff_are_configurable(
    initial_s: float, max_s: float, want: list[float]
) -> None:
    backoff = Backoff(initial_s=initial_s, max_s=max_s)
    assert [backoff.duration_s(_failed(rejections=count)) for count in range(1, 5)] == want


def test_consecutive_errors_count_instead_of_rejections() -> None:
    assert Backoff().duration_s(_failed(rejections=4, errors=1)) == 1
    assert Backoff().duration_s(_failed(rejections=1, errors=3)) == 4
    assert Backoff().duration_s(_failed(rejections=3, errors=0)) == 4


@pytest.mark.parametrize(
    ("failed_at", "want"),
    [(100.0, 101.0), (100.001, 101.0), (100.999, 101.0), (101.0, 102.0)],
)
def test_expiry_is_truncated_to_whole_seconds(failed_at: float, want: float) -> None:
    assert Backoff().expires_at(_failed(rejections=1, at=failed_at)) == want


@pytest.mark.parametrize(
    ("now", "waiting"),
    [
        pytest.param(100.5, True, id="before"),
        pytest.param(101.0, True, id="in the second of its expiry, still"),
        pytest.param(101.999, True, id="to its very end"),
        pytest.param(102.0, False, id="after it, not"),
    ],
)
def test_a_pod_backs_off_through_the_second_of_its_expiry(now: float, waiting: bool) -> None:
    pod = _failed(rejections=1, at=100.4)
    assert Backoff().is_waiting(pod, now) is waiting


def test_a_pod_that_never_failed_does_not_back_off() -> None:
    assert not Backoff().is_waiting(_failed(), 0.0)
    assert not Backoff().is_waiting(_failed(at=5000.0), 0.0)


def test_no_pod_waits_without_backoff() -> None:
    assert not Backoff(max_s=0).is_waiting(_failed(rejections=9), 0.0)


@pytest.mark.parametrize(
    ("failures", "after_s", "resting"),
    [
        pytest.param(1, 0.0, False, id="the first failures"),
        pytest.param(4, 0.0, False, id="as long as the wait doubles"),
        pytest.param(5, 0.0, True, id="the longest wait"),
        pytest.param(5, 0.999, True, id="a tenth of it"),
        pytest.param(5, 1.0, False, id="and no longer"),
    ],
)
def test_a_pod_in_its_longest_backoff_rests_for_a_tenth_of_it(
    failures: int, after_s: float, resting: bool
) -> None:
    assert Backoff().is_resting(_failed(rejections=failures), 100.0 + after_s) is resting


def test_no_pod_rests_without_backoff() -> None:
    assert not Backoff(max_s=0).is_resting(_failed(rejections=9), 100.0)
