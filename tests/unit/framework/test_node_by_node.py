"""Plugins that look at one node at a time: what they see, and when they are asked."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from kubesched.api.core import Toleration
from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows, SupposedRows
from kubesched.cluster.pod_signature import PodSignature
from kubesched.cluster.resources import CPU
from kubesched.cluster.vocabulary import Lookup
from kubesched.errors import PluginError
from kubesched.framework.node_by_node import (
    CachedNodeFilter,
    CachedNodeScore,
    HighestWins,
    LowestWins,
    NodeAnswer,
    NodeFilter,
    NodeScore,
    NodeView,
    NodeWithPods,
    PodView,
    SignatureView,
)
from kubesched.framework.plugin import NODE, REQUESTS, Normalize, Plugin, RowFilter, RowScore
from kubesched.framework.status import SUCCESS, Status, unresolvable, unschedulable
from kubesched.framework.verdict import Verdict, reject
from kubesched.scheduler.cycle import SchedulingCycle
from tests.support.objects import GI, node, on_node, pod
from tests.support.scheduling import Lab


class Asked:
    """Which nodes a plugin was asked about, in order."""

    def __init__(self) -> None:
        self.nodes: list[str] = []

    def take(self) -> list[str]:
        taken, self.nodes = self.nodes, []
        return sorted(taken)


ASKED = Asked()


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    ASKED.take()


class OnlySsd(CachedNodeFilter):
    name = "OnlySsd"
    reads = NODE | REQUESTS

    def filter_node(self, pod: SignatureView, node: NodeView) -> NodeAnswer:
        ASKED.nodes.append(node.name)
        return None if node.labels.get("disk") == "ssd" else "node(s) had no ssd"


class LeavesRoom(CachedNodeFilter):
    """Wants a CPU to stay free."""

    name = "LeavesRoom"

    def filter_node(self, pod: SignatureView, node: NodeView) -> NodeAnswer:
        ASKED.nodes.append(node.name)
        left = node.free("cpu") - pod.requested("cpu")
        return None if left >= 1000 else "node(s) would have no spare cpu"


class SameTeam(NodeFilter):
    """Keeps pods of different teams apart."""

    name = "SameTeam"

    def filter_node(self, pod: PodView, node: NodeWithPods) -> NodeAnswer:
        ASKED.nodes.append(node.name)
        teams = {(each.metadata.labels or {}).get("team") for each in node.pods}
        return None if teams <= {pod.labels.get("team")} else "node(s) belonged to another team"


class ByPrice(LowestWins, CachedNodeScore):
    name = "ByPrice"
    reads = NODE | REQUESTS

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        ASKED.nodes.append(node.name)
        return int(node.labels["price"])


class ByFree(CachedNodeScore):
    name = "ByFree"

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        ASKED.nodes.append(node.name)
        return 100 * node.free("cpu") // node.allocatable("cpu")


class ByPodCount(HighestWins, NodeScore):
    name = "ByPodCount"

    def score_node(self, pod: PodView, node: NodeWithPods) -> int:
        ASKED.nodes.append(node.name)
        return len(node.pods)


def lab_of(*objects: object, plugin: type[Plugin]) -> Lab:
    return Lab(*objects, plugins=[plugin], only=["NodeResourcesFit"])  # type: ignore[arg-type]


# --- filters ----------------------------------------------------------------------------------


def test_a_text_is_why_a_node_is_turned_away() -> None:
    lab = lab_of(node("a", labels={"disk": "ssd"}), node("b"), plugin=OnlySsd)

    assert lab.feasible(pod()) == ["a"]
    assert lab_of(node("b"), node("c"), plugin=OnlySsd).message(pod()) == (
        "0/2 nodes are available: 2 node(s) had no ssd."
    )


@pytest.mark.parametrize(
    ("answer", "feasible"),
    [(None, True), (SUCCESS, True), (unresolvable("never"), False), ("not now", False)],
)
def test_an_answer_may_be_a_status(answer: NodeAnswer, feasible: bool) -> None:
    class Says(NodeFilter):
        name = "Says"

        def filter_node(self, pod: PodView, node: NodeWithPods) -> NodeAnswer:
            return answer

    lab = lab_of(node("a"), plugin=Says)

    assert lab.feasible(pod()) == (["a"] if feasible else [])
    if isinstance(answer, Status) and not feasible:
        assert lab.diagnosis(pod()).status_of(0).code is answer.code


def test_any_other_answer_is_refused() -> None:
    class Says(NodeFilter):
        name = "Says"

        def filter_node(self, pod: PodView, node: NodeWithPods) -> NodeAnswer:
            return False  # type: ignore[return-value]  # the mistake

    with pytest.raises(PluginError, match="filter_node of Says returned bool: return None, the"):
        lab_of(node("a"), plugin=Says).feasible(pod())


def test_what_is_kept_is_asked_again_only_where_the_node_changed() -> None:
    lab = lab_of(*(node(name) for name in "abcdef"), plugin=OnlySsd)
    lab.feasible(pod("p1"))
    assert ASKED.take() == list("abcdef")

    lab.feasible(pod("p2"))
    assert ASKED.take() == []

    lab.cluster.put_node(node("b", labels={"disk": "ssd"}))
    assert lab.feasible(pod("p3")) == ["b"]
    assert set(ASKED.take()) == {"b"}


def test_a_pod_that_came_matters_only_to_those_who_read_pods() -> None:
    for plugin, asked_again in ((OnlySsd, set()), (LeavesRoom, {"b"})):
        lab = lab_of(*(node(name, labels={"disk": "ssd"}) for name in "abcdef"), plugin=plugin)
        lab.feasible(pod("p1"))
        ASKED.take()

        lab.cluster.put_pod(pod("p2", cpu="4", node="b"))
        lab.feasible(pod("p1"))

        assert set(ASKED.take()) == asked_again


def test_what_is_kept_follows_pods_and_rows() -> None:
    lab = lab_of(node("a", cpu="2"), node("b", cpu="2"), plugin=LeavesRoom)
    assert lab.feasible(pod(cpu="1")) == ["a", "b"]

    lab.cluster.put_pod(pod("other", cpu="1", node="a"))
    assert lab.feasible(pod(cpu="1")) == ["b"]

    lab.cluster.remove_node("b")
    assert lab.feasible(pod(cpu="1")) == []

    lab.cluster.put_node(node("c", cpu="8"))
    assert lab.feasible(pod(cpu="1")) == ["c"]


def test_what_is_not_kept_is_asked_for_every_node_in_every_cycle() -> None:
    lab = lab_of(node("a"), node("b"), plugin=SameTeam)
    lab.cluster.put_pod(pod("other", node="a", labels={"team": "red"}))

    assert lab.feasible(pod(labels={"team": "red"})) == ["a", "b"]
    assert ASKED.take() == ["a", "b"]
    assert lab.feasible(pod(labels={"team": "blue"})) == ["b"]
    assert ASKED.take() == ["a", "b"]


def test_rows_that_no_node_has_are_not_asked_about() -> None:
    lab = lab_of(node("a"), node("b"), plugin=SameTeam)
    lab.cluster.remove_node("a")

    assert lab.feasible(pod()) == ["b"]
    assert ASKED.take() == ["b"]


def test_a_node_with_other_pods_supposed_on_it_shows_their_sums() -> None:
    lab = lab_of(node("a", cpu="4"), node("b", cpu="4"), plugin=LeavesRoom)
    table, signature = lab.cluster.table, lab.pending(pod(cpu="1")).signature
    requested = np.zeros((len(table.resources), 1), dtype=np.int64)
    requested[0, 0] = 3000
    rows = np.array([table.row_of("b")], dtype=np.intp)
    supposed = SupposedRows(table, rows, requested=requested, pod_count=np.array([7]))

    verdict = lab.plugin("LeavesRoom").filter(signature, supposed)

    status = verdict.status_of(0)
    assert status is not None
    assert status.message == "node(s) would have no spare cpu"


def test_room_that_is_promised_to_others_counts() -> None:
    lab = lab_of(node("a", cpu="4"), plugin=LeavesRoom)
    promised = lab.pending(pod("promised", cpu="2", priority=10))
    lab.cluster.nominator.nominate(promised, "a")

    assert lab.feasible(pod(cpu="1")) == ["a"]
    assert lab.feasible(pod(cpu="2")) == []


# --- scores -----------------------------------------------------------------------------------


def test_the_lowest_wins() -> None:
    prices = {"a": "10", "b": "30", "c": "20"}
    lab = lab_of(*(node(n, labels={"price": p}) for n, p in prices.items()), plugin=ByPrice)

    assert lab.scores("ByPrice", pod()) == {"a": 100, "b": 0, "c": 50}


def test_the_highest_wins() -> None:
    lab = lab_of(node("a"), node("b"), node("c"), plugin=ByPodCount)
    for name, on in (("x", "b"), ("y", "b"), ("z", "c")):
        lab.cluster.put_pod(pod(name, node=on))

    assert lab.scores("ByPodCount", pod()) == {"a": 0, "b": 100, "c": 50}


def test_a_kept_score_is_asked_again_only_where_pods_changed() -> None:
    lab = lab_of(*(node(name) for name in "abcdef"), plugin=ByFree)
    assert set(lab.scores("ByFree", pod()).values()) == {100}
    ASKED.take()

    lab.cluster.put_pod(pod("other", cpu="1", node="b"))
    scores = lab.scores("ByFree", pod())

    assert scores["b"] == 75
    assert set(ASKED.take()) == {"b"}


@pytest.mark.parametrize("wrong", [1.5, "1", None, 1 << 63])
def test_a_score_that_is_no_integer_is_refused(wrong: object) -> None:
    class Says(NodeScore):
        name = "Says"

        def score_node(self, pod: PodView, node: NodeWithPods) -> int:
            return wrong  # type: ignore[return-value]  # the mistake

    with pytest.raises(PluginError, match=r"score_node of Says returned .*: return an int"):
        lab_of(node("a"), node("b"), plugin=Says).totals(pod())


@pytest.mark.parametrize("kind", [HighestWins, LowestWins])
@pytest.mark.parametrize(
    "scores", [[], [5], [5, 5], [-3, 9], [-(1 << 62), 1 << 62], [(1 << 63) - 1, -(1 << 63), 0]]
)
def test_scaled_scores_are_in_range_whatever_they_were(
    kind: type[Normalize], scores: list[int]
) -> None:
    raw: Int64Array = np.array(scores, dtype=np.int64)

    scaled = kind().normalize(raw)

    assert scaled is not None
    assert len(scaled) == len(raw)
    assert ((scaled >= 0) & (scaled <= 100)).all()
    if len(raw):
        best = raw.argmax() if kind is HighestWins else raw.argmin()
        assert scaled[best] == 100
        assert (scaled == 100).all() or scaled.min() == 0


# --- views ------------------------------------------------------------------------------------


def test_a_plugin_sees_the_pod_and_the_node() -> None:
    seen: dict[str, object] = {}

    class Looks(NodeFilter):
        name = "Looks"

        def filter_node(self, pod: PodView, node: NodeWithPods) -> NodeAnswer:
            seen.update(
                name=(pod.namespace, pod.name),
                labels=pod.labels,
                priority=pod.priority,
                cpu=pod.requested("cpu"),
                nothing=pod.requested("example.com/none"),
                selector=pod.node_selector,
                tolerates=[pod.tolerates(each) for each in node.taints],
                zone=node.zone,
                conditions=node.conditions,
                annotations=node.annotations,
                memory=(node.allocatable("memory"), node.requested("memory"), node.free("memory")),
                unknown=node.allocatable("example.com/none"),
                pods=[each.metadata.name for each in node.pods],
                pod_count=node.pod_count,
            )
            return None

    lab = lab_of(
        node(
            "a",
            memory="4Gi",
            zone="z1",
            taints=["k=v:PreferNoSchedule", "other:PreferNoSchedule"],
            conditions={"Ready": "True"},
            annotations={"note": "x"},
        ),
        pod("there", memory="1Gi", node="a"),
        plugin=Looks,
    )
    lab.feasible(
        pod(
            "p1",
            cpu="500m",
            labels={"app": "web"},
            priority=7,
            node_selector={"x": "y"},
            tolerations=[Toleration(key="k", operator="Exists")],
        )
    )

    assert seen == {
        "name": ("default", "p1"),
        "labels": {"app": "web"},
        "priority": 7,
        "cpu": 500,
        "nothing": 0,
        "selector": {"x": "y"},
        "tolerates": [True, False],
        "zone": "z1",
        "conditions": {"Ready": "True"},
        "annotations": {"note": "x"},
        "memory": (4 * GI, GI, 3 * GI),
        "unknown": 0,
        "pods": ["there"],
        "pod_count": 1,
    }


# --- all forms say the same -------------------------------------------------------------------


def _share(requested: int, allocatable: int, price: int) -> int:
    return (100 * requested // allocatable + price) // 2


class AskedAnew(NodeFilter, NodeScore):
    """Fills nodes up, but not quite."""

    name = "Fill"

    def filter_node(self, pod: PodView, node: NodeWithPods) -> NodeAnswer:
        return "full" if node.free("cpu") - pod.requested("cpu") < 500 else None

    def score_node(self, pod: PodView, node: NodeWithPods) -> int:
        price = int(node.labels.get("price", "0"))
        return _share(node.requested("cpu"), node.allocatable("cpu"), price)


class AnswersKept(CachedNodeFilter, CachedNodeScore):
    name = "Fill"

    def filter_node(self, pod: SignatureView, node: NodeView) -> NodeAnswer:
        return "full" if node.free("cpu") - pod.requested("cpu") < 500 else None

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        price = int(node.labels.get("price", "0"))
        return _share(node.requested("cpu"), node.allocatable("cpu"), price)


class Vectorised(RowFilter, RowScore):
    name = "Fill"

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        left = nodes.allocatable(CPU) - nodes.requested(CPU) - signature.requests.amounts["cpu"]
        return reject(left < 500, unschedulable("full"))

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        column = nodes.table.label_column("price")
        price = Lookup(column, lambda value: int(value or "0"), np.int64)
        share = 100 * nodes.requested(CPU) // np.maximum(nodes.allocatable(CPU), 1)
        return (share + price(nodes.rows)) // 2


@pytest.mark.parametrize("seed", range(5))
def test_whichever_form_a_plugin_has_the_decisions_are_the_same(seed: int) -> None:
    rng = random.Random(seed)
    labs = [Lab(plugins=[form]) for form in (AskedAnew, AnswersKept, Vectorised)]
    cycles = [SchedulingCycle(lab.cluster, seed=seed) for lab in labs]
    placed: list[str] = []
    outcomes: Counter[bool] = Counter()
    for number in range(150):
        what = rng.choice(["node", "pod", "pod", "pod", "gone", "cordon"])
        if what in {"node", "cordon"} or number < 4:
            name, price = f"n{rng.randrange(12)}", str(rng.randrange(100))
            made = node(name, cpu="4", labels={"price": price}, unschedulable=what == "cordon")
            for lab in labs:
                lab.cluster.put_node(made)
        elif what == "gone" and placed:
            uid = placed.pop(rng.randrange(len(placed)))
            for lab in labs:
                lab.cluster.remove_pod(uid)
        elif what == "pod":
            new = pod(f"p{number}", cpu=rng.choice(["500m", "1", "2"]))
            found = []
            for lab, cycle in zip(labs, cycles, strict=True):
                decision = cycle.schedule(lab.framework, lab.pending(new))
                found.append((decision.node_name, decision.status.message))
                if decision.node_name:
                    lab.cluster.put_pod(on_node(new, decision.node_name))
            assert found == [found[0]] * 3, f"step {number}"
            outcomes[bool(found[0][0])] += 1
            if found[0][0]:
                placed.append(f"p{number}")
    assert min(outcomes[True], outcomes[False]) > 2
