"""The promises that a plugin makes by what it derives from, one check each.

A check gets a trial, i.e. the plugin on a random cluster, and fails it where the promise is broken.
The first line of its docstring is the promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from kubesched.api.core import Node, Pod
from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows, SupposedRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature, spec_for_nodes
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.cluster.resources import Requests
from kubesched.errors import InvariantError
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.count_bounds import BoundedRows, numbered
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.domain_scores import DomainScores
from kubesched.framework.plugin import (
    MAX_NODE_SCORE,
    PODS,
    REQUESTS,
    Filter,
    Normalize,
    Plugin,
    PreFilter,
    RowFilter,
    RowScore,
    Score,
    SignaturePreFilter,
)
from kubesched.framework.runtime import Framework
from kubesched.framework.scoring import Scores
from kubesched.framework.status import Code
from kubesched.framework.status_book import StatusBook
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.testing.asking import Asker, rows_in_use
from kubesched.testing.full_evaluation import decide_fully
from kubesched.testing.objects import make_pod
from kubesched.testing.trial import DECIDING, PluginTrial, Promises

PROMISES: Final = Promises()
#: Number of events in a trial.
_STEPS: Final = 12


# --- one question -----------------------------------------------------------------------------


@PROMISES.by(*DECIDING)
def check_deterministic(trial: PluginTrial) -> None:
    """The same question gets the same answer."""
    for pod in trial.pods():
        first, second = trial.asker.ask(pod), trial.asker.ask(pod)
        for field in ("rejections", "scores", "normalized"):
            what = f"{field}, asked a second time"
            trial.compare(getattr(second, field), getattr(first, field), what, pod=pod)
        if first != second:
            trial.fail("PreFilter or PreScore, asked a second time, says another thing", pod=pod)


@PROMISES.by(RowFilter, RowScore, Filter)
def check_row_by_row(trial: PluginTrial) -> None:
    """The answer for a node does not depend on which other nodes are evaluated."""
    asker, table = trial.asker, trial.table
    rows = rows_in_use(table).tolist()
    some = trial.rng.sample(rows, len(rows) // 2)
    for pod in trial.pods():
        together = asker.ask(pod)
        for chosen in ([each] for each in rows), [some], [rows[::-1]]:
            for subset in chosen:
                said = asker.ask(pod, NodeRows(table, np.array(subset, dtype=np.intp)))
                names = [table.name_at(row) for row in subset]
                what = f"of {len(names)} nodes instead of all"
                if together.rejections:
                    expected = {name: together.rejections[name] for name in names}
                    trial.compare(said.rejections, expected, what, pod=pod)
                if together.scores and isinstance(trial.plugin, RowScore):
                    scores = {name: together.scores[name] for name in names}
                    trial.compare(said.scores, scores, what, pod=pod)


@PROMISES.by(RowFilter, RowScore, where=lambda cls: PODS not in getattr(cls, "reads", PODS))
def check_reads_pods(trial: PluginTrial) -> None:
    """Without PODS in `reads`, answers do not depend on the pods of the node."""
    plugin, cluster = trial.plugin, trial.cluster
    for pod in trial.pods():
        signature = pod.signature.row_signature
        before, epoch = trial.asker.ask(pod), _epoch(plugin, signature, trial)
        guest = cluster.compiler.pending(trial.world.random_pod("guest"))
        node = trial.rng.choice([*trial.world.nodes])
        cluster.assume(guest, node)
        after, is_same = trial.asker.ask(pod), epoch == _epoch(plugin, signature, trial)
        cluster.forget(guest.uid)
        what = "PODS is not in reads, yet with one more pod on the node"
        trial.compare(after.rejections, before.rejections, what, pod=pod)
        if is_same:
            trial.compare(after.scores, before.scores, what, pod=pod)


@PROMISES.by(Filter, RowFilter)
def check_details(trial: PluginTrial) -> None:
    """Details are of nodes that Filter rejected and of reasons that it gave; JSON can hold them."""
    for pod in trial.pods():
        rejected, details = trial.asker.details(pod)
        told: dict[int, list[Detail]] = {}
        for each in details:
            if each.text.startswith(f"plugin {trial.subject.name} failed at"):
                trial.fail(each.text, pod=pod)
            if not each.text or "\n" in each.text:
                trial.fail(f"the text of a detail is {each.text!r}, not one line", pod=pod)
            msgspec.json.encode(each.values)
            for row in each.rows or rejected:
                told.setdefault(row, []).append(each)
        for row, found in told.items():
            if row not in rejected:
                trial.fail(f"{found[0].text!r} is of a row that was not asked about", pod=pod)
            node, reasons = trial.table.name_at(row), ("", *rejected[row].reasons)
            if not any(each.reason in reasons for each in found):
                what = f"{found[0].text!r} is of reason {found[0].reason!r}, which it did not give"
                trial.fail(what, pod=pod, node=node)


@PROMISES.by(
    RowFilter,
    RowScore,
    where=lambda cls: not (PODS | REQUESTS) & getattr(cls, "reads", PODS),
)
def check_reads_requests(trial: PluginTrial) -> None:
    """With reads = NODE, answers do not depend on what the pod requests."""
    for pod in trial.pods():
        expected = trial.asker.ask(pod)
        asker = _AskerWithoutRequests(trial.plugin, trial.table)
        said, what = asker.ask(pod), "REQUESTS is not in reads, yet for a pod without requests"
        trial.compare(said.rejections, expected.rejections, what, pod=pod)
        trial.compare(said.scores, expected.scores, what, pod=pod)


@PROMISES.by(RowFilter, RowScore, where=lambda cls: PODS in getattr(cls, "reads", PODS))
def check_supposed_pods(trial: PluginTrial) -> None:
    """Of a node's pods, a RowFilter or RowScore looks at nothing but the sums that it is given."""
    cluster, table = trial.cluster, trial.table
    rows = rows_in_use(table)
    guest = cluster.compiler.pending(make_pod("guest", cpu=1, memory="1Gi"))
    guest.requests.resolve(table.resources)
    non_zero = np.array(guest.requests.non_zero, dtype=np.int64)
    what = "with the sums of one more pod, instead of that pod"
    for pod in trial.pods():
        requested = table.requested[:, rows].copy()
        for number, amount in guest.requests.pairs:
            requested[number] += amount
        supposed = SupposedRows(
            table,
            rows,
            requested=requested,
            pod_count=table.pod_count[rows] + 1,
            non_zero_requested=table.non_zero_requested[:, rows] + non_zero[:, np.newaxis],
        )
        said = trial.asker.ask(pod, supposed)
        for node in map(table.name_at, rows.tolist()):
            cluster.assume(guest, node)
            expected = trial.asker.ask(pod)
            cluster.forget(guest.uid)
            for answers, wanted in (
                (said.rejections, expected.rejections),
                (said.scores, expected.scores),
            ):
                if answers and wanted and answers[node] != wanted[node]:
                    trial.compare({node: answers[node]}, {node: wanted[node]}, what, pod=pod)


@PROMISES.by(PreFilter, SignaturePreFilter, where=lambda cls: cls.only_with_volumes)
def check_only_with_volumes(trial: PluginTrial) -> None:
    """With only_with_volumes, PreFilter returns Skip for every pod without volumes."""
    plugin = trial.plugin
    for pod in trial.pods(10):
        if pod.volumes is not NO_VOLUMES:
            continue
        if isinstance(plugin, SignaturePreFilter):
            result = plugin.pre_filter(pod.signature.row_signature)
        elif isinstance(plugin, PreFilter):
            result = plugin.pre_filter(CycleState(), pod, NodeRows.all_of(trial.table))
        if result.status.code is not Code.SKIP:
            trial.fail(f"said {result.status.code.label}, expected Skip", pod=pod)


# --- other forms of the same answer ------------------------------------------------------------


@PROMISES.by(RowFilter)
def check_row_filter(trial: PluginTrial) -> None:
    """The function that `row_filter` returns gives the answer of `filter` for one row."""
    plugin, table = trial.plugin_as(RowFilter), trial.table
    for pod in trial.pods():
        expected = trial.asker.ask(pod).rejections
        reject = plugin.row_filter(pod.signature.row_signature, table) if expected else None
        if reject is not None:
            said = {table.name_at(row): reject(row) for row in rows_in_use(table).tolist()}
            trial.compare(said, expected, "row_filter instead of filter", pod=pod)


@PROMISES.by(Filter, where=lambda cls: getattr(cls, "bounds_counts", False))
def check_count_bounds(trial: PluginTrial) -> None:
    """With bounds_counts, the rows outside of the bounds are those that `filter` rejects."""
    plugin, cluster, rows = trial.plugin_as(Filter), trial.cluster, rows_in_use(trial.table)
    for pod in trial.pods():
        expected, state = trial.asker.ask(pod).rejections, CycleState()
        if not expected:
            continue
        nodes, book = NodeRows(trial.table, rows), StatusBook()
        found = numbered(book, 0, "", plugin.count_bounds(state, pod, nodes))
        bounded = BoundedRows(cluster, rows, found)
        numbers = bounded.rejections(bounded.counts).tolist()
        said = {
            trial.table.name_at(row): book.statuses[number] if number else None
            for row, number in zip(rows.tolist(), numbers, strict=True)
        }
        trial.compare(said, expected, "count_bounds instead of filter", pod=pod)


@PROMISES.by(RowScore)
def check_row_scorer(trial: PluginTrial) -> None:
    """The function that `row_scorer` returns scores one row as `score` does, or returns None."""
    plugin, table = trial.plugin_as(RowScore), trial.table
    for pod in trial.pods():
        expected = trial.asker.ask(pod).scores
        score = plugin.row_scorer(pod.signature.row_signature, table) if expected else None
        if score is not None:
            said = {table.name_at(row): score(row) for row in rows_in_use(table).tolist()}
            wanted = {name: expected[name] for name, each in said.items() if each is not None}
            some = {name: said[name] for name in wanted}
            trial.compare(some, wanted, "row_scorer instead of score", pod=pod)


@PROMISES.by(Score)
def check_domain_scores(trial: PluginTrial) -> None:
    """With DomainScores, `normalize` is the same whether a domain comes once or for each node."""
    plugin = trial.plugin_as(Score)
    if not isinstance(plugin, Normalize):
        return
    for pod in trial.pods():
        nodes = NodeRows(trial.table, rows_in_use(trial.table))
        raw = trial.asker.raw_scores(pod, nodes)
        if not isinstance(raw, DomainScores):
            continue
        counted = raw.counted if raw.domains is None else raw.counted.take(raw.domains)
        expected = np.zeros(len(nodes), dtype=np.int64)
        if np.count_nonzero(counted):
            expected[counted] = _normalized(plugin, raw.of_nodes()[counted])
        by_domain = raw.normalized(plugin.normalize)
        said = np.zeros_like(expected) if by_domain is None else by_domain.of_nodes()
        trial.compare(
            trial.asker.named(nodes, said.tolist()),
            trial.asker.named(nodes, expected.tolist()),
            "normalized by domain instead of by node",
            pod=pod,
        )


@PROMISES.by(Normalize, where=lambda cls: getattr(cls.normalize, "depends_on_min_max", False))  # type: ignore[attr-defined]
def check_depends_on_min_max(trial: PluginTrial) -> None:
    """With @depends_on_min_max, a normalized score depends on the raw one and on min and max."""
    plugin = trial.plugin_as(Normalize)
    for pod in trial.pods():
        raw = np.array([*trial.asker.ask(pod).scores.values()], dtype=np.int64)
        if not len(raw):
            continue
        among = _normalized(plugin, raw)
        lowest, highest = int(raw.min()), int(raw.max())
        for score, expected in zip(raw.tolist(), among.tolist(), strict=True):
            # One of each, and crowds at either end: what is in between must not matter.
            for low, high in ((1, 1), (50, 1), (1, 50)):
                others = [score, *[lowest] * low, *[highest] * high]
                said = int(_normalized(plugin, np.array(others, dtype=np.int64))[0])
                if said != expected:
                    trial.fail(
                        f"normalize makes {expected} of {score} among {sorted(raw.tolist())}, and "
                        f"{said} among {low} times {lowest} and {high} times {highest}",
                        pod=pod,
                    )


# --- answers that can be used -------------------------------------------------------------------


@PROMISES.by(RowScore, Score)
def check_score_range(trial: PluginTrial) -> None:
    """Scores to be weighted are within 0 and 100; with proven_range on nodes of any kind."""
    proven = getattr(trial.plugin, "proven_range", False)
    for pod, _, nodes, scores in _scored(trial, all_nodes=proven):
        rows = nodes.row_numbers().tolist()
        for row, score in zip(rows, scores.tolist(), strict=True):
            if not 0 <= score <= MAX_NODE_SCORE:
                name = trial.table.name_at(row)
                trial.fail(f"scored {score}, expected 0 to 100", pod=pod, node=name)


@PROMISES.by(*DECIDING)
def check_statuses(trial: PluginTrial) -> None:
    """Filter rejects or reports an error; PreFilter and PreScore answer what their point allows."""
    rejecting = {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING, Code.ERROR}
    for pod in trial.pods(10):
        said = trial.asker.ask(pod)
        for node, status in said.rejections.items():
            if status is not None and status.code not in rejecting:
                what = f"Filter said {status.code.label}, expected a rejection or an error"
                trial.fail(what, pod=pod, node=node)
        result = said.pre_filter
        if result is not None:
            if result.status.code not in {*rejecting, Code.SUCCESS, Code.SKIP}:
                trial.fail(f"PreFilter said {result.status.code.label}", pod=pod)
            named: object = result.node_names
            if not isinstance(named, frozenset | None):
                kind = type(named).__name__
                trial.fail(f"PreFilter named nodes as {kind}, expected a frozenset", pod=pod)
        allowed = {None, Code.SUCCESS, Code.SKIP, Code.ERROR}
        if said.pre_score is not None and said.pre_score.code not in allowed:
            what = f"PreScore said {said.pre_score.code.label}"
            trial.fail(f"{what}, expected Success, Skip or Error", pod=pod)


@PROMISES.by(RowScore, Score)
def check_fresh_arrays(trial: PluginTrial) -> None:
    """An array of scores is the caller's: neither the table's memory nor that of another answer."""
    nodes = NodeRows.all_of(trial.table)
    for pod in trial.pods():
        first, second = (_array(trial.asker.raw_scores(pod, nodes)) for _ in range(2))
        if first is not None and second is not None and np.shares_memory(first, second):
            trial.fail("two answers share their memory: return an array of their own", pod=pod)


@PROMISES.by(*DECIDING)
def check_inputs_unchanged(trial: PluginTrial) -> None:
    """A plugin changes neither pods, nodes nor the columns of the node table."""
    encode = msgspec.json.Encoder(order="sorted").encode
    for pod in trial.pods():
        objects: list[Node | Pod] = [
            pod.pod,
            *trial.world.nodes.values(),
            *trial.world.placed.values(),
        ]
        before = [encode(each) for each in objects]
        trial.asker.ask(pod)
        for each, text in zip(objects, before, strict=True):
            if encode(each) != text:
                kind = type(each).__name__
                trial.fail(f"it changes the {kind} {each.metadata.name}", pod=pod)
        try:
            trial.cluster.validate()
        except InvariantError as broken:
            trial.fail(f"it writes to the node table: {broken}", pod=pod, cause=broken)


# --- a life of events ----------------------------------------------------------------------------


@PROMISES.by(*DECIDING)
def check_incremental(trial: PluginTrial) -> None:
    """After any events, cached answers are those of a new scheduler on the same objects."""
    asking = trial.world.pods_to_ask_about(3)
    for _ in trial.steps(_STEPS):
        rebuilt = trial.world.rebuilt()
        for lived, alone in ((trial.alone, True), (trial.together, False)):
            fresh = trial.subject.framework(rebuilt, alone=alone)
            beside = "alone" if alone else "with the default plugins"
            for each in asking:
                pod = trial.cluster.compiler.pending(each)
                said = _outcome(lived, trial.table, pod)
                expected = _outcome(fresh, rebuilt.table, rebuilt.compiler.pending(each))
                what = f"{beside}, having lived through all events"
                trial.compare(said, expected, what, pod=pod)


@PROMISES.by(*DECIDING)
def check_decisions(trial: PluginTrial) -> None:
    """The node that is chosen is the one that the full evaluation chooses."""
    asking = trial.world.pods_to_ask_about(3)
    for turn, _ in enumerate(trial.steps(_STEPS)):
        for each in asking:
            pod = trial.cluster.compiler.pending(each)
            cycle = SchedulingCycle(trial.cluster, seed=turn)
            decision = cycle.schedule(trial.together, pod)
            said = (decision.node_name, decision.feasible_nodes)
            try:
                expected = decide_fully(trial.together, trial.cluster, pod, seed=turn)
            except AttemptError:
                expected = ("", 0)
            if said != expected:
                trial.fail(f"chose {_choice(*said)}, expected {_choice(*expected)}", pod=pod)


# --- asking -----------------------------------------------------------------------------------


class _AskerWithoutRequests(Asker):
    """Calls the plugin with the signature without requests, as the runtime does."""

    def signature_of(self, pod: PodInfo) -> PodSignature:
        signature = pod.signature.row_signature
        return PodSignature(
            spec_for_nodes(signature.spec),
            node_name=signature.node_name,
            requests=Requests({}, (0, 0)),
            scoring_requests={},
            is_resize=signature.is_resize,
        )


def _epoch(plugin: Plugin, signature: PodSignature, trial: PluginTrial) -> object:
    return plugin.epoch(signature, trial.table) if isinstance(plugin, RowScore) else None


def _choice(node: str, feasible: int) -> str:
    return f"{node or 'no node'} of {feasible} that can take the pod"


def _array(scores: Scores) -> Int64Array | None:
    return None if isinstance(scores, DomainScores) else scores


def _normalized(plugin: Normalize, raw: Int64Array) -> Int64Array:
    normalized = plugin.normalize(raw.copy())
    return np.zeros(len(raw), dtype=np.int64) if normalized is None else normalized


def _scored(
    trial: PluginTrial, *, all_nodes: bool = False
) -> Iterator[tuple[PodInfo, CycleState, NodeRows, Int64Array]]:
    """Return pods with the normalized scores of the nodes that can take them, or of all nodes."""
    evaluator = trial.together.evaluator
    for pod in trial.pods():
        state = CycleState()
        try:
            found = evaluator.look(state, pod)
            if isinstance(found, Diagnosis):
                continue
            rows = trial.table.order.rows() if all_nodes else found.rows()
            scores = evaluator.plugin_scores(state, pod, rows)
        except AttemptError as failed:
            if failed.status.plugin == trial.subject.name:
                trial.fail(failed.status.message, pod=pod, cause=failed)
            continue
        for each in scores:
            if each.plugin == trial.subject.name:
                yield pod, state, NodeRows(trial.table, rows), each.normalized


def _outcome(framework: Framework, table: NodeTable, pod: PodInfo) -> dict[str, object]:
    """Return a profile's result for each node: why it rejects the pod, or its scores by plugin."""
    evaluator, state = framework.evaluator, CycleState()
    rows = table.order.rows().tolist()
    try:
        found = evaluator.look(state, pod)
        if isinstance(found, Diagnosis):
            return {table.name_at(row): found.status_of(row) for row in rows}
        feasible = found.rows()
        said: dict[str, object] = {}
        for row in set(rows) - set(feasible.tolist()):
            said[table.name_at(row)] = evaluator.status_on(state, pod, row)
        scores = evaluator.plugin_scores(state, pod, feasible)
    except AttemptError as failed:
        return {"": failed.status}
    for element, row in enumerate(feasible.tolist()):
        given = {each.plugin: int(each.normalized[element]) for each in scores}
        said[table.name_at(row)] = given
    return said
