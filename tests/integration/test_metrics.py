"""What can be scraped, after the same work: kube-scheduler's families, and nearly all its numbers.

The real kube-scheduler and ours work one after the other, on the same API server, each elected on
a lease of its own. What differs is in the tables here, each with its reason, and nothing else may;
the first table is in docs/differences.md, too.
"""

from __future__ import annotations

import contextlib
import fnmatch
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.support.waiting import until

from .control_plane import ControlPlane
from .exposition import Family, Labels, parse
from .metrics_work import Work
from .replicas import (
    a_lease,
    elected,
    free_port,
    holder_of,
    page,
    serving,
)
from .scheduler_process import run_scheduler
from .serving_callers import ask, connect

#: kube-scheduler notes some things once a second.
_FLUSH_SECONDS: Final = 1.3
_DIFFERENCES = Path(__file__).resolve().parents[2] / "docs" / "differences.md"

_LIBRARY = "of the API server's library, and always zero in a scheduler"
#: Families that kube-scheduler has and we have not.
NOT_HERE: Final = {
    "go_*": "the Go runtime's",
    "workqueue_*": "client-go's work queues, which following certificate files needs there",
    "rest_client_transport_*": "client-go's cache of TLS transports",
    "aggregator_discovery_*": _LIBRARY,
    "apiserver_audit_*": _LIBRARY,
    "apiserver_envelope_encryption_*": _LIBRARY,
    "apiserver_storage_*": _LIBRARY,
    "apiserver_validation_*": _LIBRARY,
    "apiserver_webhooks_*": _LIBRARY,
    "scheduler_batch_*": "opportunistic batching: every pod is evaluated here, at less cost",
    "scheduler_get_node_hint_duration_seconds": "opportunistic batching",
    "scheduler_store_schedule_results_duration_seconds": "opportunistic batching",
}
#: Families that we have and kube-scheduler has not.
OURS_ALONE: Final = {
    "kubesched_*": "what only kubesched does",
    "apiserver_client_certificate_expiration_seconds": (
        "there only where client certificates are trusted, which they are not here"
    ),
}

#: Families whose numbers depend on nothing but the work, or on what the table below says.
SAME_NUMBERS: Final = (
    "leader_election_master_status",
    "scheduler_async_*",
    "scheduler_cache_size",
    "scheduler_event_handling_duration_seconds",
    "scheduler_framework_extension_point_duration_seconds",
    "scheduler_goroutines",
    "scheduler_inflight_events",
    "scheduler_pending_*",
    "scheduler_plugin_evaluation_total",
    "scheduler_pod_*",
    "scheduler_preemption_*",
    "scheduler_queue_incoming_*",
    "scheduler_queued_entities",
    "scheduler_queueing_hint_execution_duration_seconds",
    "scheduler_schedule_attempts_total",
    "scheduler_scheduling_*",
    "scheduler_unschedulable_pods",
    "kubernetes_feature_enabled",
    "version_info",
    "disabled_metrics_total",
    "hidden_metrics_total",
)
#: (family, labels of the series) whose numbers differ, or that only one of both has.
OTHER_NUMBERS: Final = (
    # There are no parallel workers whose number could be shown.
    ("scheduler_goroutines", {"operation": "Filter"}),
    ("scheduler_goroutines", {"operation": "Score"}),
    ("scheduler_goroutines", {"operation": "InterPodAffinity"}),
    ("scheduler_goroutines", {"operation": "DefaultPreemption"}),
    # Pods are signed for opportunistic batching alone.
    ("scheduler_framework_extension_point_duration_seconds", {"extension_point": "Sign"}),
    # Preemption asks filters once for all nodes, instead of pod by pod and node by node; and a row
    # that a cached answer rules out counts as asked.
    ("scheduler_plugin_evaluation_total", {"extension_point": "Filter"}),
    # Which of two plugins is asked first whether an event helps is left to chance, in both.
    ("scheduler_queueing_hint_execution_duration_seconds", {"event": "AssignedPodDelete"}),
)


class Scraped:
    """The pages of one scheduler."""

    def __init__(self, plane: ControlPlane, port: int) -> None:
        self._plane = plane
        self._port = port
        self.metrics = self.read("/metrics")
        self.slis = self.read("/metrics/slis")
        self.resources = self.read("/metrics/resources")

    def read(self, path: str) -> dict[str, Family]:
        reply = page(self._plane, self._port, path)
        assert reply.code == 200, (path, reply.body)
        assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
        return parse(reply.body)

    def numbers(self) -> dict[tuple[str, Labels], float]:
        """The numbers that should be the same everywhere."""
        return {
            (name, labels): number
            for pattern in SAME_NUMBERS
            for name in fnmatch.filter(self.metrics, pattern)
            for labels, number in self.metrics[name].counts.items()
            if not _is_excepted(name, dict(labels)) and not _is_of_devices(dict(labels))
        }


def _is_of_devices(labels: dict[str, str]) -> bool:
    """Claims that other tests leave behind are an event to kube-scheduler, and not yet to ours."""
    return labels.get("event", "").startswith("resource.k8s.io/")


def _is_excepted(family: str, labels: dict[str, str]) -> bool:
    return any(
        family == excepted and want.items() <= labels.items() for excepted, want in OTHER_NUMBERS
    )


@pytest.fixture(scope="module")
def both(control_plane: ControlPlane) -> tuple[Scraped, Scraped]:
    """What kube-scheduler and what ours shows after the work."""

    # A pod that could not be bound is not to be tried again before it is deleted. Others do not
    # wait for their backoff to end: either scheduler has nothing else to do.
    backoff = {"podInitialBackoffSeconds": 60, "podMaxBackoffSeconds": 60}

    def real(lease: str, port: int) -> AbstractContextManager[object]:
        config = elected(control_plane, lease, **backoff)
        return control_plane.run_kube_scheduler(config, *serving(control_plane, port))

    def ours(lease: str, port: int) -> AbstractContextManager[object]:
        config = elected(control_plane, lease, **backoff)
        # Without looking at parked pods by itself: that would count as evaluations.
        flags = (*serving(control_plane, port), "--queue-check-budget=0")
        return run_scheduler(control_plane, config, *flags)

    found = []
    for run in (real, ours):
        namespace, port = f"test-{secrets.token_hex(4)}", free_port()
        control_plane.create_namespace(namespace)
        with (
            _work(control_plane, namespace) as work,
            a_lease(control_plane) as lease,
            run(lease, port),
        ):
            until(partial(holder_of, control_plane, lease))
            work.do()
            _ask_without_rights(control_plane, port)
            for path in ("/healthz", "/livez", "/readyz"):
                assert page(control_plane, port, path).code == 200
            found.append(_settled(control_plane, port))
        control_plane.delete_namespace(namespace)
    return found[0], found[1]


@contextlib.contextmanager
def _work(plane: ControlPlane, namespace: str) -> Iterator[Work]:
    work = Work(plane, namespace)
    try:
        work.prepare()
        yield work
    finally:
        work.clean_up()


def _ask_without_rights(plane: ControlPlane, port: int) -> None:
    """Let the API server be asked what somebody may."""
    connection = connect(port)
    try:
        headers = {"Authorization": f"Bearer {plane.scheduler_token}"}
        assert ask(connection, "/metrics", "GET", headers).code == 403
    finally:
        connection.close()


def _settled(plane: ControlPlane, port: int) -> Scraped:
    """Scrape until nothing changes any more."""
    before = Scraped(plane, port)

    def again() -> Scraped | None:
        nonlocal before
        time.sleep(_FLUSH_SECONDS)
        now = Scraped(plane, port)
        if now.numbers() == before.numbers():
            return now
        before = now
        return None

    return until(again)


# ---------------------------------------------------------------------- families


def _matching(names: set[str], patterns: dict[str, str]) -> dict[str, list[str]]:
    return {pattern: fnmatch.filter(names, pattern) for pattern in patterns}


def test_the_same_families(both: tuple[Scraped, Scraped]) -> None:
    real, ours = (set(each.metrics) for each in both)
    missing, own = real - ours, ours - real
    for names, patterns in ((missing, NOT_HERE), (own, OURS_ALONE)):
        excepted = _matching(names, patterns)
        assert names == {name for each in excepted.values() for name in each}
        assert all(excepted.values()), "an exception that is none"


def test_the_exceptions_are_documented() -> None:
    text = _DIFFERENCES.read_text()
    section = text.partition("\n## Metrics\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([a-z_*]+)` \|", section, flags=re.MULTILINE)
    assert sorted(listed) == sorted([*NOT_HERE, *OURS_ALONE])


@pytest.mark.parametrize("path", ["metrics", "slis", "resources"])
def test_types_helps_labels_and_buckets(both: tuple[Scraped, Scraped], path: str) -> None:
    real, ours = (getattr(each, path) for each in both)
    shared = sorted(real.keys() & ours.keys())
    assert shared
    for name in shared:
        theirs, mine = real[name], ours[name]
        assert (mine.type, mine.help) == (theirs.type, theirs.help), name
        assert mine.label_names == theirs.label_names, name
        buckets = [{tuple(each) for each in family.bounds.values()} for family in (theirs, mine)]
        assert buckets[0] == buckets[1], name


def test_the_other_pages_have_the_same_families(both: tuple[Scraped, Scraped]) -> None:
    real, ours = both
    assert real.slis.keys() == ours.slis.keys() > {"kubernetes_healthcheck"}
    # What is checked there is checked here, and that the loop turns, too.
    checks = [set(each.slis["kubernetes_healthcheck"].counts) for each in both]
    assert {dict(labels)["name"] for labels in checks[1] - checks[0]} == {"scheduling-loop"}
    assert checks[0] <= checks[1]
    assert real.resources.keys() == ours.resources.keys() != set()


def test_informers_are_called_the_same(both: tuple[Scraped, Scraped]) -> None:
    for family in fnmatch.filter(both[0].metrics, "informer_*"):
        real, ours = (set(each.metrics[family].counts) for each in both)
        assert ours == real, family


# ---------------------------------------------------------------------- hidden families

_HIDDEN_NOTE = re.compile(r"^(W)\d{4} [^]]*\] (.*manually overridden.*)$", re.MULTILINE)


def test_hidden_families_can_be_shown(control_plane: ControlPlane) -> None:
    """Neither has preempted, so the family has no series: notes and counts tell of it."""
    found = []
    for run in (control_plane.run_kube_scheduler, partial(run_scheduler, control_plane)):
        port = free_port()
        flags = (*serving(control_plane, port), "--show-hidden-metrics-for-version=1.36")
        with a_lease(control_plane) as lease, run(elected(control_plane, lease), *flags) as process:
            until(partial(holder_of, control_plane, lease))
            metrics = parse(page(control_plane, port, "/metrics").body)
            log = process.log if isinstance(process.log, Path) else process.log_file
            deprecated = {
                labels: number
                for labels, number in metrics["registered_metrics_total"].counts.items()
                if dict(labels)["deprecated_version"]
            }
            notes = _HIDDEN_NOTE.findall(log.read_text())
            found.append((metrics["hidden_metrics_total"].counts, deprecated, notes))
    real, ours = found
    assert ours == real
    assert [severity for severity, _ in real[2]] == ["W"]


# ---------------------------------------------------------------------- numbers


def test_the_same_numbers(both: tuple[Scraped, Scraped]) -> None:
    real, ours = (each.numbers() for each in both)
    assert len(real) > 100
    assert ours == real


def test_every_difference_in_numbers_is_one(both: tuple[Scraped, Scraped]) -> None:
    """But for what chance decides."""
    real, ours = both
    for family, want in OTHER_NUMBERS:
        counts = [
            {
                k: v
                for k, v in each.metrics[family].counts.items()
                if want.items() <= dict(k).items()
            }
            for each in (real, ours)
        ]
        if family != "scheduler_queueing_hint_execution_duration_seconds":
            assert counts[0] != counts[1], (family, want)


def test_the_api_server_is_asked_about_callers_as_often(both: tuple[Scraped, Scraped]) -> None:
    for family in (
        "apiserver_delegated_authn_request_total",
        "apiserver_delegated_authz_request_total",
    ):
        real, ours = (each.metrics[family].counts for each in both)
        assert real == ours, family


def test_the_same_writes_are_made(both: tuple[Scraped, Scraped]) -> None:
    """Reads are not: we list in pages, with watches of their own."""

    def writes(scraped: Scraped) -> dict[tuple[str, str], float]:
        found = {}
        for labels, number in scraped.metrics["rest_client_requests_total"].counts.items():
            values = dict(labels)
            # How often a lease is renewed depends on time.
            if values["method"] not in ("GET", "PUT"):
                found[values["method"], values["code"]] = number
        return found

    real, ours = map(writes, both)
    assert real == ours


def test_the_same_amounts_are_requested(both: tuple[Scraped, Scraped]) -> None:
    def amounts(scraped: Scraped) -> list[tuple[str, str, str, float]]:
        counts = scraped.resources["kube_pod_resource_request"].counts
        return sorted(
            (dict(k)["priority"], dict(k)["resource"], dict(k)["unit"], v)
            for k, v in counts.items()
        )

    real, ours = map(amounts, both)
    assert real == ours
