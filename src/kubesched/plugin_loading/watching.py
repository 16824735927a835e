"""Reports plugins that fail or are slow: always counted, logged at a limited rate.

    call ──┬─ raised ──> kubesched_plugin_failures_total, message with file and line for the pod
           └─ time ────> summed over a scheduling cycle; over budget:
                         kubesched_plugin_slow_total

A broken plugin fails for one pod after the other, and would flood the log. So the first failure is
logged, with an event on its pod, and then one per period with their number.

The scheduling cycle calls `begin` and `end` with its pod: row-local plugins never see one. While
one cycle waits for an extender, another may begin and end. Outside of a cycle every call has its
own budget.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from kubesched import logs
from kubesched.api.core import Pod
from kubesched.cluster.pod_info import PodInfo
from kubesched.metrics.recorder import Metrics

_log = logs.get_logger(__name__)

#: How long a plugin may take in one scheduling cycle (one pod, all nodes), unless its class has
#: #: its own `budget_s`.
BUDGET_S: Final = 0.1
#: At most one line and one event of a kind are written per this time.
PERIOD_S: Final = 60.0

#: Reasons of events.
FAILED: Final = "PluginFailed"
SLOW: Final = "PluginSlow"

#: Attribute that holds a plugin's watch.
WATCH: Final = "_kubesched_watch"


class Trouble(Struct, frozen=True):
    """A problem to report to a pod's owner."""

    pod: Pod
    reason: str
    note: str


Tell = Callable[[Trouble], None]


class Watch:
    """Monitors one plugin."""

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
        #: whether a cycle is in progress, and its pod
        self._in_cycle = False
        self._pod: PodInfo | None = None
        #: method → seconds in that cycle, and their sum
        self._spent: dict[str, float] = {}
        self._seconds = 0.0
        #: cycles that wait while another one is in progress
        self._waiting: list[tuple[PodInfo | None, dict[str, float], float]] = []
        #: records events; earlier problems wait for it, the last of each reason
        self._tell: Tell | None = None
        self._untold: dict[str, Trouble] = {}

    def report_to(self, tell: Tell) -> None:
        """Set the recorder of events."""
        self._tell = tell
        untold, self._untold = self._untold, {}
        for trouble in untold.values():
            tell(trouble)

    def failed(self, bug: Exception, pod: PodInfo | None = None) -> str:
        """Record a failure; return the message for the pod's owner."""
        self._failures.inc()
        text = f"plugin {self._plugin} failed at {where(bug, self._file)}: {what(bug)}"
        if count := self._failures_told.due():
            _log.error("Plugin failed", text, plugin=self._plugin, failures=count)
            self._report(pod or self._pod, FAILED, _times(text, count))
        if _log.enabled(4):
            _log.v(4, "Plugin failed", trace="".join(traceback.format_exception(bug)))
        return text

    def begin(self, pod: PodInfo) -> None:
        """Start a scheduling cycle."""
        if self._in_cycle:
            self._waiting.append((self._pod, self._spent, self._seconds))
            self._spent, self._seconds = {}, 0.0
        self._in_cycle, self._pod = True, pod

    def end(self) -> None:
        """End the cycle that began last."""
        spent = self._spent
        if self._seconds > self.budget_s:
            self.took(max(spent, key=lambda each: spent[each]), self._seconds, self._pod)
        if self._waiting:
            self._pod, self._spent, self._seconds = self._waiting.pop()
            return
        spent.clear()
        self._in_cycle, self._pod, self._seconds = False, None, 0.0

    def spent(self, method: str, seconds: float) -> bool:
        """Add a call to the current cycle; False if there is none."""
        if not self._in_cycle:
            return False
        self._seconds += seconds
        self._spent[method] = self._spent.get(method, 0.0) + seconds
        return True

    def took(self, method: str, seconds: float, pod: PodInfo | None = None) -> None:
        """Compare a cycle, or a call outside of one, with the budget; `method` took most of it."""
        if seconds <= self.budget_s:
            return
        self._slow.inc()
        took_ms, budget_ms = round(seconds * 1000.0, 1), round(self.budget_s * 1000.0, 1)
        if count := self._slow_told.due():
            _log.warning(
                "Plugin is slow",
                plugin=self._plugin,
                method=method,
                tookMs=took_ms,
                budgetMs=budget_ms,
                times=count,
            )
            text = (
                f"plugin {self._plugin} took {took_ms:g} ms for this pod, most of it in {method}; "
                f"its budget is {budget_ms:g} ms"
            )
            self._report(pod, SLOW, _times(text, count))

    def _report(self, pod: PodInfo | None, reason: str, note: str) -> None:
        if pod is None:
            return  # an event on the wrong pod is worse than none
        trouble = Trouble(pod.pod, reason, note)
        if self._tell is None:
            self._untold[reason] = trouble
        else:
            self._tell(trouble)


def watches_of(plugins: Iterable[object]) -> list[Watch]:
    """Return the watches of out-of-tree plugins."""
    found = (getattr(plugin, WATCH, None) for plugin in plugins)
    return [each for each in found if isinstance(each, Watch)]


def _times(text: str, count: int) -> str:
    return text if count == 1 else f"{text} ({count} times since the last event about it)"


class _NowAndThen:
    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._next_s = float("-inf")
        self._untold = 0

    def due(self) -> int:
        """Count one more; return how many to report, 0 if it is not yet time."""
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
    """Format a failure on one line."""
    said = bug.msg if isinstance(bug, SyntaxError) else str(bug)
    text = " ".join(str(said).split())
    return f"{type(bug).__name__}: {text}" if text else type(bug).__name__
