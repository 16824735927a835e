"""Reports failures of out-of-tree plugins as events on the pods in whose cycles they occur.

    a plugin's Watch ──> PluginWatches ──> an event on the pod

A row-local plugin never sees the pod, so its watch cannot tell which pod is being scheduled. It is
set before each decision.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from kubesched.framework.runtime import Framework
from kubesched.plugin_loading.watching import Trouble, Watch, watches_of
from kubesched.scheduler.recorders import Recorders


class PluginWatches:
    """The watches of all profiles' plugins; in-tree plugins have none."""

    def __init__(self, recorders: Recorders) -> None:
        self._recorders = recorders
        self._watches: WeakKeyDictionary[Framework, tuple[Watch, ...]] = WeakKeyDictionary()

    def of(self, framework: Framework) -> tuple[Watch, ...]:
        """Return the watches of a profile's plugins."""
        watches = self._watches.get(framework)
        if watches is None:
            watches = self._watches[framework] = tuple(
                watches_of(framework.plugins.instances.values())
            )
            for watch in watches:
                watch.report_to(self._tell)
        return watches

    def _tell(self, trouble: Trouble) -> None:
        self._recorders.warning(
            trouble.pod, reason=trouble.reason, action="Scheduling", note=trouble.note
        )
