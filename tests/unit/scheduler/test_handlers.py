"""What informers report is applied to the state first, and then wakes whom it may help."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Affinity, Namespace, Node, Pod, PodAffinityTerm
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from kubesched.api.workloads import PlainSelectorSpec, Service
from kubesched.clock import VirtualClock
from kubesched.cluster.affinity_terms import compile_terms
from kubesched.cluster.cluster import Cluster
from kubesched.errors import ObjectError
from kubesched.framework.status import Status
from kubesched.framework.waiting import WaitingPod, WaitingPods
from kubesched.queue.backoff import Backoff
from kubesched.queue.events import Resource
from kubesched.queue.hints import Change
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.handlers import NodeHandler, PodHandler, state_handlers
from kubesched.scheduler.nominations import Nominations
from kubesched.scheduler.races import RaceDetector
from kubesched.scheduler.unreadable import UnusableObjects
from tests.support.objects import must, node, on_node, pod
from tests.support.queueing import sort_key

GOING = "2026-01-01T00:00:00Z"


class Bench:
    """Handlers, and a queue in which every pod was turned away by a plugin that hears all."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.waiting = WaitingPods()
        self.unreadable: list[str] = []
        self.moved: list[tuple[str, str]] = []
        #: the number of nodes and pods when an event reached the queue
        self.seen: list[tuple[int, int]] = []
        self.queue = SchedulingQueue(
            clock=VirtualClock(1000.0),
            sort_key=sort_key,
            gate=lambda _: "",
            registrations={names.DEFAULT_SCHEDULER: {"Anything": None, "Deaf": []}},
            backoff=Backoff(),
            max_unschedulable_s=300.0,
            on_ready=lambda: None,
        )
        self._move = self.queue.move
        anything: Any = self.queue
        anything.move = self._note
        nominations = Nominations(self.cluster, self.queue)
        #: kind → its handler
        self.on = state_handlers(self.cluster, self.queue, nominations)
        self.unusable = UnusableObjects()
        self.races = RaceDetector(self.cluster, VirtualClock(1000.0))
        self.nodes = NodeHandler(self.cluster, self.queue, nominations, self.unusable)
        self.pods = PodHandler(
            self.cluster,
            self.queue,
            nominations=nominations,
            waiting=self.waiting,
            is_ours=lambda each: each.spec.scheduler_name == names.DEFAULT_SCHEDULER,
            on_unreadable=lambda each, why: self.unreadable.append(each.metadata.name),
            unusable=self.unusable,
            races=self.races,
            resizes=True,
        )

    def named(self, kind: str) -> list[str]:
        """Name the objects that are listed as unusable."""
        return [name for _, name in self.unusable.of(kind)]

    def _note(self, change: Change[Any], **options: Any) -> None:
        event = change.event
        self.moved.append((Resource(event.resource).name, event.action.name or str(event.action)))
        self.seen.append((len(self.cluster.table), self.cluster.pod_count))
        self._move(change, **options)

    def parked(self, name: str, **more: Any) -> None:
        """Have a pod in the queue that was tried in vain."""
        self.queue.add(self.cluster.compiler.pending(pod(name, **more)))
        popped = self.queue.pop()
        assert popped is not None
        popped.unschedulable_plugins = {"Anything"}
        self.queue.requeue(popped)
        assert self.queue.unschedulable_count >= 1

    def assume(self, each: Pod, node_name: str) -> None:
        self.cluster.assume(self.cluster.compiler.pending(each), node_name)


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- nodes ------------------------------------------------------------------------------------


def test_a_node_is_there_before_anybody_is_woken(bench: Bench) -> None:
    bench.parked("p")
    bench.nodes.on_add(node("n1"), False)
    assert (bench.moved, bench.seen) == ([("NODE", "ADD")], [(1, 0)])
    assert bench.queue.unschedulable_count == 0


def test_an_update_is_the_events_it_amounts_to(bench: Bench) -> None:
    bench.nodes.on_add(node("n1"), True)
    bench.moved.clear()
    bench.nodes.on_update(node("n1"), node("n1", cpu="8", labels={"a": "b"}))
    assert sorted(bench.moved) == [
        ("NODE", "UPDATE_NODE_ALLOCATABLE"),
        ("NODE", "UPDATE_NODE_LABEL"),
    ]


def test_a_heartbeat_changes_nothing(bench: Bench) -> None:
    first, beat = node("n1"), node("n1")
    bench.nodes.on_add(first, True)
    bench.nodes.on_update(first, beat)
    assert bench.cluster.table.node_at(0) is first
    assert bench.moved == [("NODE", "ADD")]


@pytest.mark.parametrize(
    "new",
    [node("n1", unschedulable=True), node("n1", images={"web:1": 5})],
    ids=["cordon", "images"],
)
def test_what_helps_nobody_is_taken_over_all_the_same(bench: Bench, new: Node) -> None:
    bench.nodes.on_add(node("n1"), True)
    bench.nodes.on_update(node("n1"), new)
    assert bench.cluster.table.node_at(0) is new
    assert len(bench.moved) == 1


def test_a_node_goes(bench: Bench) -> None:
    bench.nodes.on_add(node("n1"), True)
    bench.nodes.on_delete(node("n1"))
    assert len(bench.cluster.table) == 0
    assert bench.moved[-1] == ("NODE", "DELETE")


def test_a_node_that_cannot_be_read_stays_as_it_was(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.nodes.on_add(node("n1", cpu="2"), True)
    bench.nodes.on_update(node("n1", cpu="2"), node("n1", cpu="plenty"))
    bench.nodes.on_add(node("n2", cpu="plenty"), False)
    assert list(bench.cluster.table.names()) == ["n1"]
    assert bench.moved == [("NODE", "ADD")]
    assert "node left as it was known before" in caplog.text
    bench.cluster.validate()


def test_a_node_that_cannot_be_read_is_listed_until_it_can_be_or_is_gone(bench: Bench) -> None:
    bench.nodes.on_add(node("n1", cpu="plenty"), True)
    bench.nodes.on_add(node("n2", cpu="plenty"), True)
    assert bench.named("Node") == ["n1", "n2"]
    bench.nodes.on_update(node("n1", cpu="plenty"), node("n1", cpu="2"))
    bench.nodes.on_delete(node("n2", cpu="plenty"))
    assert bench.named("Node") == []


# --- pods -------------------------------------------------------------------------------------


def test_pods_to_be_scheduled_are_queued_if_they_are_ours(bench: Bench) -> None:
    stranger = pod("stranger")
    stranger = replace(stranger, spec=replace(stranger.spec, scheduler_name="other"))
    bench.pods.on_add(pod("ours", nominated="n1"), False)
    bench.pods.on_add(stranger, False)
    assert [each.info.uid for each in bench.queue.pods()] == ["ours"]
    assert bench.cluster.nominator.node_of("ours") == "n1"


def test_a_pod_on_a_node_counts_whoever_placed_it(bench: Bench) -> None:
    bench.parked("p")
    stranger = pod("stranger", node="n1")
    bench.pods.on_add(replace(stranger, spec=replace(stranger.spec, scheduler_name="x")), False)
    assert bench.cluster.node_of("stranger") == "n1"
    assert (bench.moved, bench.seen) == ([("ASSIGNED_POD", "ADD")], [(0, 1)])


def test_a_pod_that_is_bound_leaves_the_queue_and_loses_its_nomination(bench: Bench) -> None:
    bench.pods.on_add(pod("p", nominated="n1"), False)
    bench.pods.on_update(pod("p", nominated="n1"), on_node(pod("p"), "n2"))
    assert len(bench.queue) == 0
    assert bench.cluster.node_of("p") == "n2"
    assert len(bench.cluster.nominator) == 0


def test_a_bound_pod_changes_and_goes(bench: Bench) -> None:
    bench.pods.on_add(pod("p", node="n1", cpu="2"), False)
    bench.moved.clear()
    bench.pods.on_update(pod("p", node="n1"), pod("p", node="n1", labels={"a": "b"}))
    assert bench.moved == [("ASSIGNED_POD", "UPDATE_POD_LABEL")]
    bench.pods.on_delete(pod("p", node="n1"))
    assert bench.cluster.pod_count == 0
    assert bench.moved[-1] == ("ASSIGNED_POD", "DELETE")
    assert bench.seen[-1] == (0, 0)


def test_a_pending_pod_changes_and_goes(bench: Bench) -> None:
    bench.pods.on_add(pod("p"), False)
    bench.pods.on_update(pod("p"), pod("p", priority=7))
    (queued,) = bench.queue.pods()
    assert queued.info.priority == 7
    bench.pods.on_delete(pod("p", priority=7))
    assert len(bench.queue) == 0
    assert bench.moved == []


def test_a_nomination_follows_the_pod_s_status(bench: Bench) -> None:
    versions = [pod("p"), pod("p", nominated="n1"), pod("p", nominated="n2"), pod("p")]
    bench.pods.on_add(versions[0], False)
    found = []
    for old, new in pairwise(versions):
        bench.pods.on_update(old, new)
        found.append(bench.cluster.nominator.node_of("p"))
    assert found == ["n1", "n2", None]


@pytest.mark.parametrize(("rejector", "woken"), [("Anything", True), ("Deaf", False)])
def test_a_pod_whose_nomination_is_cleared_is_tried_if_its_rejector_hears_of_deletions(
    bench: Bench, rejector: str, woken: bool
) -> None:
    nominated = pod("p", nominated="n1")
    bench.pods.on_add(nominated, False)
    popped = bench.queue.pop()
    assert popped is not None
    popped.unschedulable_plugins = {rejector}
    bench.queue.requeue(popped)
    bench.pods.on_update(nominated, pod("p"))
    assert (bench.queue.unschedulable_count == 0) is woken


@pytest.mark.parametrize("by", ["update", "deletion"])
def test_room_kept_for_a_nominated_pod_is_free_for_the_less_important(
    bench: Bench, by: str
) -> None:
    nominated = pod("nominated", priority=5, nominated="n1")
    bench.pods.on_add(nominated, False)
    bench.queue.pop()
    for name, priority in (("lower", 4), ("same", 5), ("higher", 6)):
        bench.parked(name, priority=priority)
    if by == "update":
        bench.pods.on_update(nominated, pod("nominated", priority=5))
    else:
        bench.pods.on_delete(nominated)
    assert bench.moved == [("ASSIGNED_POD", "DELETE")]
    assert bench.queue.unschedulable_count == 1


def test_updates_of_an_assumed_pod_do_not_put_it_back_into_the_queue(bench: Bench) -> None:
    bench.assume(pod("p"), "n1")
    bench.pods.on_update(pod("p"), pod("p", labels={"a": "b"}))
    assert len(bench.queue) == 0
    assert bench.cluster.is_assumed("p")


@pytest.mark.parametrize("by", ["going", "gone"])
def test_an_assumed_pod_that_is_deleted_gives_its_place_back(bench: Bench, by: str) -> None:
    bench.assume(pod("p"), "n1")
    bench.parked("other")
    going = replace(pod("p"), metadata=replace(pod("p").metadata, deletion_timestamp=GOING))
    if by == "going":
        bench.pods.on_update(pod("p"), going)
    else:
        bench.pods.on_delete(pod("p"))
    assert not bench.cluster.is_assumed("p")
    assert bench.moved == [("ASSIGNED_POD", "DELETE")]
    assert bench.queue.unschedulable_count == 0


def test_one_that_waits_for_permission_is_told(bench: Bench) -> None:
    told: list[Status] = []
    bench.assume(pod("p"), "n1")
    info = bench.cluster.pod("p")
    assert info is not None
    bench.waiting.add(WaitingPod(info, {"Gatekeeper"}, told.append))
    bench.pods.on_delete(pod("p"))
    assert [each.message for each in told] == ["removed"]
    assert bench.cluster.is_assumed("p"), "whoever waits for it gives its place back"


def test_pods_that_cannot_be_read(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    wrong = pod("p", cpu="plenty")
    bench.pods.on_add(wrong, False)
    bench.pods.on_add(pod("q"), False)
    bench.pods.on_update(pod("q"), pod("q", cpu="plenty"))
    bench.pods.on_update(pod("q", cpu="plenty"), pod("q", cpu="plenty", labels={"a": "b"}))
    assert bench.unreadable == ["p", "q"], "told once for each version of the spec"
    bench.pods.on_add(pod("r", node="n1", cpu="1"), False)
    bench.pods.on_update(pod("r", node="n1", cpu="1"), pod("r", node="n1", cpu="plenty"))
    assert [each.info.uid for each in bench.queue.pods()] == ["q"]
    assert bench.cluster.pod_count == 1
    assert caplog.text.count("pod left as it was known before") == 1
    with pytest.raises(ObjectError):
        bench.cluster.compiler.pending(wrong)
    assert bench.named("Pod") == ["p", "q", "r"]


def test_pods_that_can_be_read_again_or_are_gone_are_not_listed(bench: Bench) -> None:
    wrong: Any = {"cpu": "plenty"}
    bench.pods.on_add(pod("added", **wrong), False)
    bench.pods.on_add(pod("gone", **wrong), False)
    bench.pods.on_add(pod("bound", node="n1", **wrong), False)
    assert bench.named("Pod") == ["added", "gone", "bound"]
    bench.pods.on_update(pod("added", **wrong), pod("added"))
    bench.pods.on_delete(pod("gone", **wrong))
    bench.pods.on_update(pod("bound", node="n1", **wrong), pod("bound", node="n1"))
    assert bench.named("Pod") == []


# --- what decides which pods belong together --------------------------------------------------


def test_services_come_change_and_go(bench: Bench) -> None:
    handler = bench.on["Service"]

    def service(app: str) -> Service:
        meta = ObjectMeta(name="s", namespace="default")
        return Service(metadata=meta, spec=PlainSelectorSpec(selector={"app": app}))

    def is_known() -> bool:
        asking = bench.cluster.compiler.pending(pod(labels={"app": "web"}))
        found = bench.cluster.workloads.selector_of(asking.labels, ())
        return bool(found.requirements)

    handler.on_add(service("web"), True)
    assert is_known()
    handler.on_update(service("web"), service("db"))
    assert not is_known()
    handler.on_update(service("db"), service("web"))
    handler.on_delete(service("web"))
    assert not is_known()


def test_budgets_come_change_and_go(bench: Bench) -> None:
    handler = bench.on["PodDisruptionBudget"]

    def budget(app: str) -> PodDisruptionBudget:
        spec = PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": app}))
        return PodDisruptionBudget(metadata=ObjectMeta(name="b", namespace="default"), spec=spec)

    covered = [bench.cluster.compiler.placed(pod(labels={"app": "web"}))]
    handler.on_add(budget("web"), True)
    assert bench.cluster.budgets.split(covered) == (covered, [])
    handler.on_update(budget("web"), budget("db"))
    assert bench.cluster.budgets.split(covered) == ([], covered)
    handler.on_update(budget("db"), budget("web"))
    handler.on_delete(budget("web"))
    assert bench.cluster.budgets.split(covered) == ([], covered)


def test_namespaces_come_change_and_go(bench: Bench) -> None:
    handler = bench.on["Namespace"]
    counters = bench.cluster.table.term_counters

    def of_team(team: str) -> set[str]:
        selector = LabelSelector(match_labels={"team": team})
        term = PodAffinityTerm(topology_key="zone", namespace_selector=selector)
        affinity = Affinity(pod_affinity=must(term))
        (compiled,) = compile_terms(affinity, "default").required
        return set(counters.namespaces_of(compiled) or ())

    def namespace(**labels: str) -> Namespace:
        return Namespace(metadata=ObjectMeta(name="red", labels=labels))

    handler.on_add(namespace(team="a"), True)
    assert of_team("a") == {"red"}
    handler.on_update(namespace(team="a"), namespace(team="b"))
    assert (of_team("a"), of_team("b")) == (set(), {"red"})
    handler.on_delete(namespace())
    assert of_team("b") == set()


# --- pods that other processes bind -------------------------------------------------------------


def test_a_pod_that_others_bind_beside_ours_is_a_race(bench: Bench) -> None:
    bench.nodes.on_add(node("n1", cpu="4"), True)
    bench.assume(pod("ours", cpu="3"), "n1")
    bench.pods.on_add(pod("before", node="n1", cpu="2"), True)
    assert bench.races.count == 0, "the first list is what was there before"
    bench.pods.on_delete(pod("before", node="n1", cpu="2"))

    bench.pods.on_add(pod("theirs", node="n1", cpu="2"), False)
    assert bench.races.count == 1
    bench.pods.on_delete(pod("theirs", node="n1", cpu="2"))

    bench.pods.on_update(pod("later", cpu="2"), pod("later", node="n1", cpu="2"))
    assert bench.races.count == 2
    bench.pods.on_update(pod("ours", cpu="3"), pod("ours", node="n1", cpu="3"))
    assert bench.races.count == 2


def test_a_pod_of_others_that_cannot_be_read_is_no_race(bench: Bench) -> None:
    bench.nodes.on_add(node("n1", cpu="4"), True)
    bench.assume(pod("ours", cpu="4"), "n1")
    bench.pods.on_add(pod("theirs", node="n1", cpu="plenty"), False)
    assert (bench.races.count, bench.named("Pod")) == (0, ["theirs"])
