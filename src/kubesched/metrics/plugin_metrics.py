"""Metrics of out-of-tree plugins: collectors of ``prometheus_client``."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kubesched.errors import PluginError


class PluginMetrics(Collector):
    """Registered collectors, exported without creation timestamps."""

    def __init__(self, *, taken: Collection[str], disabled: Collection[str]) -> None:
        #: names that the scheduler itself exports
        self._taken = taken
        self._disabled = disabled
        self._registry = CollectorRegistry(auto_describe=True)
        self._is_empty = True

    def register(self, collector: Collector) -> None:
        """Export a collector; raises PluginError if a name is taken."""
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
        """Format them for Prometheus."""
        return "" if self._is_empty else generate_latest(self).decode()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics to export."""
        for metric in self._registry.collect():
            if _exposed_name(metric) not in self._disabled:
                shown = Metric(metric.name, metric.documentation, metric.type, metric.unit)
                created = f"{metric.name}_created"
                shown.samples = [sample for sample in metric.samples if sample.name != created]
                yield shown


def _exposed_name(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.type == "counter" else metric.name
