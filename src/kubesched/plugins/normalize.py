"""Normalization that several plugins share: the best node gets 100."""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import Int64Array
from kubesched.framework.plugin import MAX_NODE_SCORE


def scale_to_best(scores: Int64Array) -> Int64Array:
    """Scale so that the highest score is 100; all zeros stay zeros."""
    best = scores.max(initial=0)
    if best == 0:
        return scores
    return scores * MAX_NODE_SCORE // best


def scale_to_worst(scores: Int64Array) -> Int64Array:
    """Scale so that the highest score becomes 0 and 0 becomes 100."""
    if scores.max(initial=0) == 0:
        return np.full_like(scores, MAX_NODE_SCORE)
    return MAX_NODE_SCORE - scale_to_best(scores)
