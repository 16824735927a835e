"""What happens to a pod that could not be placed: it is told, and it is tried again."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.errors import ObjectError
from kubesched.framework.null_writers import NullVolumeWriter
from kubesched.framework.status import Status, error, unschedulable
from kubesched.framework.waiting import PreBindingPods, WaitingPods
from kubesched.metrics.recorder import Metrics
from kubesched.queue.queued_pod import QueuedPod
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.nominations import Nominations
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.state import SchedulerState
from tests.support.objects import node, on_node, pod
from tests.support.queueing import Bench as Queue
from tests.support.scheduling import DEFAULT_GATES, Lab


class Reports:
    """Writes down what pods are to be told."""

    def __init__(self) -> None:
        self.submitted: list[tuple[str, Status, str | None]] = []

    def submit(self, each: Pod, status: Status, nominated_node: str | None) -> None:
        self.submitted.append((each.metadata.name, status, nominated_node))


class Warnings:
    """Writes down events."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str, str, str]] = []

    def warning(self, each: Pod, *, reason: str, action: str, note: str) -> None:
        self.notes.append((each.metadata.name, reason, action, note))


class Bench:
    """A handler, and one pod in flight."""

    def __init__(self) -> None:
        self.lab = Lab(node("n1", cpu="1"))
        self.bench = Queue()
        self.reports, self.events = Reports(), Warnings()
        self.known: dict[str, Pod] = {"p": pod("p", cpu="2")}
        reports: Any = self.reports
        recorders: Any = self.events
        no_api_calls: Any = None
        outside = Outside(
            api_calls=no_api_calls,
            volume_writer=NullVolumeWriter(),
            recorders=recorders,
            find_pod=lambda namespace, name: self.known.get(name),
            make_extenders=lambda _config: None,
            clock=self.bench.clock,
            metrics=Metrics(DEFAULT_GATES),
        )
        state = SchedulerState(
            self.lab.cluster,
            self.bench.queue,
            Nominations(self.lab.cluster, self.bench.queue),
            WaitingPods(),
            PreBindingPods(),
        )
        attempts = Attempts(outside.metrics, outside.clock)
        self.handler = FailureHandler(outside, state, reports=reports, attempts=attempts)
        self.bench.queue.add(self.lab.pending(self.known["p"]))
        self.pod: QueuedPod = self.bench.pop()

    def fail(self, status: Status, **options: Any) -> None:
        options = {"nominated_node": None, **options}
        self.handler.handle(self.lab.framework, self.pod, status, **options)


def test_a_pod_that_fits_nowhere_is_parked_and_told() -> None:
    bench = Bench()
    diagnosis = bench.lab.diagnosis(bench.known["p"])
    bench.fail(unschedulable(diagnosis.message()), diagnosis=diagnosis)
    text = "0/1 nodes are available: 1 Insufficient cpu."
    assert bench.pod.unschedulable_plugins == {"NodeResourcesFit"}
    assert bench.bench.counts() == {"unschedulable": 1}
    assert bench.reports.submitted == [("p", unschedulable(text), None)]
    assert bench.events.notes == [("p", "FailedScheduling", "Scheduling", text)]


def test_an_error_is_nobody_s_rejection() -> None:
    bench = Bench()
    bench.pod.unschedulable_plugins = {"Earlier"}
    bench.fail(error("disk on fire").by("Disks"))
    assert bench.pod.unschedulable_plugins == set()
    assert bench.bench.counts() == {"backoff": 1}
    assert bench.reports.submitted == [("p", error("disk on fire").by("Disks"), None)]


def test_a_rejection_by_one_plugin_is_remembered() -> None:
    bench = Bench()
    bench.fail(unschedulable("no room").by("Volumes"))
    assert bench.pod.unschedulable_plugins == {"Volumes"}


@pytest.mark.parametrize(
    ("nominated", "before", "after"),
    [("n1", None, "n1"), ("", "n1", None), (None, "n1", "n1")],
    ids=["given", "taken back", "left"],
)
def test_a_nomination_counts_at_once(
    nominated: str | None, before: str | None, after: str | None
) -> None:
    bench = Bench()
    nominator = bench.lab.cluster.nominator
    if before:
        nominator.nominate(bench.pod.info, before)
    bench.fail(unschedulable("x").by("F"), nominated_node=nominated)
    assert nominator.node_of("p") == after
    assert bench.reports.submitted[0][2] == nominated


def test_a_pod_awaits_its_victims_until_it_loses_its_nomination() -> None:
    bench = Bench()
    for nominated, awaits in ((None, False), ("n1", True), (None, True), ("", False)):
        bench.fail(unschedulable("x").by("F"), nominated_node=nominated)
        assert bench.pod.awaits_victims is awaits
        bench.bench.queue.activate(["p"])
        assert bench.bench.pop() is bench.pod


@pytest.mark.parametrize(
    "newest",
    [None, on_node(pod("p"), "n1"), pod("p", uid="another")],
    ids=["gone", "bound", "another of that name"],
)
def test_a_pod_that_needs_no_node_any_more_is_not_tried_again(newest: Pod | None) -> None:
    bench = Bench()
    bench.known = {"p": newest} if newest else {}
    bench.fail(unschedulable("no room").by("F"))
    assert bench.bench.counts() == {}
    assert bench.reports.submitted == []
    assert bench.events.notes == []


def test_the_newest_version_is_tried_next() -> None:
    bench = Bench()
    bench.known["p"] = pod("p", priority=9)
    bench.fail(unschedulable("no room").by("F"))
    assert bench.pod.info.priority == 9


def test_a_version_that_cannot_be_read_is_not(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    before = bench.pod.info
    bench.known["p"] = pod("p", cpu="plenty")
    bench.fail(unschedulable("no room").by("F"))
    assert bench.pod.info is before
    assert bench.bench.counts() == {"unschedulable": 1}
    assert "Keeping the version of a pod that can be read" in caplog.text


def test_as_long_as_another_replica_schedules_nobody_is_told() -> None:
    bench = Bench()
    for name in ("stays", "goes"):
        bench.known[name] = pod(name)
        bench.handler.refuse(bench.known[name], ObjectError(f"pod default/{name}: unreadable"))
    assert bench.events.notes == []
    del bench.known["goes"]
    bench.handler.begin()
    assert [name for name, *_ in bench.events.notes] == ["stays"]


def test_a_pod_that_cannot_be_read_is_told_so() -> None:
    bench = Bench()
    bench.handler.begin()
    bench.handler.refuse(pod("q"), ObjectError("pod default/q: cpu: not a quantity"))
    text = "pod default/q: cpu: not a quantity"
    assert bench.reports.submitted == [("q", error(text), None)]
    assert bench.events.notes == [("q", "FailedScheduling", "Scheduling", text)]
