"""The normalisation that several plugins share."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.plugins.normalize import scale_to_best, scale_to_worst


@pytest.mark.parametrize(
    ("raw", "best", "worst"),
    [
        pytest.param([], [], [], id="no nodes"),
        pytest.param([0, 0], [0, 0], [100, 100], id="all zero"),
        pytest.param([5], [100], [0], id="one node"),
        pytest.param([1, 2, 3], [33, 66, 100], [67, 34, 0], id="cut to integers"),
        pytest.param([200, 100], [100, 50], [0, 50], id="more than 100"),
        pytest.param([0, 7], [0, 100], [100, 0], id="from nothing to all"),
    ],
)
def test_scaling(raw: list[int], best: list[int], worst: list[int]) -> None:
    scores = np.array(raw, dtype=np.int64)
    assert scale_to_best(scores).tolist() == best
    assert scale_to_worst(scores).tolist() == worst
    assert scores.tolist() == raw, "the cached raw scores stay as they are"
