"""Whether memory grows: lines through noise, and what they say."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from .growth import STRETCHES, Growth, Verdict, growth, line, student

#: Samples of ten seconds in two hours, at half a million changes.
SAMPLES = 720


def run(memory: Callable[[float], float], *, noise_mib: float = 1.0, seed: int = 1) -> Growth:
    """A run whose noise lasts for minutes, as that of a garbage collector does."""
    rng, off, points = random.Random(seed), 0.0, []
    for number in range(SAMPLES):
        millions = number / SAMPLES / 2
        off = 0.95 * off + rng.gauss(0, noise_mib * math.sqrt(1 - 0.95**2))
        points.append((millions, memory(millions) + off))
    found = growth(points)
    assert found is not None
    return found


def test_a_plateau_passes() -> None:
    found = run(lambda _: 100.0)
    assert found.verdict is Verdict.PASS
    assert found.low < found.slope < found.high


def test_what_is_there_after_an_hour_does_not_count() -> None:
    assert run(lambda millions: min(80 + 200 * millions, 120)).verdict is Verdict.PASS


def test_a_leak_of_a_hundred_bytes_each_change_fails() -> None:
    found = run(lambda millions: 100 + 95 * millions)
    assert found.verdict is Verdict.FAIL
    assert found.low < 95 < found.high


def test_memory_that_shrinks_passes() -> None:
    assert run(lambda millions: 100 - 50 * millions).verdict is Verdict.PASS


def test_noise_that_hides_a_leak_is_too_short_to_tell() -> None:
    assert run(lambda _: 100.0, noise_mib=30.0).verdict is Verdict.TOO_SHORT


def test_the_interval_is_as_sure_as_it_says() -> None:
    """Of runs without a leak, few fail, although neighbouring samples say nearly the same."""
    failed = sum(run(lambda _: 100.0, seed=seed).verdict is Verdict.FAIL for seed in range(200))
    assert failed <= 0.06 * 200


@pytest.mark.parametrize("count", [0, 1, STRETCHES])
def test_a_few_samples_say_nothing(count: int) -> None:
    assert growth([(float(number), 1.0) for number in range(count)]) is None


def test_a_line_without_noise_has_no_error() -> None:
    assert line([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) == (2.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("freedom", "want"), [(1, 12.706), (2, 4.303), (3.5, 2.940), (10, 2.228), (100, 1.984)]
)
def test_student_s_quantiles(freedom: float, want: float) -> None:
    assert student(freedom) == pytest.approx(want, abs=5e-4)
