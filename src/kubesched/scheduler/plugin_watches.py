"""Trouble with plugins of others, told to the owners of the pods that it was about.

    a plugin's Watch ──> PluginWatches ──> an event on the pod

A watch does not know whose cycle it is in when a row-local plugin is asked, which never sees a pod.
So it is told before each decision.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from kubesched.framework.runtime import Framework
from kubesched.plugin_loading.watching import Trouble, Watch, watches_of
from kubesched.scheduler.recorders import Recorders


class PluginWatches:
    """The watches of all profiles' plugins; those in the tree have none."""

    def __init__(self, recorders: Recorders) -> None:
        self._recorders = recorders
        self._watches: WeakKeyDictionary[Framework, tuple[Watch, ...]] = WeakKeyDictionary()

    def of(self, framework: Framework) -> tuple[Watch, ...]:
        """Return those of a profile."""
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
