"""The result of a filter for many nodes at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from kubesched.cluster.arrays import BoolArray
from kubesched.framework.status import Status

Answers = npt.NDArray[np.integer]


class Verdict:
    """One answer per row, as an index into a few distinct statuses.

    ``answers[i]`` is 0 where row i passes, and k where ``statuses[k - 1]`` rejects it; None if all
    rows pass.
    """

    __slots__ = ("_answers", "_parts", "statuses")

    def __init__(self, answers: Answers | None, statuses: tuple[Status, ...]) -> None:
        self._answers = answers
        #: the verdicts it combines, until the answers are needed
        self._parts: tuple[Verdict, ...] = ()
        self.statuses = statuses

    @classmethod
    def of_parts(cls, parts: tuple[Verdict, ...]) -> Verdict:
        """Combine verdicts, each of which rejects some row."""
        made = cls(None, tuple(status for part in parts for status in part.statuses))
        made._parts = parts
        return made

    @property
    def answers(self) -> Answers | None:
        """The answer of each row."""
        if self._parts:
            self._answers, self._parts = _merged(self._parts), ()
        return self._answers

    def masks(self) -> Iterator[BoolArray]:
        """Yield masks of rejected rows, one or more reasons each; read-only."""
        if self._parts:
            for part in self._parts:
                yield from part.masks()
        elif self._answers is not None:
            # With one status, answers are 0 and 1.
            is_mask = self._answers.itemsize == 1 == len(self.statuses)
            yield self._answers.view(np.bool_) if is_mask else self._answers > 0

    def status_of(self, element: int) -> Status | None:
        """Return the rejection of one element, None if it passes."""
        if self.answers is None or not self.answers[element]:
            return None
        return self.statuses[self.answers[element] - 1]


ALL_PASS: Final = Verdict(None, ())


def reject(rejected: BoolArray, status: Status) -> Verdict:
    """Reject some rows for the same reason."""
    # count_nonzero is faster than ``any``, here and on other hot paths.
    if not np.count_nonzero(rejected):
        return ALL_PASS
    return Verdict(rejected.view(np.uint8), (status,))


def first_of(*verdicts: Verdict) -> Verdict:
    """Combine verdicts on the same rows: for each row the first rejection counts."""
    parts = tuple(each for each in verdicts if each.statuses)
    if len(parts) > 1:
        return Verdict.of_parts(parts)
    return parts[0] if parts else ALL_PASS


def _merged(parts: tuple[Verdict, ...]) -> Answers | None:
    answers: Answers | None = None
    before = 0
    for part in parts:
        if part.answers is None:
            continue
        after = before + len(part.statuses)
        # Each part's numbers follow those of the parts before it.
        dtype = np.min_scalar_type(after)
        later = part.answers.astype(dtype)
        if before:
            later[later > 0] += before
        answers = later if answers is None else np.where(answers > 0, answers.astype(dtype), later)
        before = after
    return answers
