"""QuietAfterRestart: keep new pods off a node that restarted a short while ago.

A node that restarted once may do so again. The node's operator writes the time of the last restart
to an annotation, ``example.com/restarted-at: 2026-11-16T08:00:00Z``.

The answer depends on the time, so it cannot be cached: the plugin is called for every node in every
cycle. No event tells that the time is over; a pod that waits for it is retried when something else
changes, or after five minutes (``--pod-max-in-unschedulable-pods-duration``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from kubesched.framework.node_by_node import NodeFilter, NodeWithPods, PodView
from kubesched.plugin_loading import Arguments

ANNOTATION = "example.com/restarted-at"


class QuietAfterRestart(NodeFilter):
    """Filters by the age of the last restart."""

    name = "QuietAfterRestart"
    #: the wall clock; replaced in tests
    now: Callable[[], float] = staticmethod(time.time)

    class Args(Arguments):
        """What the configuration may say."""

        quiet_minutes: float = 60.0
        #: pods with at least this priority are not rejected
        urgent_priority: int = 1_000_000_000

    def __init__(self, args: Args) -> None:
        self._args = args

    def filter_node(self, pod: PodView, node: NodeWithPods) -> str | None:
        """Reject nodes that restarted recently."""
        text = node.annotations.get(ANNOTATION)
        if text is None or pod.priority >= self._args.urgent_priority:
            return None
        age_s = self.now() - datetime.fromisoformat(text).timestamp()
        return "node(s) restarted recently" if age_s < self._args.quiet_minutes * 60 else None
