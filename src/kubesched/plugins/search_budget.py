"""How long searches for devices may take.

search on one node    until the filter timeout, in all attempts together
one attempt           until its slice of time is over, if it may be paused; then other tasks get
                      their turn, and the next attempt resumes the search
                      until the filter timeout, for all nodes together, if it may not
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesched.plugins.device_search import Search, Solution

#: How long other tasks have to wait for a search, such as those that read watches.
SLICE_S: Final = 0.03


class SearchBudget:
    """The time that one attempt may take."""

    def __init__(self, timer: Callable[[], float], timeout_s: float, *, may_pause: bool) -> None:
        """`timeout_s` is 0 for as long as it takes."""
        self._timer = timer
        self._timeout_s = timeout_s
        self._is_paused = may_pause
        limit_s = SLICE_S if may_pause else timeout_s
        self._ends: float | None = timer() + limit_s if limit_s else None

    @property
    def is_over(self) -> bool:
        """Whether the attempt has to end."""
        return self._ends is not None and self._timer() >= self._ends

    @property
    def is_paused(self) -> bool:
        """Whether the attempt can be made again, now that it has to end."""
        return self._is_paused and self.is_over

    def is_spent(self, search: Search) -> bool:
        """Whether a search has taken all of its time."""
        return bool(self._timeout_s) and search.spent_s >= self._timeout_s

    def run(self, search: Search) -> Solution | None:
        """Search until there is an answer, or raise SearchPausedError when time is up."""
        started, before = self._timer(), search.spent_s
        left_s = self._timeout_s - before if self._timeout_s else None

        def is_over() -> bool:
            return self.is_over or (left_s is not None and self._timer() - started >= left_s)

        try:
            return search.run(is_over)
        finally:
            search.spent_s = before + self._timer() - started
