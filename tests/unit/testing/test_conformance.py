"""`check_plugin`: each check catches a plugin that breaks its promise, and only such a plugin."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.count_bounds import CountBounds
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.domain_scores import DomainScores
from kubesched.framework.node_by_node import (
    CachedNodeFilter,
    CachedNodeScore,
    HighestWins,
    NodeFilter,
    NodeScore,
    NodeView,
    NodeWithPods,
    PodView,
    SignatureView,
)
from kubesched.framework.plugin import (
    NODE,
    NOTHING_AGAINST,
    REQUESTS,
    Filter,
    Normalize,
    Plugin,
    PreFilter,
    PreFilterResult,
    Reserve,
    RowFilter,
    RowScore,
    Score,
    depends_on_min_max,
)
from kubesched.framework.status import SKIP, SUCCESS, Status, unschedulable
from kubesched.framework.verdict import ALL_PASS, Verdict, reject
from kubesched.queue.events import NODE_ADD, Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations
from kubesched.testing import PluginCheckError, check_plugin, make_node, make_pod, plugin_checks
from kubesched.testing.conformance import ALL_PROMISES

FULL = unschedulable("it is full")


# --- plugins that break one promise each --------------------------------------------------------


class Fickle(NodeScore):
    """Scores as the dice fall."""

    name = "Fickle"

    def score_node(self, pod: PodView, node: NodeWithPods) -> int:
        return random.randrange(100)


class FickleSkip(PreFilter):
    """Lets every second pod pass, without a word about nodes."""

    name = "FickleSkip"

    def __init__(self) -> None:
        self._turns = itertools.count()

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
        return PreFilterResult(SKIP if next(self._turns) % 2 else SUCCESS)


class FickleFilter(FickleSkip, Filter):
    """The same, with a filter."""

    name = "FickleFilter"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        return ALL_PASS


class Comparing(RowScore):
    """Scores by rank among the rows it was asked about."""

    name = "Comparing"
    reads = NODE | REQUESTS

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        cpu = nodes.allocatable(0)
        return (cpu == cpu.max(initial=0)).astype(np.int64)


class LastIsFull(Filter):
    """Rejects the last of the nodes that it is asked about."""

    name = "LastIsFull"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        return reject(np.arange(len(nodes)) == len(nodes) - 1, FULL)


class SecretlyCounts(CachedNodeScore):
    """Says that pods do not matter, and counts them."""

    name = "SecretlyCounts"
    reads = NODE | REQUESTS

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        return min(node.pod_count, 100)


class SecretlyFull(CachedNodeFilter):
    """Says that pods do not matter, and rejects nodes for what is left."""

    name = "SecretlyFull"
    reads = NODE | REQUESTS

    def filter_node(self, pod: SignatureView, node: NodeView) -> str | None:
        return "has pods" if node.pod_count > 1 else None


class SecretlyWeighs(CachedNodeFilter):
    """Says that requests do not matter, and compares them."""

    name = "SecretlyWeighs"
    reads = NODE

    def filter_node(self, pod: SignatureView, node: NodeView) -> str | None:
        return "too small" if pod.requested("cpu") > node.allocatable("cpu") // 8 else None


class LooksBehindSums(RowFilter):
    """Reads the table's sums, and not those that it is given."""

    name = "LooksBehindSums"

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        return reject(nodes.table.pod_count[nodes.rows] > 1, FULL)


class ScoresBehindSums(RowScore):
    """Scores by the table's sums, and not by those that it is given."""

    name = "ScoresBehindSums"

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        return np.minimum(nodes.table.pod_count[nodes.rows], 100)


class NotOnlyVolumes(PreFilter, Filter):
    """Says that it looks at volumes only, and looks at all pods."""

    name = "NotOnlyVolumes"
    only_with_volumes = True

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
        return NOTHING_AGAINST

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        return ALL_PASS


class TwoFilters(RowFilter):
    """Has a `row_filter` that says something else."""

    name = "TwoFilters"

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        return reject(nodes.pod_count > 1, FULL)

    def row_filter(
        self, signature: PodSignature, table: NodeTable
    ) -> Callable[[int], Status | None]:
        return lambda row: FULL if table.pod_count[row] > 2 else None


class TwoScores(RowScore):
    """Has a `row_scorer` that is off by one."""

    name = "TwoScores"

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        return np.minimum(nodes.pod_count, 99)

    def row_scorer(self, signature: PodSignature, table: NodeTable) -> Callable[[int], int]:
        return lambda row: min(int(table.pod_count[row]), 99) + 1


class WrongBounds(Filter):
    """Has `count_bounds` that reject all nodes."""

    name = "WrongBounds"
    bounds_counts = True

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        return ALL_PASS

    def count_bounds(
        self, state: CycleState, pod: PodInfo, nodes: NodeRows
    ) -> Sequence[CountBounds]:
        return [CountBounds(None, np.full(len(nodes), -1), FULL)]


class CountsNodes(Score, Normalize):
    """Scores domains, and normalizes by the sum over all nodes."""

    name = "CountsNodes"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> DomainScores:
        domains = nodes.unschedulable.astype(np.intp)
        return DomainScores(np.array([1, 2]), domains, np.bincount(domains, minlength=2) > 0)

    def normalize(self, scores: Int64Array) -> Int64Array:
        return 100 * scores // max(scores.sum(), 1)


class AboveAverage(CachedNodeScore, Normalize):
    """Promises to look at the highest and the lowest score, and takes the average."""

    name = "AboveAverage"
    reads = NODE | REQUESTS

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        return node.allocatable("cpu")

    @depends_on_min_max
    def normalize(self, scores: Int64Array) -> Int64Array:
        return (scores > scores.mean()) * np.int64(100)


class TooHigh(CachedNodeScore):
    """Gives more than 100."""

    name = "TooHigh"
    reads = NODE | REQUESTS

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        return node.allocatable("cpu")


class ProvenTooHigh(TooHigh):
    """The same, and declares the range proven."""

    name = "ProvenTooHigh"
    proven_range = True


class SaysSkip(RowFilter):
    """Rejects nodes with Skip."""

    name = "SaysSkip"
    reads = NODE | REQUESTS

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        return reject(nodes.unschedulable.copy(), SKIP)


class OneArray(RowScore):
    """Returns the table's own memory."""

    name = "OneArray"
    reads = NODE | REQUESTS

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        return nodes.table.allowed_pods[nodes.rows] if len(nodes) < 3 else nodes.allowed_pods


class Scribbles(NodeScore):
    """Writes to the labels of nodes."""

    name = "Scribbles"

    def score_node(self, pod: PodView, node: NodeWithPods) -> int:
        assert node.object.metadata.labels is not None
        node.object.metadata.labels["seen"] = "yes"
        return 0


class Overcommits(RowFilter):
    """Writes to the columns."""

    name = "Overcommits"

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        nodes.table.allocatable[0] += 1
        return ALL_PASS


class Remembers(CachedNodeScore):
    """Keeps the first score of a node when the node changes."""

    name = "Remembers"
    reads = NODE | REQUESTS

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        return self._known.setdefault(node.name, len(node.taints))


class ForgetsEpoch(RowScore):
    """Depends on the number of nodes, and has no epoch that says so."""

    name = "ForgetsEpoch"
    reads = NODE | REQUESTS

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        return np.full(len(nodes), min(len(nodes.table), 100), dtype=np.int64) // (
            1 + nodes.unschedulable
        )


class NeedsContainers(NodeFilter):
    """Takes for granted that a pod has a container."""

    name = "NeedsContainers"

    def filter_node(self, pod: PodView, node: NodeWithPods) -> str | None:
        return None if pod.containers[0].image != "?" else "no image"


class NeedsCpu(CachedNodeScore):
    """Takes for granted that a node has cpu."""

    name = "NeedsCpu"

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        return 100 // node.allocatable("cpu") and 1


class Hoards(NodeFilter, Reserve):
    """Reserves nodes, and gives none back."""

    name = "Hoards"

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def filter_node(self, pod: PodView, node: NodeWithPods) -> str | None:
        return "taken" if node.name in self.taken else None

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.taken.add(node_name)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give nothing back."""


class TakesReserveForGranted(Hoards):
    """Fails to unreserve what it did not reserve."""

    name = "TakesReserveForGranted"

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.taken.remove(node_name)


class RegistersText(CachedNodeFilter):
    """Registers the names of events."""

    name = "RegistersText"

    def filter_node(self, pod: SignatureView, node: NodeView) -> None:
        return None

    def events_to_register(self) -> Registrations:
        return ["NodeAdd"]  # type: ignore[list-item]


class HintsNothing(RegistersText):
    """Has a hint that answers nothing."""

    name = "HintsNothing"

    def events_to_register(self) -> Registrations:
        return [Registration(NODE_ADD, lambda _pod, _change: None)]  # type: ignore[arg-type, return-value]


class ScreensTooMuch(RegistersText):
    """Has a screen that keeps out pods that its hint says yes to."""

    name = "ScreensTooMuch"

    def events_to_register(self) -> Registrations:
        return [
            Registration(NODE_ADD, lambda _pod, _change: True, screen=lambda _pod, _change: False)
        ]


class HintsFail(RegistersText):
    """Has a hint that takes for granted that there is an old object."""

    name = "HintsFail"

    def events_to_register(self) -> Registrations:
        def has_label(_pod: PodInfo, change: Change[object]) -> bool:
            return bool(change.old.metadata.labels)  # type: ignore[attr-defined]

        event = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return [Registration(event, has_label)]


class TellsOfAnotherReason(CachedNodeFilter):
    name = "TellsOfAnotherReason"
    reads = NODE

    def filter_node(self, pod: SignatureView, node: NodeView) -> str:
        return "never"

    def node_detail(self, pod: PodView, node: NodeWithPods) -> Detail:
        return Detail("because", reason="Never")


class TellsOfOtherNodes(Filter):
    name = "TellsOfOtherNodes"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        return reject(nodes.row_numbers() == 0, unschedulable("it is the first"))

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> list[Detail]:
        return [Detail("it comes later", rows=(1,))]


class FailsToTell(TellsOfAnotherReason):
    name = "FailsToTell"

    def node_detail(self, pod: PodView, node: NodeWithPods) -> Detail:
        return Detail("because", {"node": node})


#: Broken plugin → the check that must catch it, and what it says.
BROKEN: list[tuple[type[Plugin], str, str]] = [
    (Fickle, "deterministic", "scores, asked a second time: said"),
    (FickleFilter, "deterministic", "PreFilter or PreScore, asked a second time"),
    (Comparing, "row_by_row", "of 1 nodes instead of all: said 1, expected 0"),
    (LastIsFull, "row_by_row", "said Unschedulable 'it is full', expected None"),
    (SecretlyCounts, "reads_pods", "PODS is not in reads, yet with one more pod on the node"),
    (SecretlyFull, "reads_pods", "said Unschedulable 'has pods', expected None"),
    (TellsOfAnotherReason, "details", "'because' is of reason 'Never', which it did not give"),
    (TellsOfOtherNodes, "details", "is of a row that was not asked about"),
    (FailsToTell, "details", "plugin FailsToTell failed at "),
    (SecretlyWeighs, "reads_requests", "said None, expected Unschedulable 'too small'"),
    (LooksBehindSums, "supposed_pods", "said None, expected Unschedulable 'it is full'"),
    (ScoresBehindSums, "supposed_pods", "with the sums of one more pod, instead of that pod"),
    (NotOnlyVolumes, "only_with_volumes", "said Success, expected Skip"),
    (TwoFilters, "row_filter", "row_filter instead of filter: said None, expected"),
    (TwoScores, "row_scorer", "row_scorer instead of score: said "),
    (WrongBounds, "count_bounds", "count_bounds instead of filter: said "),
    (CountsNodes, "domain_scores", "normalized by domain instead of by node: said"),
    (AboveAverage, "depends_on_min_max", "normalize makes "),
    (TooHigh, "score_range", "returns an invalid score"),
    (ProvenTooHigh, "score_range", ", expected 0 to 100"),
    (SaysSkip, "statuses", "Filter said Skip, expected a rejection or an error"),
    (OneArray, "fresh_arrays", "two answers share their memory"),
    (Scribbles, "inputs_unchanged", "it changes the Node "),
    (Overcommits, "inputs_unchanged", "it writes to the node table: allocatable cpu"),
    (Remembers, "incremental", "having lived through all events: said"),
    (ForgetsEpoch, "incremental", "having lived through all events: said"),
    (SecretlyFull, "decisions", "that can take the pod, expected "),
    (NeedsContainers, "bad_input", "IndexError: tuple index out of range"),
    (NeedsCpu, "bad_input", "ZeroDivisionError"),
    (Hoards, "reserve", "after reserve and unreserve, about"),
    (TakesReserveForGranted, "reserve", "unreserve raised KeyError"),
    (RegistersText, "registrations", "returned 'NodeAdd', expected Registrations"),
    (HintsNothing, "hints", "its hint for NodeAdd said None, expected True or False"),
    (ScreensTooMuch, "hints", "its screen for NodeAdd said no, and its hint said yes"),
    (HintsFail, "hints", "its hint for NodeAdd raised AttributeError"),
]


def _id(value: object) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


@pytest.mark.parametrize(("plugin", "check", "text"), BROKEN, ids=_id)
def test_a_broken_promise_is_caught_by_its_check(
    plugin: type[Plugin], check: str, text: str
) -> None:
    checks = dict(plugin_checks(plugin))

    with pytest.raises(PluginCheckError) as caught:
        checks[check]()

    first, *_, last = str(caught.value).splitlines()
    assert first.startswith(f"{plugin.name} breaks {check}: ")
    assert text in first
    assert last.startswith("  to repeat it: seed=0, example ")


def test_every_check_can_fail() -> None:
    assert {check for _, check, _ in BROKEN} == {each.name for each in ALL_PROMISES}


def test_the_documentation_lists_every_check_with_what_is_promised() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "plugins.md").read_text()

    for each in ALL_PROMISES:
        assert f"| `{each.name}` | {(each.check.__doc__ or '').splitlines()[0]} |" in text


# --- how it is used -----------------------------------------------------------------------------


class Cheapest(HighestWins, CachedNodeScore):
    """Scores by a label, and fails where that is no number."""

    name = "Cheapest"
    reads = NODE

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        return int(node.labels.get("price", "0"))


def test_a_plugin_that_keeps_its_promises_passes() -> None:
    check_plugin(Cheapest, nodes=[make_node("n", labels={"price": "3"})], pods=[make_pod("p")])


def test_nodes_that_matter_to_the_plugin_are_among_the_random_ones() -> None:
    with pytest.raises(PluginCheckError, match=r"Cheapest breaks deterministic: .*invalid literal"):
        check_plugin(Cheapest, nodes=[make_node("n", labels={"price": "cheap"})])


def test_pods_that_matter_to_the_plugin_are_asked_about() -> None:
    pods = [make_pod("big", cpu=7)]
    asked: set[int] = set()

    class Listens(CachedNodeScore):
        name = "Listens"

        def score_node(self, pod: SignatureView, node: NodeView) -> int:
            asked.add(pod.requested("cpu"))
            return 0

    check_plugin(Listens, pods=pods, examples=1)

    assert 7000 in asked


def test_only_promises_that_the_plugin_makes_are_checked() -> None:
    names = [name for name, _ in plugin_checks(Cheapest)]

    assert {"reads_pods", "reads_requests", "depends_on_min_max", "row_scorer"} <= set(names)
    assert not {"row_filter", "domain_scores", "reserve", "supposed_pods"} & set(names)


def test_the_same_seed_finds_the_same() -> None:
    def found(seed: int) -> str:
        with pytest.raises(PluginCheckError) as caught:
            check_plugin(Comparing, seed=seed)
        return str(caught.value)

    assert found(7) == found(7)
    assert "seed=7" in found(7)
    assert found(7) != found(8)


def test_arguments_are_given_to_the_plugin() -> None:
    from examples.pack_gpus.plugin import PackGpus

    check_plugin(PackGpus, args={"resource": "example.com/fpga"}, examples=1)
