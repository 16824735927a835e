"""A slow plugin is told of on the pod that it was slow for, placed or not."""

from __future__ import annotations

from typing import Any

from kubesched.clock import VirtualClock
from kubesched.config.features import FeatureGates
from kubesched.metrics.recorder import Metrics
from kubesched.plugin_loading.watching import SLOW, WATCH, Watch
from kubesched.scheduler.plugin_watches import PluginWatches
from tests.support.objects import node, pod
from tests.support.scheduling import Lab


class Events:
    """Recorders that remember."""

    def __init__(self) -> None:
        self.warnings: list[tuple[str, str]] = []

    def warning(self, about: Any, *, reason: str, action: str, note: str) -> None:
        self.warnings.append((about.metadata.name, reason))


def test_what_a_row_local_plugin_took_is_told_on_the_pod_that_was_decided() -> None:
    lab, events = Lab(node("n1")), Events()
    watch = Watch(
        "Mine",
        "mine.py",
        metrics=Metrics(FeatureGates.of({})),
        timer=VirtualClock().monotonic,
        budget_s=0.1,
    )
    some_plugin = next(iter(lab.framework.plugins.instances.values()))
    setattr(some_plugin, WATCH, watch)
    recorders: Any = events
    watches = PluginWatches(recorders)

    for name, seconds in (("slow", 0.2), ("quick", 0.05)):
        (own,) = watches.of(lab.framework)
        own.begin(lab.pending(pod(name)))
        # Whoever filters rows does not know whose cycle it is.
        watch.spent("filter", seconds)
        own.end()
    assert events.warnings == [("slow", SLOW)]


def test_plugins_in_the_tree_are_not_watched() -> None:
    lab, events = Lab(node("n1")), Events()
    recorders: Any = events
    assert PluginWatches(recorders).of(lab.framework) == ()
