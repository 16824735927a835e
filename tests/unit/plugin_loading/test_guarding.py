"""A plugin of somebody else: what its mistakes cost, and who hears of them."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from kubesched.clock import VirtualClock
from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.errors import ConfigError, PluginError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.domain_scores import DomainScores
from kubesched.framework.node_by_node import (
    CachedNodeFilter,
    CachedNodeScore,
    NodeAnswer,
    NodeFilter,
    NodeView,
    NodeWithPods,
    PodView,
    SignatureView,
)
from kubesched.framework.plugin import (
    EXTENSION_POINTS,
    Bind,
    Filter,
    Normalize,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreEnqueue,
    PreFilter,
    PreFilterResult,
    QueueSort,
    Reads,
    Reserve,
    RowFilter,
    RowScore,
    Score,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SUCCESS, Code, Status
from kubesched.framework.verdict import ALL_PASS, Verdict
from kubesched.logs.formats import ERR, FIELDS
from kubesched.plugin_loading.guarding import GUARDED_METHODS, guarded
from kubesched.plugin_loading.watching import PERIOD_S
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.plugins.node_resources_fit import NodeResourcesFit
from kubesched.queue.hints import Registrations
from kubesched.testing import Workbench
from tests.support.evaluating import feasible_rows


class Temperamental(CachedNodeFilter):
    """Leaves a little on each node, and fails while it is told to."""

    name = "Temperamental"
    failing = False

    def filter_node(self, pod: SignatureView, node: NodeView) -> NodeAnswer:
        if Temperamental.failing:
            raise KeyError("mood")  # the line that messages name
        return "node(s) had no room" if node.free("cpu") <= pod.requested("cpu") else None


_LINES = Path(__file__).read_text().splitlines()
LINE = 1 + next(i for i, line in enumerate(_LINES) if "the line that messages name" in line)


@pytest.fixture(autouse=True)
def good_mood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Temperamental, "failing", False)


def bench_with(
    plugin: type[Plugin], nodes: int = 2, clock: VirtualClock | None = None
) -> Workbench:
    bench = Workbench(clock=clock or VirtualClock())
    bench.use(plugin)
    bench.nodes(nodes, cpu=4)
    return bench


def failures(bench: Workbench, plugin: str) -> float:
    return bench.metrics.plugin_failures.labels(plugin).value


# --- failures ---------------------------------------------------------------------------------


def test_a_failure_ends_the_attempt_and_names_plugin_file_and_line() -> None:
    bench = bench_with(Temperamental)
    Temperamental.failing = True

    placement = bench.schedule(bench.pod())

    assert placement.is_error
    assert placement.message == (
        f"plugin Temperamental failed at {__file__}:{LINE}: KeyError: 'mood'"
    )
    assert failures(bench, "Temperamental") == 1


def test_the_next_pod_is_scheduled_as_if_nothing_had_happened() -> None:
    bench = bench_with(Temperamental)
    Temperamental.failing = True
    bench.schedule(bench.pod(cpu=1))
    Temperamental.failing = False

    bench.pod(cpu=1).lands_on("n1", "n2")


def test_what_changed_while_it_failed_is_not_taken_for_known() -> None:
    """A failure in the middle of an update must not leave the answers of before as current."""
    bench = bench_with(Temperamental, nodes=8)
    for number in range(6):
        bench.pod(f"there-{number}", cpu=2, node=_free_node(bench))
    bench.schedule(bench.pod("first", cpu=2))
    bench.pod("fills", cpu=2, node=_free_node(bench))
    Temperamental.failing = True
    assert bench.schedule(bench.pod("unlucky", cpu=2)).is_error
    Temperamental.failing = False

    placement = bench.schedule(bench.pod("second", cpu=2))

    assert placement.node == ""
    assert len(placement.refused) == 8


def _free_node(bench: Workbench) -> str:
    table = bench.cluster.table
    return next(table.name_at(row) for row in range(table.size) if not table.pods[row])


class FailingScore(CachedNodeScore):
    name = "FailingScore"

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        if node.requested("cpu"):
            raise RuntimeError("busy nodes are not scored")
        return 1


def test_a_score_that_fails_for_one_row_ends_that_attempt_only() -> None:
    bench = bench_with(FailingScore, nodes=8)
    assert bench.schedule(bench.pod(cpu=1)).node
    placement = bench.schedule(bench.pod(cpu=1))

    assert placement.message.endswith("RuntimeError: busy nodes are not scored")
    bench.cluster.remove_pod("default/pod-1")
    assert bench.schedule(bench.pod(cpu=1)).node


class Careless(PreEnqueue, QueueSort, PostFilter, Reserve, Permit, Bind, PostBind):
    """Fails wherever it is asked."""

    name = "Careless"

    def pre_enqueue(self, pod: PodInfo) -> Status:
        raise ValueError("pre_enqueue")

    def kept_out(self) -> Container[str] | None:
        raise ValueError("kept_out")

    def sort_key(self, pod: Any) -> tuple[float, ...]:
        raise ValueError("sort_key")

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Any) -> PostFilterResult:
        raise ValueError("post_filter")

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        raise ValueError("reserve")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        raise ValueError("unreserve")

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        raise ValueError("permit")

    def events_to_register(self) -> Registrations:
        raise ValueError("events_to_register")

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        raise ValueError("bind")

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        raise ValueError("post_bind")


def test_every_other_point_fails_with_a_status_and_never_with_an_exception() -> None:
    bench = Workbench()
    bench.use(Careless).without("PrioritySort", "DefaultBinder")
    plugin: Any = bench.framework.plugins.instances["Careless"]
    answers: list[Status] = [
        plugin.pre_enqueue(None),
        plugin.post_filter(None, None, None).status,
        plugin.reserve(None, None, "n"),
        plugin.permit(None, None, "n")[0],
        asyncio.run(plugin.bind(None, None, "n")),
    ]

    points = ["pre_enqueue", "post_filter", "reserve", "permit", "bind"]
    assert [each.code for each in answers] == [Code.ERROR] * 5
    assert [each.message.rsplit(" ", 1)[1] for each in answers] == points
    assert plugin.unreserve(None, None, "n") is None
    assert plugin.post_bind(None, None, "n") is None
    assert plugin.events_to_register() is None
    assert plugin.sort_key(None) > (1.0, 2.0)
    assert plugin.kept_out() is None
    assert failures(bench, "Careless") == 10


def test_there_is_no_method_of_a_plugin_that_is_not_guarded() -> None:
    """A method that the framework calls, and that nothing guards, takes the scheduler with it."""
    points = {base for classes in EXTENSION_POINTS.values() for base in classes}
    methods = {
        name
        for base in (Plugin, Normalize, *points)
        for name in vars(base)
        if callable(getattr(base, name)) and not name.startswith("_")
    }
    assert methods == GUARDED_METHODS


class FailingPreFilter(PreFilter, Filter):
    name = "FailingPreFilter"

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
        raise ValueError("pre_filter")

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        return ALL_PASS


def test_a_pre_filter_that_fails_ends_the_attempt() -> None:
    bench = bench_with(FailingPreFilter)

    bench.pod().stays_pending_because("plugin FailingPreFilter failed at ")


# --- answers that cannot be used --------------------------------------------------------------


def scoring(answer: Callable[[int], Any]) -> type[Plugin]:
    class Says(Score):
        name = "Says"

        def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array | None:
            said: Int64Array | None = answer(len(nodes))
            return said

    return Says


def filtering(answer: Callable[[int], Any]) -> type[Plugin]:
    class Says(Filter):
        name = "Says"

        def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
            said: Verdict = answer(len(nodes))
            return said

    return Says


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (scoring(lambda n: [1] * n), "scores are of type list instead of an array"),
        (scoring(lambda n: np.ones(n + 1, np.int64)), "3 scores for 2 nodes"),
        (scoring(np.ones), "scores are of type float64 instead of integers"),
        (filtering(lambda _: None), "filter returned NoneType instead of a Verdict"),
        (filtering(lambda n: Verdict(np.zeros(n + 1, np.int8), ())), "3 answers for 2 nodes"),
        (filtering(lambda n: Verdict(np.ones(n, np.int8), ())), "answers beyond its 0 statuses"),
        (filtering(lambda n: Verdict(np.ones(n), ())), "answers of type float64"),  # type: ignore[arg-type]
    ],
)
def test_an_answer_that_cannot_be_used_is_a_failure(plugin: type[Plugin], said: str) -> None:
    bench = bench_with(plugin)

    placement = bench.pod().stays_pending_because(said)

    assert placement.is_error
    assert failures(bench, "Says") == 1


@pytest.mark.parametrize("answer", [lambda n: np.full(n, 7, np.int16), lambda _: None])
def test_small_integers_and_nothing_at_all_are_scores(answer: Callable[[int], Any]) -> None:
    bench_with(scoring(answer)).pod().lands_on("n1", "n2")


class OneRow(RowFilter, RowScore):
    """Says of one row whatever it is told to say."""

    name = "OneRow"
    refuses: ClassVar[Any] = None
    scores: ClassVar[Any] = 1

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        return ALL_PASS

    def row_filter(
        self, signature: PodSignature, table: NodeTable
    ) -> Callable[[int], Status | None]:
        return lambda _: OneRow.refuses

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        return np.ones(len(nodes), dtype=np.int64)

    def row_scorer(self, signature: PodSignature, table: NodeTable) -> Callable[[int], int | None]:
        return lambda _: OneRow.scores


@pytest.mark.parametrize(
    ("which", "answer", "said"),
    [
        ("refuses", False, "row_filter's function returned bool instead of a Status or None"),
        ("refuses", "no room", "row_filter's function returned str instead of a Status or None"),
        ("scores", 1.0, "row_scorer's function returned float instead of an int or None"),
    ],
)
def test_an_answer_for_one_row_that_cannot_be_used_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, which: str, answer: object, said: str
) -> None:
    bench = bench_with(OneRow, nodes=8)
    assert bench.schedule(bench.pod(cpu=1)).node
    monkeypatch.setattr(OneRow, which, answer)

    placement = bench.pod(cpu=1).stays_pending_because(said)

    assert placement.is_error
    assert failures(bench, "OneRow") == 1


@pytest.mark.parametrize("answer", [None, SUCCESS])
def test_a_row_that_nothing_is_said_against_passes(
    monkeypatch: pytest.MonkeyPatch, answer: Status | None
) -> None:
    bench = bench_with(OneRow, nodes=8)
    monkeypatch.setattr(OneRow, "refuses", answer)
    for number in range(32):
        assert bench.schedule(bench.pod(f"p{number}", cpu=1)).node


def domain_scores(
    values: Sequence[int], domains: Sequence[int] | None, counted: Sequence[bool]
) -> Callable[[int], DomainScores]:
    return lambda _: DomainScores(
        np.array(values, dtype=np.int64),
        None if domains is None else np.array(domains, dtype=np.intp),
        np.array(counted, dtype=np.bool_),
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (domain_scores([1, 2], [0, 1, 0], [True, True]), "DomainScores of 3 nodes for 2 nodes"),
        (domain_scores([1, 2, 3], None, [True] * 3), "DomainScores of 3 nodes for 2 nodes"),
        (domain_scores([1], [0, 1], [True]), "DomainScores name domains beyond its 1 values"),
        (domain_scores([1], [0, -1], [True]), "DomainScores name domains beyond its 1 values"),
        (domain_scores([1, 2], [0, 1], [True]), "2 values, but 1 in counted"),
        (domain_scores([101], [0, 0], [True]), 'plugin "Says" returns an invalid score 101'),
    ],
)
def test_scores_by_domain_are_checked_like_others(answer: Callable[[int], Any], said: str) -> None:
    bench_with(scoring(answer)).pod(cpu=1).stays_pending_because(said)


def test_scores_out_of_range_are_refused_as_in_kube_scheduler() -> None:
    bench = bench_with(scoring(lambda n: np.full(n, 101)))

    bench.pod().stays_pending_because('plugin "Says" returns an invalid score 101')


# --- time -------------------------------------------------------------------------------------


def slow_plugin(clock: VirtualClock, *, seconds: float) -> type[Plugin]:
    class Slow(NodeFilter):
        name = "Slow"
        budget_s = 0.25

        def filter_node(self, pod: PodView, node: NodeWithPods) -> NodeAnswer:
            clock.advance(seconds / 2)  # there are two nodes
            return None

    return Slow


@pytest.mark.parametrize(("seconds", "times"), [(0.25, 0), (0.5, 1)])
def test_a_call_beyond_the_budget_is_counted_and_still_counts(seconds: float, times: int) -> None:
    clock = VirtualClock()
    bench = bench_with(slow_plugin(clock, seconds=seconds), clock=clock)
    pod = bench.cluster.compiler.pending(bench.pod().object)

    found = feasible_rows(bench.framework.evaluator, CycleState(), pod)

    assert len(found) == 2  # type: ignore[arg-type]
    assert bench.metrics.plugin_slow.labels("Slow").value == times


# --- reports ----------------------------------------------------------------------------------


def test_failures_are_all_counted_and_logged_once_a_period(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()
    bench = bench_with(Temperamental, clock=clock)
    Temperamental.failing = True

    def fail(times: int) -> list[tuple[object, object]]:
        caplog.clear()
        for _ in range(times):
            bench.schedule(bench.pod())
        logged = [vars(r) for r in caplog.records if r.levelno == logging.ERROR]
        return [(each[ERR], each[FIELDS]) for each in logged]

    text = f"plugin Temperamental failed at {__file__}:{LINE}: KeyError: 'mood'"
    assert fail(3) == [(text, {"plugin": "Temperamental", "failures": 1})]
    clock.advance(PERIOD_S - 1)
    assert fail(2) == []
    clock.advance(1)
    assert fail(1) == [(text, {"plugin": "Temperamental", "failures": 5})]
    assert failures(bench, "Temperamental") == 6


# --- classes that are refused -----------------------------------------------------------------


class ReadsNothing(RowScore):
    name = "ReadsNothing"
    reads = Reads(0)

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        return np.zeros(len(nodes), np.int64)


class ReadsText(ReadsNothing):
    name = "ReadsText"
    reads = "pods"  # type: ignore[assignment]


class NoMethod(CachedNodeFilter):
    name = "NoMethod"


class Mixed(PreFilter, CachedNodeFilter):
    name = "Mixed"

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
        return PreFilterResult()

    def filter_node(self, pod: SignatureView, node: NodeView) -> NodeAnswer:
        return None


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (ReadsNothing, "plugin ReadsNothing has reads = .*: combine NODE, PODS and REQUESTS"),
        (ReadsText, "plugin ReadsText has reads = 'pods': combine NODE, PODS and REQUESTS"),
        (NoMethod, "plugin NoMethod lacks filter_node"),
        (Mixed, "its PreFilter must be a SignaturePreFilter"),
    ],
)
def test_a_class_that_cannot_work_is_refused(plugin: type[Plugin], said: str) -> None:
    with pytest.raises(PluginError, match=said):
        guarded(plugin, VirtualClock())


class CannotBeMade(NodeFilter):
    name = "CannotBeMade"

    def __init__(self) -> None:
        raise OSError("no such model")

    def filter_node(self, pod: PodView, node: NodeWithPods) -> NodeAnswer:
        return None


def test_a_plugin_that_cannot_be_made_is_told_with_file_and_line() -> None:
    bench = bench_with(CannotBeMade)

    said = f'initializing plugin "CannotBeMade": cannot be made: {__file__}:'
    with pytest.raises(ConfigError, match=said) as refused:
        bench.schedule(bench.pod())
    assert str(refused.value).endswith("OSError: no such model")


class MadeItsOwnWay(NodeFilter):
    name = "MadeItsOwnWay"

    def __init__(self, cluster: object) -> None:
        self.cluster = cluster

    @classmethod
    def create(cls, context: PluginContext) -> MadeItsOwnWay:
        return MadeItsOwnWay(context.cluster)

    def filter_node(self, pod: PodView, node: NodeWithPods) -> NodeAnswer:
        raise ValueError("and is guarded all the same")


def test_a_plugin_may_have_its_own_way_of_being_made() -> None:
    bench = bench_with(MadeItsOwnWay)

    bench.pod().stays_pending_because("plugin MadeItsOwnWay failed at ")
    plugin: Any = bench.framework.plugins.instances["MadeItsOwnWay"]
    assert plugin.cluster is bench.cluster


class Nameless(NodeFilter):
    def filter_node(self, pod: PodView, node: NodeWithPods) -> NodeAnswer:
        return None


def test_without_a_name_the_class_is_the_name() -> None:
    assert guarded(Nameless, VirtualClock()).name == "Nameless"


def test_nothing_is_guarded_that_the_plugin_does_not_have() -> None:
    made = guarded(Nameless, VirtualClock())

    assert made.events_to_register is Nameless.events_to_register


class RoomForAll(NodeResourcesFit):
    """Overcommits, and scores as ever."""

    name = "RoomForAll"

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        return ALL_PASS


class NothingOfItsOwn(NodeResourcesFit):
    """Has another name."""

    name = "NothingOfItsOwn"


class NearAnything(InterPodAffinity):
    """Heeds no term."""

    name = "NearAnything"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        return ALL_PASS


def test_a_filter_of_ones_own_has_no_inherited_bounds() -> None:
    assert InterPodAffinity.bounds_counts
    made: Any = guarded(NearAnything, VirtualClock())
    assert not made.bounds_counts


@pytest.mark.parametrize(
    ("plugin", "method", "expected"),
    [
        (NearAnything, "count_bounds", Filter.count_bounds),
        (RoomForAll, "row_filter", RowFilter.row_filter),
        (RoomForAll, "row_scorer", NodeResourcesFit.row_scorer),
        (NothingOfItsOwn, "row_filter", NodeResourcesFit.row_filter),
    ],
)
def test_a_shortcut_is_not_taken_past_what_a_plugin_has_made_its_own(
    plugin: type[Plugin], method: str, expected: Callable[..., object]
) -> None:
    assert inspect.unwrap(getattr(guarded(plugin, VirtualClock()), method)) is expected
