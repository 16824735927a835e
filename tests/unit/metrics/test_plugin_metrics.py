"""Metrics that plugins of other people bring along."""

from __future__ import annotations

import prometheus_client
import pytest

from kubesched.config.features import FeatureGates
from kubesched.errors import PluginError
from kubesched.metrics.options import MetricsOptions
from kubesched.metrics.recorder import Metrics
from tests.support.exposed_metrics import Exposed

GATES = FeatureGates.of()


def test_registered_collector_is_exported_too() -> None:
    metrics = Metrics(GATES)
    mine = prometheus_client.Counter("licences_used", "Licences.", ["vendor"], registry=None)
    metrics.register(mine)
    mine.labels("acme").inc(3)
    text = Exposed(metrics.render())
    assert text.types["licences_used_total"] == "counter"
    assert text.value("licences_used_total", vendor="acme") == 3
    assert "_created" not in text.text
    assert "scheduler_preemption_attempts_total" in text.types


def test_names_of_the_scheduler_are_taken() -> None:
    gauge = prometheus_client.Gauge("scheduler_pending_pods", "Mine.", registry=None)
    with pytest.raises(PluginError, match="scheduler_pending_pods is one of the scheduler's own"):
        Metrics(GATES).register(gauge)
    counter = prometheus_client.Counter("scheduler_schedule_attempts", "Mine.", registry=None)
    with pytest.raises(PluginError, match="scheduler_schedule_attempts_total is one of"):
        Metrics(GATES).register(counter)


def test_a_name_can_be_registered_once() -> None:
    metrics = Metrics(GATES)
    metrics.register(prometheus_client.Gauge("mine", "Mine.", registry=None))
    with pytest.raises(PluginError, match="registered twice"):
        metrics.register(prometheus_client.Gauge("mine", "Mine.", registry=None))


def test_disabled_metric_of_a_plugin_is_hidden() -> None:
    metrics = Metrics(GATES, MetricsOptions(disabled_metrics=("mine",)))
    metrics.register(prometheus_client.Gauge("mine", "Mine.", registry=None))
    metrics.register(prometheus_client.Gauge("yours", "Yours.", registry=None))
    text = Exposed(metrics.render())
    assert "mine" not in text.types
    assert "yours" in text.types
