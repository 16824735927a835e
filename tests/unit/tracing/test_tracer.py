"""The spans of attempts: a scheduler at work, its collector, and the API server's headers."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from kubesched.clock import RealClock, VirtualClock
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Permit
from kubesched.framework.status import Status, unschedulable
from kubesched.tracing.spans import CLIENT, SpanRecord
from kubesched.tracing.tracer import AttemptTracer
from tests.support.embedded_scheduler import Harness, scheduler
from tests.support.waiting import eventually


class Refuses(Permit):
    """Lets no pod be bound."""

    name = "Refuses"

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        return unschedulable("not here"), 0.0


def traced(
    script: Callable[[Harness, list[SpanRecord]], Any], *plugins: Any, **options: Any
) -> list[SpanRecord]:
    """Run a scheduler that traces every attempt; return its spans."""
    spans: list[SpanRecord] = []

    async def main() -> None:
        tracer = AttemptTracer(spans.append, RealClock(), share=1.0)
        async with scheduler(*plugins, tracer=tracer, **options) as here:
            await script(here, spans)

    asyncio.run(main())
    return spans


def tree(spans: list[SpanRecord]) -> dict[str, list[str]]:
    """Return the names of spans by that of their parent, of the first trace."""
    first = next(each for each in spans if each.name == "Attempt").trace_id
    mine = {each.span_id: each for each in spans if each.trace_id == first}
    children: dict[str, list[str]] = defaultdict(list)
    for each in mine.values():
        children[mine[each.parent_id].name if each.parent_id else ""].append(each.name)
    return {name: sorted(names) for name, names in children.items()}


def attributes(span: SpanRecord) -> dict[str, object]:
    return dict(span.attributes)


async def place_one(here: Harness, spans: list[SpanRecord]) -> None:
    here.create_pod("p")
    await eventually(lambda: any(each.name == "Attempt" for each in spans))


def test_a_pod_that_is_bound() -> None:
    spans = traced(place_one)

    found = tree(spans)
    assert found[""] == ["Attempt"]
    assert found["Attempt"] == ["BindingCycle", "SchedulingCycle"]
    assert {"PreFilter", "Filter"} <= set(found["SchedulingCycle"])
    assert {"NodeResourcesFit", "TaintToleration"} & set(found["Filter"])
    assert "Bind" in found["BindingCycle"]
    assert "HTTP POST" in found["BindingCycle"]
    assert found["Bind"] == ["DefaultBinder"]
    (attempt,) = [each for each in spans if each.name == "Attempt"]
    about = attributes(attempt)
    assert (about["k8s.pod.name"], about["k8s.namespace.name"]) == ("p", "default")
    assert (about["scheduler.attempt"], about["scheduler.result"]) == (1, "Success")
    assert str(about["k8s.node.name"]).startswith("node-")
    (request,) = [each for each in spans if each.kind == CLIENT]
    assert attributes(request)["url.path"] == "/api/v1/namespaces/default/pods/p/binding"
    assert attributes(request)["http.response.status_code"] == 201


def test_children_lie_within_their_parents_and_ids_are_unique() -> None:
    spans = traced(place_one)

    by_id = {each.span_id: each for each in spans}
    assert len(by_id) == len(spans)
    for each in spans:
        assert each.start_ns <= each.end_ns
        parent = by_id.get(each.parent_id)
        if parent is not None:
            assert parent.start_ns <= each.start_ns + 1000, (parent, each)
            assert each.end_ns <= parent.end_ns + 1000, (parent, each)


def test_a_pod_that_fits_nowhere() -> None:
    async def script(here: Harness, spans: list[SpanRecord]) -> None:
        here.create_pod("p", nodeSelector={"no": "where"})
        await eventually(lambda: any(each.name == "Attempt" for each in spans))

    spans = traced(script)

    (attempt, *_) = [each for each in spans if each.name == "Attempt"]
    assert attributes(attempt)["scheduler.result"] == "Unschedulable"
    assert attempt.error == ""
    assert tree(spans)["Attempt"] == ["SchedulingCycle"]


def test_a_pod_whose_node_is_refused() -> None:
    spans = traced(place_one, Refuses)

    (attempt, *_) = [each for each in spans if each.name == "Attempt"]
    assert attributes(attempt)["scheduler.result"] == "Unschedulable"
    assert "not here" in attempt.error
    assert "Refuses" in tree(spans)["Permit"]


def test_bindings_under_way_at_once_are_told_apart() -> None:
    async def script(here: Harness, spans: list[SpanRecord]) -> None:
        for number in range(30):
            here.create_pod(f"p{number}")
        await eventually(lambda: sum(each.name == "Attempt" for each in spans) >= 30, seconds=30)

    spans = traced(script, nodes=20)

    pods = {
        each.trace_id: attributes(each)["k8s.pod.name"] for each in spans if each.name == "Attempt"
    }
    posts = [each for each in spans if each.name == "HTTP POST"]
    assert len(posts) >= 30
    for each in posts:
        assert f"/pods/{pods[each.trace_id]}/binding" in str(attributes(each)["url.path"])


def test_each_member_of_a_gang_has_its_binding_in_the_trace_of_the_group() -> None:
    async def script(here: Harness, spans: list[SpanRecord]) -> None:
        here.cluster.create(
            {
                "apiVersion": "scheduling.k8s.io/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": "g", "namespace": "default"},
                "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
            }
        )
        for name in ("a", "b"):
            here.create_pod(name, schedulingGroup={"podGroupName": "g"})
        await eventually(lambda: sum(each.name == "BindingCycle" for each in spans) == 2)

    spans = traced(script, nodes=3, gates={"GenericWorkload": True})

    attempt = next(each for each in spans if each.name == "Attempt")
    assert attributes(attempt)["scheduler.group"] == "podgroup/default/g"
    assert attributes(attempt)["scheduler.members.placed"] == 2
    bindings = [each for each in spans if each.name == "BindingCycle"]
    assert {each.parent_id for each in bindings} == {attempt.span_id}
    assert {attributes(each)["k8s.pod.name"] for each in bindings} == {"a", "b"}
    posts = {each.parent_id for each in spans if each.name == "HTTP POST"}
    assert posts == {each.span_id for each in bindings}


# --- the sample -----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_the_share_of_attempts(share: float) -> None:
    tracer = AttemptTracer(lambda _: None, VirtualClock(), share=share)
    counts: Counter[bool] = Counter()
    for _ in range(20_000):
        tracer.deciding()
        counts[tracer.is_sampled] += 1
    assert counts[True] / 20_000 == pytest.approx(share, rel=0.2)


def test_requests_outside_of_a_traced_attempt_have_no_header() -> None:
    tracer = AttemptTracer(lambda _: None, VirtualClock(), share=0.5)
    while True:
        tracer.deciding()
        request = tracer.begin_request("POST", "/x?y")
        assert (request is not None) == tracer.is_sampled
        if request is not None:
            break
    header = request.header
    assert re.fullmatch(r"traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-01\r\n", header)


def test_a_forked_copy_traces_nothing() -> None:
    tracer = AttemptTracer(lambda _: None, VirtualClock(), share=1.0)
    tracer.detach()
    tracer.deciding()
    assert tracer.begin_request("GET", "/") is None
