"""All metrics of a scheduler: what is shown, hidden, restricted and reset."""

from __future__ import annotations

import pytest

from kubesched import KUBERNETES_VERSION
from kubesched.config.features import FeatureGates
from kubesched.errors import ConfigError
from kubesched.metrics.label_values import SCHEDULED, UNSCHEDULABLE
from kubesched.metrics.options import MetricsOptions
from kubesched.metrics.recorder import Metrics, attribute_name
from tests.support.exposed_metrics import Exposed

GATES = FeatureGates.of()
PROFILE = "default-scheduler"


def shown(metrics: Metrics) -> Exposed:
    return Exposed(metrics.render())


@pytest.mark.parametrize(
    ("family", "want"),
    [
        ("scheduler_schedule_attempts_total", "schedule_attempts"),
        ("scheduler_scheduling_attempt_duration_seconds", "scheduling_attempt_duration"),
        ("scheduler_pending_pods", "pending_pods"),
        ("rest_client_requests_total", "rest_client_requests"),
        ("kubesched_queue_checks_total", "queue_checks"),
    ],
)
def test_attribute_is_the_name_without_prefix_and_unit(family: str, want: str) -> None:
    assert attribute_name(family) == want


def test_a_pod_is_scheduled() -> None:
    metrics = Metrics(GATES)
    metrics.schedule_attempts.labels(SCHEDULED, PROFILE).inc()
    metrics.scheduling_attempt_duration.labels(SCHEDULED, PROFILE).observe(0.003)
    metrics.pod_scheduling_attempts.observe(1)
    metrics.pending_pods.labels("active").set_function(lambda: 7)
    text = shown(metrics)
    labels = {"result": SCHEDULED, "profile": PROFILE}
    name = "scheduler_scheduling_attempt_duration_seconds"
    assert text.value("scheduler_schedule_attempts_total", **labels) == 1
    assert text.value(f"{name}_bucket", **labels, le="0.002") == 0
    assert text.value(f"{name}_bucket", **labels, le="0.004") == 1
    assert text.value(f"{name}_sum", **labels) == 0.003
    assert text.value("scheduler_pod_scheduling_attempts_count") == 1
    assert text.value("scheduler_pending_pods", queue="active") == 7


def test_no_series_tells_when_it_was_created() -> None:
    assert "_created" not in shown(Metrics(GATES)).text


# --- what runs --------------------------------------------------------------------------------


def test_feature_gates_are_shown_with_stage_and_value() -> None:
    text = shown(Metrics(GATES.replace(GenericWorkload=True)))
    name = "kubernetes_feature_enabled"
    assert text.value(name, name="NodeDeclaredFeatures", stage="") == 1
    assert text.value(name, name="SchedulerAsyncAPICalls", stage="BETA") == 0
    assert text.value(name, name="GenericWorkload", stage="BETA") == 1
    assert len(text.samples(name)) == len(list(GATES.states()))


def test_version_follows_the_emulated_one() -> None:
    text = shown(Metrics(FeatureGates.parse(emulated_version="1.36")))
    binary = KUBERNETES_VERSION.removeprefix("v")
    assert text.samples("version_info") == [
        {"component": "kube", "binary": binary, "emulation": "1.36", "min_compat": "1.35"}
    ]


def test_version_names_the_oldest_peer() -> None:
    text = shown(Metrics(FeatureGates.parse(min_compatibility_version="1.37")))
    (labels,) = text.samples("version_info")
    assert (labels["emulation"], labels["min_compat"]) == ("1.37", "1.37")


def test_build_names_the_kubernetes_release() -> None:
    (labels,) = shown(Metrics(GATES)).samples("kubernetes_build_info")
    assert (labels["major"], labels["minor"]) == ("1", "37")
    assert labels["git_version"].startswith(f"{KUBERNETES_VERSION}+kubesched.")
    assert labels["go_version"].startswith("python3.")


def test_process_is_read_at_each_scrape() -> None:
    metrics = Metrics(GATES)
    before = shown(metrics).value("process_open_fds")
    with open(__file__):  # noqa: PTH123 (a file descriptor is what is wanted)
        during = shown(metrics).value("process_open_fds")
    assert before is not None
    assert during == before + 1


def test_without_exec_plugin_its_certificate_lives_forever() -> None:
    assert shown(Metrics(GATES)).value("rest_client_exec_plugin_ttl_seconds") == float("inf")


# --- options ----------------------------------------------------------------------------------


def test_disabled_families_are_hidden_but_can_be_recorded() -> None:
    disabled = ("scheduler_pending_pods", "scheduler_preemption_victims", "nonsense", "nonsense")
    metrics = Metrics(GATES, MetricsOptions(disabled_metrics=disabled))
    metrics.pending_pods.labels("active").set(1)
    metrics.preemption_victims.observe(1)
    text = shown(metrics)
    assert "scheduler_pending_pods" not in text.types
    assert "scheduler_preemption_victims" not in text.types
    assert text.value("disabled_metrics_total") == 3
    assert text.value("hidden_metrics_total") == 3  # and the one that is deprecated


DEPRECATED = "scheduler_preemption_goroutines_duration_seconds"


def test_deprecated_families_are_hidden() -> None:
    metrics = Metrics(GATES)
    metrics.preemption_goroutines_duration.labels("success").observe(1)
    text = shown(metrics)
    assert DEPRECATED not in text.types
    assert text.value("hidden_metrics_total") == 1
    assert metrics.unhidden == []


def test_deprecated_families_can_be_shown() -> None:
    metrics = Metrics(GATES, MetricsOptions(show_hidden_metrics_for_version="1.36"))
    metrics.preemption_goroutines_duration.labels("success").observe(1)
    text = shown(metrics)
    assert text.helps[DEPRECATED].startswith("[ALPHA] (Deprecated since 1.37.0) Duration in")
    assert text.value("hidden_metrics_total") == 0
    registered = {"stability_level": "ALPHA", "deprecated_version": "1.37.0"}
    assert text.value("registered_metrics_total", **registered) == 1
    assert metrics.unhidden == [DEPRECATED]


def test_registered_families_are_counted_by_maturity() -> None:
    def registered(metrics: Metrics, level: str) -> float:
        labels = {"stability_level": level, "deprecated_version": ""}
        return shown(metrics).value("registered_metrics_total", **labels) or 0

    metrics = Metrics(GATES)
    less = Metrics(GATES, MetricsOptions(disabled_metrics=("scheduler_pending_pods",)))
    more = Metrics(GATES.replace(GenericWorkload=True))
    assert registered(metrics, "STABLE") == 8
    assert registered(less, "STABLE") == 7
    assert registered(more, "ALPHA") == registered(metrics, "ALPHA") + 9


def test_label_values_that_are_not_allowed_become_unexpected() -> None:
    options = MetricsOptions(
        allow_metric_labels={
            "scheduler_schedule_attempts_total,result": SCHEDULED,
            "no_such_metric,label": "x",
        }
    )
    metrics = Metrics(GATES, options)
    metrics.schedule_attempts.labels(SCHEDULED, PROFILE).inc()
    metrics.schedule_attempts.labels(UNSCHEDULABLE, PROFILE).inc(3)
    text = shown(metrics)
    name = "scheduler_schedule_attempts_total"
    assert text.value(name, result=SCHEDULED, profile=PROFILE) == 1
    assert text.value(name, result="unexpected", profile=PROFILE) == 3
    assert text.value(name, result=UNSCHEDULABLE, profile=PROFILE) is None
    assert text.value("cardinality_enforcement_unexpected_categorizations_total") == 1


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"metrics\.disabledMetrics: Invalid value"):
        Metrics(GATES, MetricsOptions(disabled_metrics=("bad-name",)))


# --- reset ------------------------------------------------------------------------------------


def test_reset_starts_counters_and_histograms_again_and_keeps_gauges() -> None:
    metrics = Metrics(GATES)
    attempts = metrics.schedule_attempts.labels(SCHEDULED, PROFILE)
    attempts.inc(5)
    metrics.preemption_attempts.inc()
    metrics.pod_scheduling_attempts.observe(2)
    metrics.cache_size.labels("nodes").set(4)
    metrics.reset()
    text = shown(metrics)
    assert "scheduler_schedule_attempts_total" not in text.types
    assert text.value("scheduler_preemption_attempts_total") == 0
    assert text.value("scheduler_pod_scheduling_attempts_count") == 0
    assert text.value("scheduler_cache_size", type="nodes") == 4
    assert "kubernetes_build_info" in text.types
    attempts.inc()
    again = shown(metrics).value(
        "scheduler_schedule_attempts_total", result=SCHEDULED, profile=PROFILE
    )
    assert again == 1
