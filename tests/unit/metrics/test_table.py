"""The families as a specification: what dashboards and alerts written for kube-scheduler expect.

Every family of ``specification.txt`` is recorded once, exported with all feature gates on, and read
back with the parser of ``prometheus_client``. The bounds are spelled as kube-scheduler spells them,
because ``le`` is a label like others: a query for ``le="1"`` does not find ``le="1.0"``.
"""

from __future__ import annotations

import typing
from pathlib import Path

import pytest

from kubesched.config.features import FeatureGates
from kubesched.metrics.options import MetricsOptions
from kubesched.metrics.recorder import Metrics, attribute_name
from kubesched.metrics.series import Counter, Gauge, Histogram
from kubesched.metrics.shared_table import HEALTH, POD_LIMIT, POD_REQUEST
from kubesched.metrics.spec import MetricKind
from kubesched.metrics.table import FAMILIES
from tests.support.exposed_metrics import Exposed

BUCKETS = {
    "ATTEMPT": (
        "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384"
    ),
    "LONG": (
        "0.01 0.02 0.04 0.08 0.16 0.32 0.64 1.28 2.56 5.12 10.24 20.48 40.96 81.92 163.84 "
        "327.68 655.36 1310.72 2621.44 5242.88"
    ),
    "ATTEMPTS": ("1 2 4 8 16"),
    "EXTENSION_POINT": (
        "0.0001 0.0002 0.0004 0.0008 0.0016 0.0032 0.0064 0.0128 0.0256 0.0512 0.1024 0.2048"
    ),
    "PLUGIN": (
        "1e-05 1.5000000000000002e-05 2.2500000000000005e-05 3.375000000000001e-05 "
        "5.062500000000001e-05 7.593750000000002e-05 0.00011390625000000003 "
        "0.00017085937500000006 0.0002562890625000001 0.00038443359375000017 "
        "0.0005766503906250003 0.0008649755859375004 0.0012974633789062506 "
        "0.0019461950683593758 0.0029192926025390638 0.004378938903808595 "
        "0.006568408355712893 0.009852612533569338 0.014778918800354007 "
        "0.02216837820053101"
    ),
    "VICTIMS": ("1 2 4 8 16 32 64"),
    "DISRUPTIONS": ("1 2 4 8 16 32 64 128 256 512 1024"),
    "PREEMPTION": (
        "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 "
        "16.384 32.768"
    ),
    "BATCHING": (
        "1e-05 2e-05 4e-05 8e-05 0.00016 0.00032 0.00064 0.00128 0.00256 0.00512 0.01024 0.02048"
    ),
    "BINDING_CONDITIONS": ("0.1 0.2 0.4 0.8 1.6 3.2 6.4 12.8 25.6 51.2 102.4 204.8 409.6 819.2"),
    "REQUEST": ("0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60"),
    "SIZE": ("64 256 512 1024 4096 16384 65536 262144 1.048576e+06 4.194304e+06 1.6777216e+07"),
    "ROTATION": (
        "600 1800 3600 14400 86400 604800 2.592e+06 7.776e+06 1.5552e+07 3.1104e+07 1.24416e+08"
    ),
    "PROCESSING": ("0.001 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10"),
    "TOKEN_CACHE": ("0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10"),
    "DELEGATED": ("0.25 0.5 0.7 1 1.5 3 5 10"),
    "EXPIRATION": (
        "0 1800 3600 7200 21600 43200 86400 172800 345600 604800 2.592e+06 7.776e+06 "
        "1.5552e+07 3.1104e+07"
    ),
}


#: name, type, maturity, labels, buckets, feature gate
ROWS = [
    line.split()
    for line in Path(__file__).with_name("specification.txt").read_text().splitlines()
    if not line.startswith("#")
]
NAMES = [row[0] for row in ROWS]
GATED = [(row[0], row[5]) for row in ROWS if row[5] != "-"]

EVERYTHING = FeatureGates.of(
    {
        "GenericWorkload": True,
        "SchedulerAsyncAPICalls": True,
        "TopologyAwareWorkloadScheduling": True,
    }
)
SHOW_HIDDEN = MetricsOptions(show_hidden_metrics_for_version="1.36")
RECORDED_BY_ITSELF = {
    "kubernetes_build_info",
    "version_info",
    "kubernetes_feature_enabled",
    "registered_metrics_total",
}


def everything() -> Metrics:
    """Metrics of which every family has a series; a label's value is its own name."""
    metrics = Metrics(EVERYTHING, SHOW_HIDDEN)
    for spec in FAMILIES:
        if spec.labels and spec.name not in RECORDED_BY_ITSELF:
            series = getattr(metrics, attribute_name(spec.name)).labels(*spec.labels)
            series.observe(0.0) if spec.kind is MetricKind.HISTOGRAM else series.inc()
    return metrics


@pytest.fixture(scope="module")
def exposed() -> Exposed:
    return Exposed(everything().render())


def test_exactly_these_families_are_exported(exposed: Exposed) -> None:
    assert sorted(exposed.types) == sorted(NAMES)


def test_families_come_sorted_by_name(exposed: Exposed) -> None:
    assert list(exposed.types) == sorted(exposed.types)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_family(exposed: Exposed, row: list[str]) -> None:
    name, kind, stability, labels, buckets, _ = row
    assert exposed.types[name] == kind
    marker = "" if stability == "-" else f"[{stability}] "
    assert exposed.helps[name].startswith(marker)
    assert exposed.helps[name].startswith("[") == bool(marker)
    wanted = set() if labels == "-" else set(labels.split(","))
    assert exposed.label_names(name) == wanted
    if kind == "histogram":
        assert exposed.bounds(name) == [*BUCKETS[buckets].split(), "+Inf"]


def test_recorders_give_label_values_in_the_order_of_the_table(exposed: Exposed) -> None:
    for name, _, _, labels, _, _ in ROWS:
        if labels != "-" and name not in RECORDED_BY_ITSELF:
            for sample in exposed.samples(name):
                assert all(sample[label] == label for label in labels.split(","))


@pytest.mark.parametrize(("name", "gate"), GATED)
def test_family_is_exported_only_if_its_gate_is_on(name: str, gate: str) -> None:
    def families(gates: FeatureGates) -> set[str]:
        metrics = Metrics(gates, SHOW_HIDDEN)
        return {family.spec.name for family in metrics._exported}

    # Some gates cannot be turned off any more, so the value is given, not asked for.
    off = FeatureGates(explicit={}, values={**EVERYTHING.values, gate: False})
    assert name in families(EVERYTHING)
    assert name not in families(off)
    assert families(EVERYTHING) - families(off) == {n for n, g in GATED if g == gate}


def test_metrics_has_an_attribute_of_the_right_type_for_every_family() -> None:
    series = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}
    wanted = {}
    for name, kind, _, labels, _, _ in ROWS:
        family = f"{series[kind].__name__}Family"
        wanted[attribute_name(name)] = series[kind].__name__ if labels == "-" else family
    annotated = typing.get_type_hints(Metrics)
    assert {name: hint.__name__ for name, hint in annotated.items()} == wanted
    metrics = Metrics(EVERYTHING)
    for name, hint in annotated.items():
        assert isinstance(getattr(metrics, name), hint)


def test_help_texts_are_those_people_know(exposed: Exposed) -> None:
    assert exposed.helps["scheduler_schedule_attempts_total"] == (
        "[STABLE] Number of attempts to schedule pods, by the result. 'unschedulable' means a pod "
        "could not be scheduled, while 'error' means an internal scheduler problem."
    )
    assert exposed.helps["authentication_token_cache_request_total"] == "[ALPHA] "
    assert exposed.helps["process_open_fds"] == "Number of open file descriptors."


def test_families_on_paths_of_their_own() -> None:
    described = {spec.name: (spec.kind.value, spec.labels, spec.stability.name) for spec in HEALTH}
    assert described == {
        "kubernetes_healthcheck": ("gauge", ("name", "type"), "STABLE"),
        "kubernetes_healthchecks_total": ("counter", ("name", "type", "status"), "STABLE"),
        "process_start_time_seconds": ("gauge", (), "ALPHA"),
    }
    labels = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
    for spec, name in ((POD_LIMIT, "limit"), (POD_REQUEST, "request")):
        assert (spec.name, spec.labels) == (f"kube_pod_resource_{name}", labels)
        assert spec.help.startswith("[STABLE] Resources ")
