"""What is written to the API server about pods, call by call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod, PodCondition
from kubesched.client.listing import ListPage
from kubesched.client.rest import STRATEGIC_MERGE_PATCH
from kubesched.clock import VirtualClock
from kubesched.cluster.pod_info import PodCompiler
from kubesched.errors import (
    ApiError,
    ConflictError,
    ConnectionFailedError,
    ForbiddenError,
    NotFoundError,
    RequestTimeoutError,
    WithdrawnError,
)
from kubesched.scheduler import api_calls
from kubesched.scheduler.api_calls import ApiCalls, Binding
from tests.support.objects import on_node, pod

NOON = "2026-01-01T12:00:00Z"
NOON_S = 1767268800.0


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_calls, "QUESTION_PAUSE_S", 0.0)
    monkeypatch.setattr(api_calls, "RETRY_PAUSES_S", (0.0, 0.0, 0.0))


class Client:
    """A client that writes down what it is asked, and fails as it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Any]] = []
        #: what the next calls raise, in order; None for success
        self.failures: list[Exception | None] = []
        self.answers: list[Pod] = []

    async def _do(
        self,
        verb: str,
        path: str,
        body: Any = None,
        still_wanted: Callable[[], bool] | None = None,
    ) -> None:
        if still_wanted is not None and not still_wanted():
            raise WithdrawnError(path)
        self.calls.append((verb, path, body))
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure

    async def post(
        self, path: str, body: object, *, still_wanted: Callable[[], bool] | None
    ) -> None:
        await self._do("POST", path, body, still_wanted)

    async def patch(
        self,
        path: str,
        body: object,
        *,
        content_type: str,
        still_wanted: Callable[[], bool] | None,
    ) -> None:
        assert content_type == STRATEGIC_MERGE_PATCH
        await self._do("PATCH", path, body, still_wanted)

    async def delete(
        self, path: str, body: object, *, still_wanted: Callable[[], bool] | None
    ) -> None:
        await self._do("DELETE", path, body, still_wanted)

    async def get(self, path: str, kind: type[Pod]) -> Pod:
        await self._do("GET", path)
        return self.answers.pop(0)


class Bench:
    def __init__(self, *failures: Exception | None, answers: tuple[Pod, ...] = ()) -> None:
        self.client = Client()
        self.client.failures = list(failures)
        self.client.answers = list(answers)
        anything: Any = self.client
        self.calls = ApiCalls(anything, VirtualClock(NOON_S))

    def run(self, what: Coroutine[Any, Any, None]) -> list[str]:
        asyncio.run(what)
        return [verb for verb, _, _ in self.client.calls]

    def statuses(self) -> list[Any]:
        return [body["status"] for verb, _, body in self.client.calls if verb == "PATCH"]


POD = replace(pod("p"), metadata=replace(pod("p").metadata, generation=3))
INFO = PodCompiler().pending(POD)
LOST = ConnectionFailedError("connection lost")
LATE = RequestTimeoutError("no answer in time")

# --- reads ------------------------------------------------------------------------------------


def test_the_pods_on_a_node_are_read_in_pages_from_the_last_start_on() -> None:
    asked: list[Any] = []
    pages = [(["forgotten"], True), (["a"], True), (["b", "c"], False)]

    class Lists:
        async def list_pages(self, path: str, kind: type[Pod], *, field_selector: str) -> Any:
            asked.append((path, kind, field_selector))
            for names, first in pages:
                yield ListPage(
                    items=[pod(name, node="n1") for name in names],
                    bad=[],
                    waiting=0,
                    resource_version="7",
                    first=first,
                )

    anything: Any = Lists()
    found = asyncio.run(ApiCalls(anything, VirtualClock()).pods_on("n1"))

    selector = "spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed"
    assert asked == [("/api/v1/pods", Pod, selector)]
    assert [each.metadata.name for each in found] == ["a", "b", "c"]


# --- bindings ---------------------------------------------------------------------------------


def test_a_binding_names_pod_and_node() -> None:
    bench = Bench()
    assert bench.run(bench.calls.bind(INFO, "n1")) == ["POST"]
    (_, path, body) = bench.client.calls[0]
    assert path == "/api/v1/namespaces/default/pods/p/binding"
    assert isinstance(body, Binding)
    assert (body.metadata.name, body.metadata.namespace, body.metadata.uid) == ("p", "default", "p")
    assert (body.target.kind, body.target.name) == ("Node", "n1")


@pytest.mark.parametrize("failure", [LOST, LATE])
def test_a_lost_answer_is_asked_for_until_it_is_known(failure: Exception) -> None:
    bench = Bench(failure, LOST, LATE, None, answers=(on_node(POD, "n1"),))
    assert bench.run(bench.calls.bind(INFO, "n1")) == ["POST", "GET", "GET", "GET"]


def test_a_binding_that_did_not_arrive_is_tried_again() -> None:
    bench = Bench(LOST, answers=(POD,))
    assert bench.run(bench.calls.bind(INFO, "n1")) == ["POST", "GET", "POST"]


@pytest.mark.parametrize(
    "found",
    [on_node(POD, "n2"), on_node(pod("p", uid="another"), "n1")],
    ids=["bound elsewhere", "another pod of that name"],
)
def test_a_pod_that_is_not_ours_to_bind_any_more_is_refused(found: Pod) -> None:
    taken = ConflictError("pod p is already assigned", code=409)
    bench = Bench(LOST, None, taken, None, answers=(found, found))
    with pytest.raises(ConflictError):
        bench.run(bench.calls.bind(INFO, "n1"))


def test_a_binding_that_is_too_late_has_failed_unless_it_was_made() -> None:
    bench = Bench(LATE, answers=(POD,))
    with pytest.raises(RequestTimeoutError):
        bench.run(bench.calls.bind(INFO, "n1"))


@pytest.mark.parametrize("code", [500, 503])
def test_a_binding_is_tried_four_times_if_the_api_server_fails(code: int) -> None:
    failed = ApiError("busy", code=code)
    bench = Bench(failed, failed)
    assert bench.run(bench.calls.bind(INFO, "n1")) == ["POST"] * 3
    bench = Bench(*[failed] * 4)
    with pytest.raises(ApiError, match="busy"):
        bench.run(bench.calls.bind(INFO, "n1"))
    assert len(bench.client.calls) == 4


def test_a_binding_may_have_been_made_although_the_answer_was_a_failure() -> None:
    taken = ConflictError("pod p is already assigned", code=409)
    bench = Bench(ApiError("etcd: timed out", code=500), taken, answers=(on_node(POD, "n1"),))
    assert bench.run(bench.calls.bind(INFO, "n1")) == ["POST", "POST", "GET"]


@pytest.mark.parametrize(
    "lasting", [NotFoundError("gone", code=404), ForbiddenError("no", code=403)]
)
def test_a_binding_that_cannot_succeed_is_tried_once(lasting: Exception) -> None:
    bench = Bench(lasting)
    with pytest.raises(type(lasting)):
        bench.run(bench.calls.bind(INFO, "n1"))
    assert len(bench.client.calls) == 1


def test_a_refused_binding_is_not_asked_about() -> None:
    bench = Bench(ConflictError("pod p is already assigned", code=409))
    with pytest.raises(ConflictError):
        bench.run(bench.calls.bind(INFO, "n1"))
    assert len(bench.client.calls) == 1


def test_a_binding_that_is_not_wanted_any_more_is_not_sent() -> None:
    bench = Bench()
    with pytest.raises(WithdrawnError):
        bench.run(bench.calls.bind(INFO, "n1", still_wanted=lambda: False))
    assert bench.client.calls == []


def test_a_binding_that_is_not_wanted_any_more_may_have_been_made() -> None:
    """By the first request, whose answer was a failure: the pod itself is what takes the room."""
    wanted = iter([True, False])
    bench = Bench(ApiError("etcd: timed out", code=500), answers=(on_node(POD, "n1"),))
    asked = bench.run(bench.calls.bind(INFO, "n1", still_wanted=lambda: next(wanted)))
    assert asked == ["POST", "GET"]


# --- conditions -------------------------------------------------------------------------------


def condition(kind: str, status: str, **more: Any) -> PodCondition:
    return PodCondition(type=kind, status=status, **more)


def with_conditions(*conditions: PodCondition, nominated: str = "") -> Pod:
    status = replace(POD.status, conditions=conditions, nominated_node_name=nominated)
    return replace(POD, status=status)


def report(bench: Bench, each: Pod, *, nominated_node: str | None = None) -> list[Any]:
    bench.run(
        bench.calls.report_unschedulable(
            each, reason="Unschedulable", message="no room", nominated_node=nominated_node
        )
    )
    return bench.statuses()


WRITTEN = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "no room",
    "observedGeneration": 3,
    "lastProbeTime": None,
    "lastTransitionTime": NOON,
}
EARLIER = "2026-01-01T09:00:00Z"
SAME = condition(
    "PodScheduled",
    "False",
    reason="Unschedulable",
    message="no room",
    observed_generation=3,
    last_transition_time=EARLIER,
)


def test_a_pod_is_told_why_it_has_no_node() -> None:
    bench = Bench()
    assert report(bench, POD) == [{"conditions": [WRITTEN]}]
    (_, path, body) = bench.client.calls[0]
    assert path == "/api/v1/namespaces/default/pods/p/status"
    assert body["metadata"] == {"uid": "p"}


def test_what_a_pod_was_told_already_is_not_repeated() -> None:
    assert report(Bench(), with_conditions(SAME)) == []
    assert report(Bench(), with_conditions(SAME), nominated_node="") == []
    assert report(Bench(), with_conditions(SAME, nominated="n1"), nominated_node="n1") == []


def test_the_transition_is_when_the_status_changed_not_the_message() -> None:
    other_text = replace(SAME, message="other")
    (status,) = report(Bench(), with_conditions(other_text))
    assert status["conditions"][0]["lastTransitionTime"] == EARLIER
    (status,) = report(Bench(), with_conditions(replace(SAME, status="True")))
    assert status["conditions"][0]["lastTransitionTime"] == NOON


@pytest.mark.parametrize(
    ("known", "new", "written"),
    [
        ("", "n1", {"nominatedNodeName": "n1"}),
        ("n1", "n2", {"nominatedNodeName": "n2"}),
        ("n1", "", {"nominatedNodeName": None}),
    ],
)
def test_a_nomination_is_written_where_it_differs(
    known: str, new: str, written: dict[str, str | None]
) -> None:
    each = with_conditions(SAME, nominated=known)
    assert report(Bench(), each, nominated_node=new) == [written]
    bench = Bench()
    bench.run(bench.calls.nominate(each, new))
    assert bench.statuses() == [written]


def test_a_nomination_that_stands_is_not_written() -> None:
    bench = Bench()
    assert bench.run(bench.calls.nominate(with_conditions(nominated="n1"), "n1")) == []
    assert report(Bench(), with_conditions(SAME, nominated="n1"), nominated_node=None) == []


def test_a_victim_is_marked_once_and_deleted() -> None:
    bench = Bench()
    bench.run(bench.calls.mark_as_preempted(POD, by="my-scheduler"))
    ((written,),) = [each["conditions"] for each in bench.statuses()]
    assert (written["type"], written["status"], written["reason"], written["message"]) == (
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
        "my-scheduler: preempting to accommodate a higher priority pod",
    )
    marked = condition(
        "DisruptionTarget",
        "True",
        reason=written["reason"],
        message=written["message"],
        observed_generation=3,
        last_transition_time=EARLIER,
    )
    again = Bench()
    assert (
        again.run(again.calls.mark_as_preempted(with_conditions(marked), by="my-scheduler")) == []
    )
    assert again.run(again.calls.delete(POD)) == ["DELETE"]
    assert again.client.calls[0][1:] == (
        "/api/v1/namespaces/default/pods/p",
        {"preconditions": {"uid": POD.metadata.uid}},
    )


def test_a_victim_that_is_gone_when_the_turn_comes_is_left_alone() -> None:
    bench = Bench()
    for call in (
        bench.calls.mark_as_preempted(POD, by="my-scheduler", still_wanted=lambda: False),
        bench.calls.delete(POD, still_wanted=lambda: False),
    ):
        with pytest.raises(WithdrawnError):
            bench.run(call)
    assert bench.client.calls == []


# --- trying again -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "passing",
    [
        LOST,
        ApiError("busy", code=503),
        ApiError("broken", code=500),
        ConflictError("changed", code=409),
    ],
)
def test_what_may_pass_is_tried_again_three_times(passing: Exception) -> None:
    bench = Bench(passing, passing, passing)
    assert bench.run(bench.calls.nominate(POD, "n1")) == ["PATCH"] * 4
    bench = Bench(*[passing] * 4)
    with pytest.raises(type(passing)):
        bench.run(bench.calls.nominate(POD, "n1"))
    assert len(bench.client.calls) == 4


@pytest.mark.parametrize(
    "lasting",
    [NotFoundError("gone", code=404), ForbiddenError("no", code=403), ApiError("bad", code=422)],
)
def test_what_will_not_pass_is_not(lasting: Exception) -> None:
    bench = Bench(lasting)
    with pytest.raises(type(lasting)):
        bench.run(bench.calls.nominate(POD, "n1"))
    assert len(bench.client.calls) == 1
