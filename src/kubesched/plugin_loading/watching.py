"""What becomes known of a plugin that fails or is slow: counted each time, logged now and then.

    call ──┬─ raised ──> kubesched_plugin_failures_total, text with file and line for the pod
           └─ slow ────> kubesched_plugin_slow_total

A plugin that fails does so for one pod after the other; a log full of it hides the rest. So the
first one is logged, and after that one line a period says how many there were.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kubesched import logs
from kubesched.metrics.recorder import Metrics

_log = logs.get_logger(__name__)

#: How long one call may take, which is about one pod and all nodes, unless the plugin's class
#: has a `budget_s` of its own.
BUDGET_S: Final = 0.1
#: At most one line of a kind is logged in this time.
PERIOD_S: Final = 60.0


class Watch:
    """Keeps an eye on one plugin."""

    def __init__(
        self,
        plugin: str,
        file: str,
        *,
        metrics: Metrics,
        timer: Callable[[], float],
        budget_s: float = BUDGET_S,
    ) -> None:
        self._plugin = plugin
        self._file = file
        self._failures = metrics.plugin_failures.labels(plugin)
        self._slow = metrics.plugin_slow.labels(plugin)
        self._failures_told = _NowAndThen(timer)
        self._slow_told = _NowAndThen(timer)
        self.timer = timer
        self.budget_s = budget_s

    def failed(self, bug: Exception) -> str:
        """Take note of a failure; return what to tell the pod's owner."""
        self._failures.inc()
        text = f"plugin {self._plugin} failed at {where(bug, self._file)}: {what(bug)}"
        if count := self._failures_told.due():
            _log.error("Plugin failed", text, plugin=self._plugin, failures=count)
        if _log.enabled(4):
            _log.v(4, "Plugin failed", trace="".join(traceback.format_exception(bug)))
        return text

    def took(self, method: str, seconds: float) -> None:
        """Take note of a call that took longer than the budget."""
        self._slow.inc()
        if count := self._slow_told.due():
            _log.warning(
                "Plugin is slow",
                plugin=self._plugin,
                method=method,
                tookMs=round(seconds * 1000.0, 1),
                budgetMs=round(self.budget_s * 1000.0, 1),
                times=count,
            )


class _NowAndThen:
    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._next_s = float("-inf")
        self._untold = 0

    def due(self) -> int:
        """Count one more; return how many to tell of, 0 if it is not yet time to tell."""
        self._untold += 1
        now = self._timer()
        if now < self._next_s:
            return 0
        count, self._untold, self._next_s = self._untold, 0, now + PERIOD_S
        return count


def where(bug: BaseException, file: str) -> str:
    """Return ``file:line`` of a failure: the innermost place in `file`, or else the innermost."""
    if isinstance(bug, SyntaxError) and bug.filename:
        return f"{bug.filename}:{bug.lineno or 0}"
    frames = traceback.extract_tb(bug.__traceback__)
    own = [each for each in frames if _same(each.filename, file)]
    if not frames:
        return file
    at = (own or frames)[-1]
    return f"{at.filename}:{at.lineno}"


def _same(one: str, other: str) -> bool:
    return one == other or (
        Path(one).name == Path(other).name and Path(one).resolve() == Path(other).resolve()
    )


def what(bug: BaseException) -> str:
    """Return a failure on one line."""
    said = bug.msg if isinstance(bug, SyntaxError) else str(bug)
    text = " ".join(str(said).split())
    return f"{type(bug).__name__}: {text}" if text else type(bug).__name__
