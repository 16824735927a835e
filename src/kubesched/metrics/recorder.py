"""All metrics of a scheduler: one attribute per family, and their text.

    metrics = Metrics(gates)
    scheduled = metrics.schedule_attempts.labels("scheduled", "default-scheduler")   # once
    scheduled.inc()                                                                  # often

An attribute is named as its family in the table, without the prefix ``scheduler_`` or
``kubesched_`` and the suffix ``_total`` or ``_seconds``. With labels it is a family, whose
``labels(…)`` returns the series; without, it is the series. All exist regardless of feature gates
and options, so a recorder need not check whether they are exported.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

from kubesched.config.features import FeatureGates
from kubesched.metrics.families import CounterFamily, GaugeFamily, HistogramFamily
from kubesched.metrics.info import build_labels, version_labels
from kubesched.metrics.options import MetricsOptions
from kubesched.metrics.process import process_readings
from kubesched.metrics.series import Counter, Gauge, Histogram
from kubesched.metrics.shared_table import PROCESS
from kubesched.metrics.spec import FamilySpec, MetricKind
from kubesched.metrics.table import FAMILIES

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from kubesched.metrics.plugin_metrics import PluginMetrics

_log = logging.getLogger(__name__)

AnyFamily = CounterFamily | GaugeFamily | HistogramFamily

_MAKERS: Final[dict[MetricKind, type[AnyFamily]]] = {
    MetricKind.COUNTER: CounterFamily,
    MetricKind.GAUGE: GaugeFamily,
    MetricKind.HISTOGRAM: HistogramFamily,
}
_PROCESS_NAMES: Final = frozenset(spec.name for spec in PROCESS)


def attribute_name(family_name: str) -> str:
    """Return the attribute of ``Metrics`` for a family."""
    for prefix in ("scheduler_", "kubesched_"):
        family_name = family_name.removeprefix(prefix)
    return family_name.removesuffix("_total").removesuffix("_seconds")


class Metrics:
    """Every family that the scheduler exports on ``/metrics``."""

    # attempts
    schedule_attempts: CounterFamily
    scheduling_attempt_duration: HistogramFamily
    scheduling_algorithm_duration: Histogram
    pod_scheduling_sli_duration: HistogramFamily
    pod_scheduling_attempts: Histogram
    pod_scheduled_after_flush: Counter
    # plugins
    framework_extension_point_duration: HistogramFamily
    plugin_execution_duration: HistogramFamily
    plugin_evaluation: CounterFamily
    permit_wait_duration: HistogramFamily
    goroutines: GaugeFamily
    # queue and cache
    pending_pods: GaugeFamily
    queued_entities: GaugeFamily
    queue_incoming_pods: CounterFamily
    queue_incoming_entities: CounterFamily
    unschedulable_pods: GaugeFamily
    inflight_events: GaugeFamily
    queueing_hint_execution_duration: HistogramFamily
    pre_queueing_hint_evaluations: CounterFamily
    event_handling_duration: HistogramFamily
    cache_size: GaugeFamily
    unreadable_objects: GaugeFamily
    queue_checks: Counter
    queue_missed_wakeups: CounterFamily
    oversubscription_races: Counter
    binding_checks: CounterFamily
    plugin_failures: CounterFamily
    plugin_slow: CounterFamily
    recording_bytes: Counter
    recording_failures: Counter
    # preemption
    preemption_attempts: Counter
    preemption_victims: Histogram
    preemption_goroutines_duration: HistogramFamily
    preemption_goroutines_execution: CounterFamily
    preemption_evaluation_duration: HistogramFamily
    preemption_execution_duration: HistogramFamily
    preemption_pdb_violations: CounterFamily
    preemption_workload_disruptions: HistogramFamily
    workload_preemption_attempts: CounterFamily
    workload_preemption_victims: Histogram
    # batching
    batch_attempts: CounterFamily
    batch_cache_flushed: CounterFamily
    batch_rescore_attempts: CounterFamily
    batch_rescore_duration: HistogramFamily
    get_node_hint_duration: HistogramFamily
    store_schedule_results_duration: HistogramFamily
    # asynchronous API calls
    async_api_call_execution: CounterFamily
    async_api_call_execution_duration: HistogramFamily
    pending_async_api_calls: GaugeFamily
    # devices, volumes, pod groups
    dynamic_resource_allocation_resourceclaim_creates: CounterFamily
    dra_bindingconditions_allocations: CounterFamily
    dra_bindingconditions_wait_duration: HistogramFamily
    volume_binder_cache_requests: CounterFamily
    volume_scheduling_stage_error: CounterFamily
    podgroup_schedule_attempts: CounterFamily
    podgroup_scheduling_attempt_duration: HistogramFamily
    podgroup_scheduling_algorithm_duration: Histogram
    generated_placements: CounterFamily
    placement_evaluations: CounterFamily
    placement_evaluation_duration: HistogramFamily
    # the API client
    rest_client_requests: CounterFamily
    rest_client_request_retries: CounterFamily
    rest_client_request_duration: HistogramFamily
    rest_client_rate_limiter_duration: HistogramFamily
    rest_client_request_size_bytes: HistogramFamily
    rest_client_response_size_bytes: HistogramFamily
    rest_client_exec_plugin_ttl: Gauge
    rest_client_exec_plugin_certificate_rotation_age: Histogram
    rest_client_exec_plugin_call: CounterFamily
    rest_client_transport_ca_reload: CounterFamily
    # informers
    informer_queued_items: GaugeFamily
    informer_processing_latency: HistogramFamily
    informer_store_resource_version: GaugeFamily
    # leader election
    leader_election_master_status: GaugeFamily
    leader_election_slowpath: CounterFamily
    # authentication and authorization of the secure port
    authenticated_user_requests: CounterFamily
    authentication_attempts: CounterFamily
    authentication_duration: HistogramFamily
    authentication_token_cache_active_fetch_count: GaugeFamily
    authentication_token_cache_fetch: CounterFamily
    authentication_token_cache_request: CounterFamily
    authentication_token_cache_request_duration: HistogramFamily
    authorization_attempts: CounterFamily
    authorization_duration: HistogramFamily
    apiserver_delegated_authn_request: CounterFamily
    apiserver_delegated_authn_request_duration: HistogramFamily
    apiserver_delegated_authz_request: CounterFamily
    apiserver_delegated_authz_request_duration: HistogramFamily
    apiserver_client_certificate_expiration: Histogram
    # build and features
    kubernetes_build_info: GaugeFamily
    version_info: GaugeFamily
    kubernetes_feature_enabled: GaugeFamily
    # the metrics themselves
    registered_metrics: CounterFamily
    disabled_metrics: Counter
    hidden_metrics: Counter
    cardinality_enforcement_unexpected_categorizations: Counter
    # the process
    process_cpu: Counter
    process_max_fds: Gauge
    process_network_receive_bytes: Counter
    process_network_transmit_bytes: Counter
    process_open_fds: Gauge
    process_resident_memory_bytes: Gauge
    process_start_time: Gauge
    process_virtual_memory_bytes: Gauge
    process_virtual_memory_max_bytes: Gauge

    def __init__(self, gates: FeatureGates, options: MetricsOptions | None = None) -> None:
        options = options or MetricsOptions()
        options.check()
        self._families = {spec.name: _MAKERS[spec.kind](spec) for spec in FAMILIES}
        for name, family in self._families.items():
            setattr(self, attribute_name(name), family if family.spec.labels else family.labels())
        disabled = frozenset(options.disabled_metrics)
        self._disabled = disabled
        #: None until a plugin registers a collector
        self._plugin_metrics: PluginMetrics | None = None
        #: the exported families, in the order of the text
        self._exported = self._register(
            gates, disabled, shows_hidden=bool(options.show_hidden_metrics_for_version)
        )
        self._restrict(options)
        self._describe(gates)

    def render(self) -> bytes:
        """Format all families; see ``exposition.CONTENT_TYPE``."""
        self._read_process()
        texts = [family.text() for family in self._exported]
        if self._plugin_metrics is not None:
            texts.append(self._plugin_metrics.text())
        return "".join(texts).encode()

    def reset(self) -> None:
        """Reset counters and histograms; gauges are current values, and stay."""
        for family in self._exported:
            family.reset()

    def register(self, collector: Collector) -> None:
        """Export a plugin's own collector; create it with ``registry=None``."""
        if self._plugin_metrics is None:
            # Imported only if plugins have metrics of their own: it brings an HTTP server along.
            from kubesched.metrics.plugin_metrics import PluginMetrics  # noqa: PLC0415

            self._plugin_metrics = PluginMetrics(
                taken=self._families.keys(), disabled=self._disabled
            )
        self._plugin_metrics.register(collector)

    def _register(
        self, gates: FeatureGates, disabled: frozenset[str], *, shows_hidden: bool
    ) -> list[AnyFamily]:
        readable = process_readings()
        exported = []
        for name, family in sorted(self._families.items()):
            spec = family.spec
            if not _is_available(spec, gates, readable):
                continue
            is_hidden = spec.deprecated_since and not shows_hidden
            if is_hidden or name in disabled:
                self.hidden_metrics.inc()
                continue
            if spec.deprecated_since:
                _log.warning(
                    "Hidden metrics (%s) have been manually overridden, "
                    "showing this very deprecated metric.",
                    name,
                )
            exported.append(family)
            if spec.stability.value:
                labels = spec.stability.value, spec.deprecated_since
                self.registered_metrics.labels(*labels).inc()
        self.disabled_metrics.inc(len(disabled))
        return exported

    def _restrict(self, options: MetricsOptions) -> None:
        for name, allowed in options.allow_lists().items():
            if name in self._families:
                unexpected = self.cardinality_enforcement_unexpected_categorizations
                self._families[name].restrict(allowed, unexpected)

    def _describe(self, gates: FeatureGates) -> None:
        self.rest_client_exec_plugin_ttl.set(math.inf)
        self.kubernetes_build_info.labels(*build_labels()).set(1)
        self.version_info.labels(*version_labels(gates)).set(1)
        for name, stage, enabled in gates.states():
            self.kubernetes_feature_enabled.labels(name, stage.value).set(enabled)

    def _read_process(self) -> None:
        for name, value in process_readings().items():
            series = self._families[name].labels()
            if not isinstance(series, Histogram):
                series.value = value


def _is_available(spec: FamilySpec, gates: FeatureGates, readable: dict[str, float]) -> bool:
    if spec.name in _PROCESS_NAMES:
        return spec.name in readable
    return not spec.gate or gates.enabled(spec.gate)
