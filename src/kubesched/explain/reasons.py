"""Every reason of every node: each filter runs on all rows, independent of the others.

The scheduler stops at a node's first rejection; to know what to change, a user needs all of them,
also where one filter has several rules. A filter whose PreFilter rejected the pod as a whole does
not run on nodes. Each plugin is then asked for the numbers and names behind its rejections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.plugin import (
    Plugin,
    PreFilter,
    PreFilterResult,
    RowFilter,
    SignaturePreFilter,
)
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Code, Status, unresolvable
from kubesched.framework.verdict import ALL_PASS, Verdict, first_of, reject
from kubesched.plugins.inter_pod_affinity import InterPodAffinity

NO_ROWS: Final[IndexArray] = np.zeros(0, dtype=np.intp)


class RowDetails:
    """What a plugin says about the rows that it rejects, in its order."""

    def __init__(self, details: Iterable[Detail] = ()) -> None:
        self.all = tuple(details)
        self._of_row: dict[int, list[Detail]] = {}
        for detail in self.all:
            for row in detail.rows:
                self._of_row.setdefault(row, []).append(detail)

    def of(self, row: int, reason: str) -> list[Detail]:
        """Return what is behind one reason of a row."""
        return [each for each in self._of_row.get(row, ()) if each.reason in ("", reason)]


class RejectedPod(Struct, frozen=True):
    """Why a plugin rejects the pod as a whole."""

    status: Status
    details: tuple[Detail, ...] = ()


class FilterVerdict(Struct, frozen=True):
    """One filter's verdict on all rows."""

    plugin: str
    verdict: Verdict
    details: RowDetails = RowDetails()

    def status_of(self, row: int) -> Status | None:
        """Return why the filter rejects a row, None if it does not."""
        return self.verdict.status_of(row)


class Reasons:
    """All verdicts of all filters, and PreFilter's rejections of the pod as a whole."""

    def __init__(
        self, table: NodeTable, answers: list[FilterVerdict], of_pod: list[RejectedPod]
    ) -> None:
        self._table = table
        #: only filters that reject some row, in filter order
        self.answers = answers
        self.of_pod = of_pod
        #: row → bit i is set if verdict i rejects it
        self.masks: Int64Array = np.zeros(table.size, dtype=np.int64)
        for bit, answer in enumerate(answers):
            numbers = answer.verdict.answers
            if numbers is not None:
                self.masks |= (numbers > 0).astype(np.int64) << bit

    @property
    def valid(self) -> BoolArray:
        """Which rows have a node."""
        return self._table.valid[: self._table.size]

    def groups(self) -> IndexArray:
        """Return the group number of each row: rows of a group have the same reasons."""
        if not self.answers:
            return np.zeros(self._table.size, dtype=np.intp)
        columns = [
            each.verdict.answers for each in self.answers if each.verdict.answers is not None
        ]
        group = np.zeros(self._table.size, dtype=np.intp)
        for column in columns:
            # Renumbered after each column, so that numbers stay small.
            combined = group * (int(column.max()) + 1) + column
            group = np.unique(combined, return_inverse=True)[1].reshape(-1)
        return group

    def of_row(self, row: int) -> list[Status]:
        """Return all reasons why a row is rejected, in filter order."""
        found = (
            status.by(answer.plugin)
            for answer in self.answers
            if (status := answer.status_of(row)) is not None
        )
        return [*(each.status for each in self.of_pod), *found]

    def details_of(self, row: int, plugin: str, reason: str) -> list[Detail]:
        """Return what is behind a reason of a row."""
        answer = self.answer_of(plugin)
        return [] if answer is None else answer.details.of(row, reason)

    def answer_of(self, plugin: str) -> FilterVerdict | None:
        """Return a filter's verdict, None if it rejects no row."""
        return next((each for each in self.answers if each.plugin == plugin), None)

    def rows_only_by(self, *plugins: str) -> IndexArray:
        """Return the rows that only these filters reject."""
        allowed = sum(1 << bit for bit, each in enumerate(self.answers) if each.plugin in plugins)
        mask = self.masks
        return np.flatnonzero(self.valid & (mask > 0) & ((mask & ~np.int64(allowed)) == 0))

    def counts(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Return, by plugin and text, how many rows it rejects, and of how many it is the sole
        reason.
        """
        concerned: Counter[tuple[str, str]] = Counter()
        alone: Counter[tuple[str, str]] = Counter()
        for bit, answer in enumerate(self.answers):
            if answer.verdict.answers is None:
                continue
            rows = np.flatnonzero(self.valid & (answer.verdict.answers > 0))
            numbers = answer.verdict.answers[rows]
            by_itself = self.masks[rows] == 1 << bit
            for number in np.unique(numbers).tolist():
                status = answer.verdict.statuses[number - 1]
                here = numbers == number
                for text in status.reasons:
                    concerned[answer.plugin, text] += int(here.sum())
                    if len(status.reasons) == 1:
                        alone[answer.plugin, text] += int((here & by_itself).sum())
        return {key: (count, alone[key]) for key, count in concerned.most_common()}


def all_reasons(framework: Framework, table: NodeTable, pod: PodInfo) -> Reasons:
    """Run every filter of a profile on every node."""
    state, everywhere = CycleState(), NodeRows.all_of(table)
    of_pod: list[RejectedPod] = []
    not_asked: set[str] = set()
    answers: list[FilterVerdict] = []
    for pre_filter in framework.plugins.pre_filter:
        result = _pre_filter(pre_filter, state, pod, everywhere)
        if result.status.code is Code.SKIP:
            state.skip_filter |= {pre_filter.name}
            not_asked.add(pre_filter.name)
        elif not result.status.ok:
            details = _details(pre_filter, state, pod, NodeRows(table, NO_ROWS), result.status)
            of_pod.append(RejectedPod(result.status.by(pre_filter.name), details.all))
            not_asked.add(pre_filter.name)
        elif result.node_names is not None:
            answers += _elsewhere(pre_filter.name, result.node_names, everywhere)
    for plugin in framework.plugins.filter:
        if plugin.name in not_asked:
            continue
        if isinstance(plugin, RowFilter):
            verdict = plugin.filter(pod.signature, everywhere)
        elif isinstance(plugin, InterPodAffinity):
            verdict = all_of(plugin.rules(pod, everywhere))
        else:
            verdict = plugin.filter(state, pod, everywhere)
        if verdict.answers is not None:
            rejected = table.valid[: table.size] & (verdict.answers > 0)
            rows = NodeRows(table, np.flatnonzero(rejected))
            details = _details(plugin, state, pod, rows, *verdict.statuses)
            answers.append(FilterVerdict(plugin.name, verdict, details))
    return Reasons(table, _merged(answers), of_pod)


def _details(
    plugin: Plugin, state: CycleState, pod: PodInfo, nodes: NodeRows, *said: Status
) -> RowDetails:
    """Ask a plugin what is behind its rejections; an error of its own says what it is."""
    if not any(status.rejected for status in said):
        return RowDetails()
    everywhere = tuple(nodes.row_numbers().tolist())
    return RowDetails(
        each if each.rows else replace(each, rows=everywhere)
        for each in plugin.details(state, pod, nodes)
    )


def _pre_filter(
    plugin: SignaturePreFilter | PreFilter, state: CycleState, pod: PodInfo, nodes: NodeRows
) -> PreFilterResult:
    if isinstance(plugin, PreFilter):
        return plugin.pre_filter(state, pod, nodes)
    return plugin.pre_filter(pod.signature)


def _elsewhere(plugin: str, node_names: frozenset[str], nodes: NodeRows) -> list[FilterVerdict]:
    """Reject all nodes but those that PreFilter named."""
    rows = {row for name in node_names if (row := nodes.table.row_of(name)) is not None}
    status = unresolvable(f"node(s) didn't satisfy plugin(s) [{plugin}]")
    verdict = reject(~nodes.among(rows), status)
    return [] if verdict.answers is None else [FilterVerdict(plugin, verdict)]


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Combine verdicts on the same rows: each row gets all of its reasons, and the first's code."""
    rejecting = [(each.answers, each.statuses) for each in verdicts if each.answers is not None]
    if not rejecting:
        return ALL_PASS
    said = np.stack([answers.astype(np.int32) for answers, _ in rejecting], axis=1)
    combinations, numbers = np.unique(said, axis=0, return_inverse=True)
    # The combination without a rejection sorts first: it must stay number 0.
    first = 0 if not combinations[0].any() else 1
    statuses = []
    for combination in combinations[1 - first :].tolist():
        given = [
            known[number - 1]
            for number, (_, known) in zip(combination, rejecting, strict=True)
            if number
        ]
        texts = tuple(chain.from_iterable(each.reasons for each in given))
        statuses.append(Status(given[0].code, texts, given[0].plugin))
    return Verdict(numbers.reshape(-1).astype(np.int32) + first, tuple(statuses))


def _merged(answers: list[FilterVerdict]) -> list[FilterVerdict]:
    """Prefer a filter's own message to its PreFilter's general one."""
    result: dict[str, FilterVerdict] = {}
    for answer in answers:
        general = result.get(answer.plugin)
        if general is None:
            result[answer.plugin] = answer
            continue
        merged = first_of(answer.verdict, general.verdict)
        result[answer.plugin] = FilterVerdict(answer.plugin, merged, answer.details)
    return list(result.values())
