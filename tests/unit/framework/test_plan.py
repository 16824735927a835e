"""Plans: what a profile knows of a signature, and how many it keeps."""

from __future__ import annotations

import gc

from kubesched.api.core import Pod, Toleration
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.observing import NullObserver
from kubesched.framework.plan import (
    PLAN_BYTES,
    PLAN_OVERHEAD_BYTES,
    ROW_BYTES,
    Plans,
    SignaturePlan,
)
from kubesched.framework.plugin import (
    NODE,
    PODS,
    REQUESTS,
    PreFilterResult,
    RowFilter,
    SignaturePreFilter,
)
from kubesched.framework.status import SKIP, unschedulable
from kubesched.framework.status_book import StatusBook
from kubesched.framework.verdict import Verdict, reject
from tests.support.objects import node, pod
from tests.support.scheduling import Lab


class Counting(SignaturePreFilter, RowFilter):
    """Turns cordoned nodes away and counts how often it is asked; skips pods with host ports."""

    name = "Counting"
    reads = NODE | REQUESTS

    def __init__(self) -> None:
        self.pre_filtered = 0
        self.rows: list[int] = []

    def pre_filter(self, signature: PodSignature) -> PreFilterResult:
        self.pre_filtered += 1
        return PreFilterResult(SKIP) if signature.host_ports else PreFilterResult()

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        self.rows += nodes.row_numbers().tolist()
        return reject(nodes.unschedulable, unschedulable("cordoned"))


class CountingTaints(Counting):
    """The same, for what has nothing to do with requests."""

    name = "CountingTaints"
    reads = NODE


class CountingPods(Counting):
    """The same, for what depends on pods."""

    name = "CountingPods"
    reads = NODE | PODS | REQUESTS


def _lab(nodes: int = 8) -> Lab:
    return Lab(
        *(node(f"n{number}") for number in range(nodes)),
        plugins=[Counting, CountingPods],
        only=[],
    )


def test_a_signature_is_asked_about_once() -> None:
    lab = _lab()
    for name in ("a", "b", "c"):
        lab.feasible(pod(name, cpu="1"))
    counting = lab.plugin("Counting")
    assert counting.pre_filtered == 1
    assert sorted(counting.rows) == list(range(8)), "each row once"
    lab.feasible(pod("d", cpu="2"))
    assert counting.pre_filtered == 2


def test_a_placement_is_asked_about_only_by_filters_that_read_pods() -> None:
    lab = _lab()
    asking = pod("p", cpu="1")
    lab.feasible(asking)
    by_node, by_pods = lab.plugin("Counting"), lab.plugin("CountingPods")
    by_node.rows.clear()
    by_pods.rows.clear()
    lab.cluster.put_pod(pod("q", node="n5"))
    lab.feasible(asking)
    assert (by_node.rows, by_pods.rows) == ([], [5])
    lab.cluster.put_node(node("n2", cpu="1"))
    lab.feasible(asking)
    assert (by_node.rows, by_pods.rows) == ([2], [5, 2])


def test_a_skipped_filter_is_not_asked() -> None:
    lab = _lab()
    lab.cluster.put_node(node("n0", unschedulable=True))
    assert "n0" not in lab.feasible(pod("a"))
    assert "n0" in lab.feasible(pod("b", ports=[80]))


def test_rejections_name_the_first_filter_whichever_column_it_is_in() -> None:
    full = pod("full", node="n1")
    lab = Lab(node("n1", pods=1, unschedulable=True), node("n2", pods=0), full)
    plan = lab.framework.evaluator.plans.plan(lab.pending(pod("a")).signature)
    book = lab.framework.evaluator.book
    reasons = [book.statuses[number].message for number in plan.rejections().tolist()]
    assert reasons == ["node(s) were unschedulable", "Too many pods"]
    assert plan.passing.at(slice(0, lab.cluster.table.size)).tolist() == [False, False]


def test_of_filters_in_one_column_the_first_one_is_named() -> None:
    lab = Lab(node("n1", unschedulable=True, taints=["a:NoSchedule"], labels={"x": "y"}))
    plan = lab.framework.evaluator.plans.plan(
        lab.pending(pod("a", node_selector={"x": "z"})).signature
    )
    (number,) = plan.rejections().tolist()
    assert lab.framework.evaluator.book.statuses[number].plugin == "NodeUnschedulable"
    lab.cluster.put_node(node("n1", taints=["a:NoSchedule"], labels={"x": "y"}))
    (number,) = plan.rejections().tolist()
    assert lab.framework.evaluator.book.statuses[number].plugin == "TaintToleration"


def test_free_rows_are_not_feasible() -> None:
    lab = _lab(3)
    asking = pod("a")
    assert lab.feasible(asking) == ["n0", "n1", "n2"]
    lab.cluster.remove_node("n1")
    plan = lab.framework.evaluator.plans.plan(lab.pending(asking).signature)
    assert plan.passing.at(slice(0, lab.cluster.table.size)).tolist() == [True, False, True]
    assert lab.feasible(asking) == ["n0", "n2"]


def _plans(lab: Lab, limit_bytes: int) -> Plans:
    return Plans(
        lab.framework.plugins,
        lab.cluster.table,
        StatusBook(),
        observer=NullObserver(),
        limit_bytes=limit_bytes,
    )


def test_plans_that_were_longest_unused_are_given_up_when_memory_runs_short() -> None:
    lab = _lab()
    per_plan = PLAN_OVERHEAD_BYTES + lab.cluster.table.size * ROW_BYTES
    plans = _plans(lab, limit_bytes=3 * per_plan)
    pods = [lab.pending(pod("p", cpu=f"{number}m")) for number in range(1, 11)]
    first = plans.plan(pods[0].signature)
    for each in pods[1:3]:
        plans.plan(each.signature)
    assert plans.plan(pods[0].signature) is first, "kept, and the most recently used now"
    for each in pods[3:6]:
        plans.plan(each.signature)
        assert plans.plan(pods[0].signature) is first
    for each in pods[6:]:
        plans.plan(each.signature)
    assert len(plans) <= 4
    assert plans.plan(pods[0].signature) is not first, "it was the oldest at last"


def test_at_least_one_plan_is_kept_however_little_memory_there_is() -> None:
    lab = _lab()
    plans = _plans(lab, limit_bytes=1)
    info = lab.pending(pod("p"))
    assert plans.plan(info.signature) is plans.plan(info.signature)


def test_a_plan_that_is_given_up_takes_no_more_memory_and_still_answers() -> None:
    lab = Lab(*(node(f"n{number}") for number in range(4)))
    lab.cluster.put_node(node("n2", unschedulable=True))
    plans = lab.framework.evaluator.plans
    plan = plans.plan(lab.pending(pod("p", cpu="1")).signature)
    passing, totals = plan.passing, plan.totals
    totals.refresh()
    plan.rejections()
    before = passing.mask.tolist(), totals.totals.tolist()
    plans.clear()
    assert not plan._on_node.rejections.is_known
    assert len(plan._on_node.rejections.values) == 0
    assert len(totals.totals) == len(passing.mask) == 0
    totals.refresh()
    assert (passing.mask.tolist(), totals.totals.tolist()) == before


def test_totals_of_a_signature_that_one_pod_had_are_not_kept() -> None:
    lab = Lab(*(node(f"n{number}") for number in range(4)))
    plans = lab.framework.evaluator.plans
    infos = [lab.pending(pod("p", cpu=f"{number}m")) for number in (1, 2, 3)]

    def ask(number: int) -> int:
        totals = plans.plan(infos[number].signature).totals
        totals.uses += 1
        totals.refresh()
        return len(totals.totals)

    def kept() -> list[int]:
        found = [plans.plan(each.signature).totals for each in infos]
        return [len(each.totals) if each.is_known else 0 for each in found]

    assert [ask(0), ask(0), ask(1)] == [4, 4, 4]
    assert ask(2) == 4
    assert kept() == [4, 0, 4], "the second signature was of one pod only, as far as one could see"
    assert ask(1) == 4
    plans.plan(lab.pending(pod("p", cpu="4m")).signature)
    assert kept() == [4, 4, 0]


def _attempted(lab: Lab, *cpus: str) -> list[SignaturePlan]:
    plans = lab.framework.evaluator.plans
    return [plans.for_attempt(lab.pending(pod("p", cpu=cpu)).signature) for cpu in cpus]


def test_a_plan_of_one_pod_becomes_that_of_the_next_size() -> None:
    lab = Lab(node("small", cpu="1"), node("large", cpu="4"))
    lab.cluster.nominator.nominate(lab.pending(pod("nominated", cpu="3", priority=9)), "large")
    (first,) = _attempted(lab, "500m")
    first.totals.refresh()
    assert first.passing.mask.tolist() == [first.passing.passes(row) for row in (0, 1)]
    asking = lab.pending(pod("p", cpu="500m"))
    assert not first.beside_nominated(lab.cluster, 0).rejections(asking).any()
    stacked = first.stacked(asking.requests)
    (second,) = _attempted(lab, "2")
    assert second is first
    assert len(lab.framework.evaluator.plans) == 1
    assert second.stacked(asking.requests) is not stacked
    beside = second.beside_nominated(lab.cluster, 0).rejections(lab.pending(pod("p", cpu="2")))
    assert (beside > 0).tolist() == [False, True]
    second.totals.refresh()
    assert second.passing.mask.tolist() == [False, True]
    assert [second.passing.passes(row) for row in (0, 1)] == [False, True]
    twin = _plans(lab, PLAN_BYTES).plan(lab.pending(pod("q", cpu="2")).signature)
    twin.totals.refresh()
    assert second.totals.totals.tolist() == twin.totals.totals.tolist()
    assert second.totals.total_of(1) == twin.totals.totals[1]


def test_a_plan_is_not_taken_from_another_reader() -> None:
    lab = Lab(node("n"))
    (first,) = _attempted(lab, "1")
    assert lab.framework.evaluator.plans.plan(lab.pending(pod("p", cpu="1")).signature) is first
    (second,) = _attempted(lab, "2")
    assert second is not first


def test_a_plan_that_several_pods_used_is_kept() -> None:
    lab = Lab(node("n1"), node("n2"))
    for name in ("a", "b"):
        lab.totals(pod(name, cpu="1"))
    plans = lab.framework.evaluator.plans
    kept = plans.for_attempt(lab.pending(pod("c", cpu="1")).signature)
    (other,) = _attempted(lab, "2")
    assert other is not kept
    assert plans.for_attempt(lab.pending(pod("d", cpu="1")).signature) is kept


def test_a_plan_is_not_taken_over_if_a_plugin_skips_only_one_of_two_signatures() -> None:
    """NodeResourcesBalancedAllocation does not score pods that request nothing."""
    lab = Lab(node("n1"), node("n2"))
    plans = lab.framework.evaluator.plans
    (first,) = _attempted(lab, "1")
    best_effort = plans.for_attempt(lab.pending(pod("p")).signature)
    assert best_effort is not first
    assert best_effort.score_skips - first.score_skips == {"NodeResourcesBalancedAllocation"}


def test_a_plan_is_not_taken_over_by_pods_with_other_requirements() -> None:
    lab = Lab(node("n1"))
    (first,) = _attempted(lab, "1")
    tolerant = pod("p", cpu="2", tolerations=[Toleration(key="a")])
    other = lab.framework.evaluator.plans.for_attempt(lab.pending(tolerant).signature)
    assert other is not first


def _counting(lab: Lab, *pods: Pod) -> list[int]:
    """The rows that a filter was asked about for pods, one after the other."""
    (plugin,) = lab.framework.plugins.pre_filter
    for each in pods:
        lab.feasible(each)
    rows: list[int] = lab.plugin(plugin.name).rows
    return rows


def test_what_nodes_are_to_pods_is_known_to_all_signatures_that_differ_in_requests_only() -> None:
    lab = Lab(node("n0"), node("n1"), plugins=[CountingTaints], only=[])
    sizes = [pod(f"p{number}", cpu=f"{number}m") for number in (1, 2, 3)]
    assert sorted(_counting(lab, *sizes)) == [0, 1], "each row once"
    assert sorted(_counting(lab, pod("q", tolerations=[Toleration(key="a")]))) == [0, 0, 1, 1]


def test_a_filter_that_may_read_requests_is_asked_for_each_signature() -> None:
    lab = Lab(node("n0"), plugins=[Counting], only=[])
    assert _counting(lab, *(pod(f"p{number}", cpu=f"{number}m") for number in (1, 2))) == [0, 0]


def test_what_signatures_share_is_given_up_with_the_last_plan_that_needs_it() -> None:
    lab = Lab(node("n0"), plugins=[CountingTaints], only=[])
    plans = _plans(lab, limit_bytes=1)
    for number in (1, 2):
        plans.plan(lab.pending(pod("p", cpu=f"{number}m")).signature)
    assert len(plans._shared) == 1
    plans.plan(lab.pending(pod("q", tolerations=[Toleration(key="a")])).signature)
    plans.plan(lab.pending(pod("q", cpu="1", tolerations=[Toleration(key="a")])).signature)
    gc.collect()
    assert len(plans._shared) == 1


def test_a_signature_without_requests_has_none() -> None:
    """So that a plugin that says it does not read them cannot."""
    seen: list[PodSignature] = []

    class Curious(CountingTaints):
        name = "Curious"

        def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
            seen.append(signature)
            return super().filter(signature, nodes)

    lab = Lab(node("n0"), plugins=[Curious], only=[])
    lab.feasible(pod("p", cpu="1", memory="1Gi", overhead={"cpu": "1"}, ports=[]))
    (signature,) = seen
    assert signature.requests.amounts == {}
    assert signature.scoring_requests == {}
    assert [each.resources for each in signature.spec.containers] == [None]
    assert signature.spec.overhead is None
