"""The points that concern one pod, or one pod and its node: order, undoing, waiting, wrapping."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container
from typing import ClassVar

import pytest

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import (
    NODE,
    REQUESTS,
    Bind,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    Reserve,
    RowFilter,
)
from kubesched.framework.runtime import (
    MAX_PERMIT_WAIT_S,
    Framework,
    refused_bind,
    refused_pre_bind,
)
from kubesched.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from kubesched.framework.verdict import ALL_PASS, Verdict
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Registration
from tests.support.objects import node, pod
from tests.support.scheduling import RecordingBinder, cluster_of, framework_of

WAIT = Status(Code.WAIT)


class Told(Plugin):
    """A plugin that answers what it is told, and writes down that it was asked."""

    answer: ClassVar[Status] = SUCCESS
    log: ClassVar[list[str]]


class TestBench:
    """A framework of told plugins, a pod and a log."""

    __test__ = False

    def __init__(self, base: type[Plugin], **answers: object) -> None:
        self.log: list[str] = []
        plugins = [
            type(name, (base,), {"name": name, "answer": answer, "log": self.log})
            for name, answer in answers.items()
        ]
        cluster = cluster_of(node("n1"))
        self.state = CycleState()
        self.pod = cluster.compiler.pending(pod("p"))
        self.binder = RecordingBinder()
        self.framework: Framework = framework_of(
            cluster, plugins=plugins, only=[], binder=self.binder
        )


# --- PreEnqueue -------------------------------------------------------------------------------


class Gate(Told, PreEnqueue):
    def pre_enqueue(self, pod: PodInfo) -> Status:
        self.log.append(self.name)
        return self.answer


def test_the_first_gate_that_refuses_counts() -> None:
    bench = TestBench(Gate, A=SUCCESS, B=unresolvable("no"), C=unresolvable("never"))
    assert bench.framework.gate(bench.pod) == unresolvable("no").by("B")
    assert bench.log == ["A", "B"]


def test_the_gate_that_refused_last_time_is_asked_first() -> None:
    bench = TestBench(Gate, A=SUCCESS, B=SUCCESS, C=unresolvable("no"))
    assert bench.framework.gate(bench.pod, "C").plugin == "C"
    assert bench.log == ["C"]
    bench.log.clear()
    assert bench.framework.gate(bench.pod, "B").plugin == "C"
    assert bench.log == ["B", "A", "C"]


def test_a_pod_that_no_gate_refuses_may_pass() -> None:
    bench = TestBench(Gate, A=SUCCESS, B=SUCCESS)
    assert bench.framework.gate(bench.pod).ok


@pytest.mark.parametrize("status", [error("x"), unschedulable("x"), WAIT])
def test_whatever_is_not_success_is_a_refusal(status: Status) -> None:
    bench = TestBench(Gate, A=status)
    assert bench.framework.gate(bench.pod).plugin == "A"


class BrokenList(Gate):
    """A gate that cannot say which pods it keeps out."""

    def kept_out(self) -> Container[str] | None:
        raise ValueError("no list")


class BrokenContainer:
    def __contains__(self, uid: object) -> bool:
        raise ValueError("no answer")


class BrokenMember(Gate):
    """A gate whose list cannot be looked into."""

    def kept_out(self) -> Container[str] | None:
        return BrokenContainer()


@pytest.mark.parametrize(("gate", "held"), [(BrokenList, True), (BrokenMember, False)])
def test_a_gate_that_fails_is_asked_pod_by_pod_or_when_the_pod_is_woken(
    gate: type[Gate], held: bool
) -> None:
    """The queue wakes one pod after the other: none may lose its turn to a plugin's bug."""
    bench = TestBench(gate, A=unresolvable("no"))
    assert bench.framework.holding("A")(bench.pod) is held


# --- PostFilter -------------------------------------------------------------------------------


class Rescue(Told, PostFilter):
    nominate: ClassVar[str | None] = None

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        self.log.append(self.name)
        answer = self.answer
        return answer if isinstance(answer, PostFilterResult) else PostFilterResult(answer)


def _post_filter(**answers: Status | PostFilterResult) -> tuple[PostFilterResult, list[str]]:
    bench = TestBench(Rescue, **answers)
    diagnosis = Diagnosis(cluster_of(node("n1")).table)
    return bench.framework.post_filter(bench.state, bench.pod, diagnosis), bench.log


def test_the_first_success_is_the_answer() -> None:
    result, log = _post_filter(
        A=unschedulable("a"), B=PostFilterResult(SUCCESS, "n1"), C=unschedulable("c")
    )
    assert (result.status.ok, result.nominated_node, log) == (True, "n1", ["A", "B"])


def test_unresolvable_ends_it() -> None:
    result, log = _post_filter(
        A=unschedulable("a"), B=PostFilterResult(unresolvable("b"), ""), C=SUCCESS
    )
    assert result == PostFilterResult(unresolvable("b").by("B"), "")
    assert log == ["A", "B"]


@pytest.mark.parametrize("status", [error("boom"), Status(Code.WAIT, ("boom",))])
def test_anything_unexpected_is_an_error_without_a_nomination(status: Status) -> None:
    result, log = _post_filter(A=PostFilterResult(status, "n1"), B=SUCCESS)
    assert result == PostFilterResult(error("boom").by("A"), None)
    assert log == ["A"]


def test_unschedulable_everywhere_collects_reasons_and_the_last_nomination() -> None:
    result, log = _post_filter(
        A=unschedulable("no claims"),
        B=PostFilterResult(unschedulable("preemption: no"), ""),
        C=PostFilterResult(unschedulable("nor here")),
    )
    assert result.status == unschedulable("no claims", "preemption: no", "nor here").by("A")
    assert result.nominated_node == ""
    assert log == ["A", "B", "C"]


def test_pending_is_a_rejection_like_others() -> None:
    result, _ = _post_filter(A=Status(Code.PENDING, ("later",)))
    assert result.status == unschedulable("later").by("A")


def test_nobody_to_help() -> None:
    result, _ = _post_filter()
    assert result == PostFilterResult(unschedulable(), None)


# --- Reserve ----------------------------------------------------------------------------------


class Taker(Told, Reserve):
    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.log.append(f"reserve {self.name} {node_name}")
        return self.answer

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.log.append(f"unreserve {self.name} {node_name}")


def test_reserve_in_order_unreserve_in_reverse() -> None:
    bench = TestBench(Taker, A=SUCCESS, B=SUCCESS, C=SUCCESS)
    assert bench.framework.reserve(bench.state, bench.pod, "n1").ok
    bench.framework.unreserve(bench.state, bench.pod, "n1")
    assert bench.log == [
        "reserve A n1",
        "reserve B n1",
        "reserve C n1",
        "unreserve C n1",
        "unreserve B n1",
        "unreserve A n1",
    ]


def test_a_failed_reserve_stops_and_everybody_can_give_back() -> None:
    bench = TestBench(Taker, A=SUCCESS, B=unschedulable("taken"), C=SUCCESS)
    assert bench.framework.reserve(bench.state, bench.pod, "n1") == unschedulable("taken").by("B")
    bench.framework.unreserve(bench.state, bench.pod, "n1")
    assert bench.log == [
        "reserve A n1",
        "reserve B n1",
        "unreserve C n1",
        "unreserve B n1",
        "unreserve A n1",
    ]


def test_a_reserve_that_breaks_is_an_error_that_names_the_plugin() -> None:
    bench = TestBench(Taker, A=error("no disk"))
    status = bench.framework.reserve(bench.state, bench.pod, "n1")
    assert status == error('running Reserve plugin "A": no disk').by("A")


# --- Permit -----------------------------------------------------------------------------------


class Guard(Told, Permit):
    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        self.log.append(self.name)
        answer = self.answer
        return answer if isinstance(answer, tuple) else (answer, 0.0)


def test_permission_at_once() -> None:
    bench = TestBench(Guard, A=SUCCESS, B=SUCCESS)
    assert bench.framework.permit(bench.state, bench.pod, "n1") == (SUCCESS, {})


def test_everybody_may_ask_to_wait_but_no_longer_than_a_quarter_of_an_hour() -> None:
    bench = TestBench(Guard, A=(WAIT, 30.0), B=SUCCESS, C=(WAIT, 1e9))
    status, waits = bench.framework.permit(bench.state, bench.pod, "n1")
    assert status.ok
    assert waits == {"A": 30.0, "C": 900.0}
    assert MAX_PERMIT_WAIT_S == 900.0


def test_a_refusal_ends_it_even_if_somebody_asked_to_wait() -> None:
    bench = TestBench(Guard, A=(WAIT, 30.0), B=unschedulable("no"), C=SUCCESS)
    status, waits = bench.framework.permit(bench.state, bench.pod, "n1")
    assert (status, waits) == (unschedulable("no").by("B"), {})
    assert bench.log == ["A", "B"]


def test_a_permit_that_breaks_is_an_error_that_names_the_plugin() -> None:
    bench = TestBench(Guard, A=error("no quorum"))
    status, _ = bench.framework.permit(bench.state, bench.pod, "n1")
    assert status == error('running Permit plugin "A": no quorum').by("A")


# --- PreBind ----------------------------------------------------------------------------------


class Worker(Told, PreBind):
    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.log.append(self.name)
        return self.answer

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS


class ParallelWorker(Worker):
    parallel = True


def test_pre_flight_finds_out_who_has_work() -> None:
    bench = TestBench(Worker, A=SKIP, B=SUCCESS, C=SKIP)
    assert bench.framework.pre_bind_pre_flight(bench.state, bench.pod, "n1").ok
    assert bench.state.skip_pre_bind == {"A", "C"}
    assert bench.log == ["A", "B", "C"]


def test_pre_flight_of_idle_plugins_is_skipped() -> None:
    bench = TestBench(Worker, A=SKIP, B=SKIP)
    status = bench.framework.pre_bind_pre_flight(bench.state, bench.pod, "n1")
    assert status.code is Code.SKIP


def test_pre_flight_ends_with_the_first_error() -> None:
    bench = TestBench(Worker, A=SKIP, B=error("no fuel"), C=SUCCESS)
    status = bench.framework.pre_bind_pre_flight(bench.state, bench.pod, "n1")
    assert status.code is Code.ERROR
    assert status.message == 'running PreBindPreFlight "B": no fuel'
    assert bench.log == ["A", "B"]


def test_pre_flight_has_nothing_to_reject() -> None:
    bench = TestBench(Worker, A=unschedulable("no"))
    status = bench.framework.pre_bind_pre_flight(bench.state, bench.pod, "n1")
    assert status.code is Code.ERROR
    assert status.message == (
        'PreBindPreFlight A returned "Unschedulable", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status"
    )


def test_a_plugin_has_work_unless_it_says_otherwise() -> None:
    class Silent(PreBind):
        name = "Silent"

        async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
            return SUCCESS

    framework = framework_of(cluster_of(), plugins=[Silent], only=[])
    info = cluster_of().compiler.pending(pod())
    assert framework.pre_bind_pre_flight(CycleState(), info, "n1").ok


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        pytest.param("", [], id="nobody"),
        pytest.param("s", ["0"], id="one"),
        pytest.param("ss", ["0", "1"], id="serial ones run one after the other"),
        pytest.param("pp", ["01"], id="parallel ones run together"),
        pytest.param("psp", ["0", "1", "2"], id="a serial one comes between"),
        pytest.param("pSp", ["0", "2"], id="even if it is skipped"),
        pytest.param("ppspp", ["01", "2", "34"], id="groups"),
        pytest.param("pPp", ["02"], id="a skipped parallel one does not split"),
        pytest.param("PP", [], id="all skipped"),
        pytest.param("Sp", ["1"], id="a skipped serial one at the start"),
        pytest.param("spSSp", ["0", "1", "4"], id="several skipped serial ones"),
    ],
)
def test_groups_of_pre_bind_plugins(plugins: str, want: list[str]) -> None:
    """One letter a plugin: s is serial, p parallel, capital letters have nothing to do."""
    classes: list[type[Plugin]] = [
        type(
            str(index),
            (ParallelWorker if letter in "pP" else Worker,),
            {"name": str(index), "log": []},
        )
        for index, letter in enumerate(plugins)
    ]
    framework = framework_of(cluster_of(), plugins=classes, only=[])
    state = CycleState()
    state.skip_pre_bind = {str(index) for index, letter in enumerate(plugins) if letter in "PS"}
    groups = framework.pre_bind_groups(state)
    assert ["".join(plugin.name for plugin in group) for group in groups] == want


# --- Bind -------------------------------------------------------------------------------------


class Binder(Told, Bind):
    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.log.append(self.name)
        return self.answer


def _bind(bench: TestBench) -> Status:
    return asyncio.run(bench.framework.bind(bench.state, bench.pod, "n1"))


def _bench_of_binders(**answers: Status) -> TestBench:
    """Binders that come after the default one, which is taken out."""
    bench = TestBench(Binder, **answers)
    bench.framework.plugins.bind = [
        each for each in bench.framework.plugins.bind if isinstance(each, Binder)
    ]
    return bench


def test_the_first_binder_that_does_not_skip_binds() -> None:
    bench = _bench_of_binders(A=SKIP, B=SUCCESS, C=SUCCESS)
    assert _bind(bench).ok
    assert bench.log == ["A", "B"]


def test_a_binder_that_fails_is_not_followed_by_another() -> None:
    bench = _bench_of_binders(A=SKIP, B=error("conflict"), C=SUCCESS)
    assert _bind(bench) == error('running Bind plugin "B": conflict').by("B")
    assert bench.log == ["A", "B"]


def test_a_binder_that_rejects_is_quoted_as_it_is() -> None:
    bench = _bench_of_binders(A=unschedulable("no"))
    assert _bind(bench) == unschedulable("no").by("A")


def test_if_all_skip_nobody_bound() -> None:
    assert _bind(_bench_of_binders(A=SKIP)).code is Code.SKIP


def test_the_default_binder_comes_first() -> None:
    bench = TestBench(Binder, A=SUCCESS)
    assert _bind(bench).ok
    assert bench.binder.bound == [("default/p", "n1")]
    assert bench.log == []


# --- PostBind ---------------------------------------------------------------------------------


class Listener(Told, PostBind):
    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.log.append(f"{self.name} {pod.full_name} {node_name}")


def test_everybody_hears_of_a_bound_pod() -> None:
    bench = TestBench(Listener, A=SUCCESS, B=SUCCESS)
    bench.framework.post_bind(bench.state, bench.pod, "n1")
    assert bench.log == ["A default/p n1", "B default/p n1"]


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refused", "point"), [(refused_pre_bind, "PreBind"), (refused_bind, "Bind")]
)
def test_rejections_pass_through_and_errors_are_wrapped(
    refused: Callable[[Status, str], Status], point: str
) -> None:
    assert refused(unschedulable("no"), "X") == unschedulable("no").by("X")
    assert refused(error("no"), "X") == error(f'running {point} plugin "X": no').by("X")


# --- what the queue is told -------------------------------------------------------------------


class Picky(RowFilter):
    name = "Picky"
    reads = NODE | REQUESTS

    def events_to_register(self) -> list[Registration]:
        return [Registration(ClusterEvent(Resource.NODE, Action.DELETE))]

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        return ALL_PASS


def test_plugins_that_can_turn_pods_away_register_events() -> None:
    bench = TestBench(Guard, Guarding=SUCCESS)
    registered = framework_of(
        cluster_of(),
        plugins=[Picky, *(type(each) for each in bench.framework.plugins.permit)],
        only=["ImageLocality"],
    ).plugins.registrations()
    assert registered["Picky"] == [Registration(ClusterEvent(Resource.NODE, Action.DELETE))]
    assert registered["Guarding"] is None, "who does not say wants to hear of everything"
    assert "ImageLocality" not in registered, "it only scores"
    assert "DefaultBinder" not in registered


def test_cycle_state_remembers() -> None:
    state = CycleState()
    state.write("key", 1)
    assert state.read("key") == 1
    with pytest.raises(KeyError):
        state.read("other")
