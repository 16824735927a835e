"""Metrics that plugins of other people bring along: collectors of ``prometheus_client``."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kubesched.errors import PluginError


class PluginMetrics(Collector):
    """Collectors that were registered, shown without the time of their creation."""

    def __init__(self, *, taken: Collection[str], disabled: Collection[str]) -> None:
        #: names that the scheduler exports itself
        self._taken = taken
        self._disabled = disabled
        self._registry = CollectorRegistry(auto_describe=True)
        self._is_empty = True

    def register(self, collector: Collector) -> None:
        """Export a collector too; PluginError if a name is taken."""
        for metric in collector.collect():
            if _exposed_name(metric) in self._taken:
                raise PluginError(
                    f"metric {_exposed_name(metric)} is one of the scheduler's own: "
                    "give the plugin's another name"
                )
        try:
            self._registry.register(collector)
        except ValueError as error:
            raise PluginError(f"metric registered twice: {error}") from error
        self._is_empty = False

    def text(self) -> str:
        """Write them as Prometheus reads them."""
        return "" if self._is_empty else generate_latest(self).decode()

    def collect(self) -> Iterator[Metric]:
        """Give what is to be shown."""
        for metric in self._registry.collect():
            if _exposed_name(metric) not in self._disabled:
                shown = Metric(metric.name, metric.documentation, metric.type, metric.unit)
                created = f"{metric.name}_created"
                shown.samples = [sample for sample in metric.samples if sample.name != created]
                yield shown


def _exposed_name(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.type == "counter" else metric.name
