"""The points of groups: whose status counts, in which order, and what is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pytest

from kubesched.cluster.pod_groups import GroupKey, GroupKind
from kubesched.errors import ConfigError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import (
    Assignments,
    GroupInfo,
    GroupTrial,
    Placement,
    PodGroupPostFilterResult,
    Progress,
)
from kubesched.framework.group_runtime import GroupPoints, placement_feasible_plugins
from kubesched.framework.observing import NullObserver
from kubesched.framework.plugin import (
    PlacementFeasible,
    PlacementGenerate,
    PlacementScore,
    Plugin,
    PodGroupPostFilter,
)
from kubesched.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from tests.support.group_objects import pod_group
from tests.support.objects import node
from tests.support.scheduling import cluster_of, framework_of

GROUP = GroupInfo(GroupKey(GroupKind.POD_GROUP, "default", "g"), pod_group("g"), ())
EVERYWHERE = Placement("", np.array([True, True]))
FIRST, SECOND = Placement("1", np.array([True, False])), Placement("2", np.array([False, True]))
WAIT, PENDING = Status(Code.WAIT), Status(Code.PENDING)


class Told(Plugin):
    """A plugin that answers what it is told, and writes down that it was asked."""

    answer: ClassVar[object]
    log: ClassVar[list[str]]


class Generating(Told, PlacementGenerate):
    def generate_placements(
        self, state: CycleState, group: GroupInfo, within: Placement
    ) -> tuple[Sequence[Placement], Status]:
        self.log.append(self.name)
        return self.answer  # type: ignore[return-value]  # as the test says


class Judging(Told, PlacementFeasible):
    def placement_feasible(self, state: CycleState, group: GroupInfo, progress: Progress) -> Status:
        self.log.append(self.name)
        return self.answer  # type: ignore[return-value]  # as the test says


class Scoring(Told, PlacementScore):
    def score_placement(self, group: GroupInfo, placed: Assignments) -> tuple[int, Status]:
        answer = self.answer
        assert isinstance(answer, dict)
        return answer[placed.placement.name]

    def normalize_placements(
        self, state: CycleState, scores: Sequence[int]
    ) -> tuple[Sequence[int], Status]:
        answer = self.answer
        assert isinstance(answer, dict)
        return scores, answer.get("normalized", SUCCESS)


class Preempting(Told, PodGroupPostFilter):
    def pod_group_post_filter(
        self, state: CycleState, group: GroupInfo, trial: GroupTrial
    ) -> PodGroupPostFilterResult:
        self.log.append(self.name)
        return PodGroupPostFilterResult(self.answer)  # type: ignore[arg-type]  # as the test says


class Bench:
    """The points of a profile with told plugins."""

    def __init__(
        self, base: type[Told], told: Mapping[str, object] | None = None, **answers: object
    ) -> None:
        self.log: list[str] = []
        plugins = [
            type(name, (base,), {"name": name, "answer": answer, "log": self.log})
            for name, answer in (told or answers).items()
        ]
        framework = framework_of(cluster_of(node("n")), plugins=plugins, only=[])
        self.points = GroupPoints(framework.plugins, NullObserver())
        if issubclass(base, Judging):
            self.points.placement_feasible = [each() for each in plugins]
        self.state = CycleState()

    def generate(self) -> tuple[Sequence[Placement], Status]:
        return self.points.generate(self.state, GROUP, EVERYWHERE)

    def feasible(self) -> Status:
        return self.points.feasible(self.state, GROUP, Progress(remaining=1, scheduled=0))

    def score(self) -> tuple[dict[str, tuple[int, dict[str, int]]], Status]:
        placed = [Assignments(each, [], self.state) for each in (FIRST, SECOND)]
        found, status = self.points.score(self.state, GROUP, placed)
        return {each.placement.name: (each.total, dict(each.scores)) for each in found}, status

    def post_filter(self) -> Status:
        trial: GroupTrial = None  # type: ignore[assignment]  # told plugins try nothing
        return self.points.post_filter(self.state, GROUP, trial).status


# --- PlacementGenerate ----------------------------------------------------------------------------


def test_without_a_plugin_a_group_is_tried_on_all_nodes() -> None:
    assert Bench(Judging).generate() == ([EVERYWHERE], SUCCESS)


def test_the_placements_are_those_of_the_plugin() -> None:
    bench = Bench(Generating, A=([FIRST, SECOND], SUCCESS))
    assert bench.generate() == ([FIRST, SECOND], SUCCESS)


def test_a_plugin_without_placements_rejects_the_group() -> None:
    rejected = unschedulable("no feasible placements found").by("A")
    assert Bench(Generating, A=([], SUCCESS)).generate() == ([], rejected)
    assert Bench(Generating, A=([FIRST], unresolvable("no"))).generate() == (
        [],
        unresolvable("no").by("A"),
    )


# --- PlacementFeasible ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "want", "asked"),
    [
        pytest.param({}, SUCCESS, [], id="no plugin"),
        pytest.param({"A": SUCCESS, "B": SUCCESS}, SUCCESS, ["A", "B"], id="all succeed"),
        pytest.param({"A": WAIT, "B": SUCCESS}, WAIT.by("A"), ["A", "B"], id="one waits"),
        pytest.param(
            {"A": WAIT, "B": unschedulable("too few"), "C": SUCCESS},
            unschedulable("too few").by("B"),
            ["A", "B"],
            id="one rejects",
        ),
        pytest.param(
            {"A": error("boom"), "B": SUCCESS},
            error("running PlacementFeasible plugin: boom").by("A"),
            ["A"],
            id="one fails",
        ),
        pytest.param(
            {"A": PENDING},
            error("unexpected status from PlacementFeasible plugin: Pending").by("A"),
            ["A"],
            id="one answers what it must not",
        ),
    ],
)
def test_whether_enough_members_are_placed(
    answers: dict[str, Status], want: Status, asked: list[str]
) -> None:
    bench = Bench(Judging, answers)

    assert bench.feasible() == want
    assert bench.log == asked


class GangScheduling(Judging):
    name = "GangScheduling"


class Unable(Plugin):
    name = "GangScheduling"


def test_the_plugins_that_judge_are_those_of_both_kinds_of_groups() -> None:
    by_spec = GangScheduling()
    by_label = type("Coscheduling", (Judging,), {"name": "Coscheduling"})()
    instances: dict[str, Plugin] = {"GangScheduling": by_spec, "Coscheduling": by_label}

    assert placement_feasible_plugins(instances, by_spec=True) == [by_spec, by_label]
    assert placement_feasible_plugins(instances, by_spec=False) == [by_label]
    assert placement_feasible_plugins({}, by_spec=True) == []


def test_a_plugin_that_cannot_judge_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not fulfill PlacementFeasiblePlugin interface"):
        placement_feasible_plugins({"GangScheduling": Unable()}, by_spec=True)


# --- PlacementScore -------------------------------------------------------------------------------


def test_the_scores_of_a_placement_are_summed() -> None:
    bench = Bench(
        Scoring,
        A={"1": (10, SUCCESS), "2": (20, SUCCESS)},
        B={"1": (100, SUCCESS), "2": (0, SUCCESS)},
    )
    assert bench.score() == (
        {"1": (110, {"A": 10, "B": 100}), "2": (20, {"A": 20, "B": 0})},
        SUCCESS,
    )


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(
            {"1": (0, SUCCESS), "2": (0, error("boom"))},
            'running PlacementScore plugins: plugin "A" failed with: boom',
            id="a score fails",
        ),
        pytest.param(
            {"1": (0, SUCCESS), "2": (0, SUCCESS), "normalized": error("boom")},
            "running NormalizePlacementScore on PlacementScore plugins: "
            'plugin "A" failed with: boom',
            id="normalizing fails",
        ),
        pytest.param(
            {"1": (0, SUCCESS), "2": (101, SUCCESS)},
            'applying score defaultWeights on PlacementScore plugins: plugin "A" returns an '
            "invalid score 101, it should in the range of [0, 100] after normalizing",
            id="too high",
        ),
        pytest.param(
            {"1": (-1, SUCCESS), "2": (0, SUCCESS)},
            'applying score defaultWeights on PlacementScore plugins: plugin "A" returns an '
            "invalid score -1, it should in the range of [0, 100] after normalizing",
            id="too low",
        ),
    ],
)
def test_scores_that_are_errors(answer: dict[str, object], want: str) -> None:
    assert Bench(Scoring, A=answer).score() == ({}, error(want))


# --- PodGroupPostFilter ---------------------------------------------------------------------------


def test_the_first_plugin_that_finds_victims_counts() -> None:
    bench = Bench(Preempting, A=unschedulable("a"), B=SUCCESS, C=SUCCESS)

    assert bench.post_filter() == SUCCESS.by("B")
    assert bench.log == ["A", "B"]


def test_the_reasons_of_all_that_find_none_are_listed_for_the_first() -> None:
    bench = Bench(Preempting, A=unschedulable("a"), B=unschedulable("b"))
    assert bench.post_filter() == Status(Code.UNSCHEDULABLE, ("a", "b"), "A")


def test_a_plugin_that_says_nothing_helps_ends_the_search() -> None:
    bench = Bench(Preempting, A=unresolvable("never"), B=SUCCESS)

    assert bench.post_filter() == unresolvable("never").by("A")
    assert bench.log == ["A"]


def test_an_error_names_its_plugin() -> None:
    failed = error('error in "A" PodGroupPostFilter plugins: boom').by("A")
    assert Bench(Preempting, A=error("boom")).post_filter() == failed


class Last(Preempting):
    """The plugin A is only asked when all others found nothing."""

    def __init_subclass__(cls) -> None:
        cls.last_resort = cls.__name__ == "A"


def test_a_last_resort_is_asked_when_all_others_found_nothing() -> None:
    bench = Bench(Last, A=SUCCESS, B=unschedulable("b"))
    assert bench.post_filter() == SUCCESS.by("A")
    assert bench.log == ["B", "A"]

    bench = Bench(Last, A=SUCCESS, B=SUCCESS)
    assert bench.post_filter() == SUCCESS.by("B")
    assert bench.log == ["B"]

    bench = Bench(Last, A=unschedulable("a"), B=unschedulable("b"))
    assert bench.post_filter() == Status(Code.UNSCHEDULABLE, ("b", "a"), "B")
