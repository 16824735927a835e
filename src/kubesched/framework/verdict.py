"""What a filter says about many nodes at once."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kubesched.cluster.arrays import BoolArray
from kubesched.framework.status import Status


class Verdict:
    """One answer a row, as an index into a few distinct ones.

    ``answers[i]`` is 0 where row i passes, and otherwise a number k that stands for
    ``statuses[k - 1]``.
    """

    __slots__ = ("answers", "statuses")

    def __init__(
        self, answers: npt.NDArray[np.integer] | None, statuses: tuple[Status, ...]
    ) -> None:
        #: None if all rows pass
        self.answers = answers
        self.statuses = statuses

    def status_of(self, element: int) -> Status | None:
        """Return the rejection of one element, or None if it passes."""
        if self.answers is None or not self.answers[element]:
            return None
        return self.statuses[self.answers[element] - 1]


ALL_PASS: Final = Verdict(None, ())


def reject(rejected: BoolArray, status: Status) -> Verdict:
    """Turn some rows away for the same reason."""
    if not rejected.any():
        return ALL_PASS
    return Verdict(rejected.view(np.uint8), (status,))


def first_of(*verdicts: Verdict) -> Verdict:
    """Combine verdicts on the same rows: for each row the first rejection counts."""
    answers: npt.NDArray[np.integer] | None = None
    statuses: tuple[Status, ...] = ()
    for verdict in verdicts:
        if verdict.answers is None:
            continue
        before = len(statuses)
        statuses += verdict.statuses
        if answers is None:
            answers = verdict.answers
            continue
        # Each verdict's numbers come after those of the verdicts before it.
        dtype = np.min_scalar_type(len(statuses))
        later = verdict.answers.astype(dtype)
        later[later > 0] += before
        answers = np.where(answers > 0, answers.astype(dtype), later)
    return Verdict(answers, statuses)
