"""TaintToleration: rejects nodes with taints that the pod does not tolerate.

Taints with the effect PreferNoSchedule lower the score instead: the raw score of a node is the
number of such taints that the pod does not tolerate, and fewer is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

import numpy as np

from kubesched.api import names
from kubesched.api.core import Node, Taint, Toleration
from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature, any_tolerates
from kubesched.cluster.vocabulary import Lookup
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.plugin import (
    NODE,
    NOTHING_AGAINST,
    Normalize,
    PreFilterResult,
    RowFilter,
    RowScore,
    SignaturePreFilter,
    SignaturePreScore,
    depends_on_min_max,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.framework.verdict import Verdict, reject
from kubesched.plugins.normalize import scale_to_worst
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")

TaintSet = tuple[Taint, ...]


class TaintToleration(SignaturePreFilter, RowFilter, SignaturePreScore, RowScore, Normalize):
    """Compares a node's taints with the pod's tolerations."""

    name = "TaintToleration"
    reads = NODE
    proven_range = True
    skips_resizes = True

    def __init__(self, table: NodeTable, *, comparisons: bool) -> None:
        self._table = table
        self._comparisons = comparisons
        #: signature → whether a set of taints rejects it, and how many are PreferNoSchedule
        self._forbidden: WeakKeyDictionary[PodSignature, Lookup[TaintSet, np.bool_]] = (
            WeakKeyDictionary()
        )
        self._disliked: WeakKeyDictionary[PodSignature, Lookup[TaintSet, np.int64]] = (
            WeakKeyDictionary()
        )

    @classmethod
    def create(cls, context: PluginContext) -> TaintToleration:
        """Create the plugin."""
        comparisons = context.gates.enabled("TaintTolerationComparisonOperators")
        return cls(context.cluster.table, comparisons=comparisons)

    def events_to_register(self) -> Registrations:
        """An added node or other taints, or a new toleration of the pod."""
        return [
            Registration(
                ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
                signature_hint=self._after_node_change,
            ),
            Registration(ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION)),
        ]

    def pre_filter(self, signature: PodSignature) -> PreFilterResult:  # noqa: ARG002 (applies to every pod)
        """Filter every pod."""
        return NOTHING_AGAINST

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Reject nodes with a NoSchedule or NoExecute taint that the pod does not tolerate."""
        lookup = self._forbidden.get(signature)
        if lookup is None:
            # The function lives as long as the signature, and so must not refer to it.
            tolerations, comparisons = signature.spec.tolerations, self._comparisons

            def forbidden(taints: TaintSet) -> bool:
                return forbids(taints, tolerations, comparisons=comparisons)

            lookup = self._forbidden[signature] = Lookup(self._table.taints, forbidden, np.bool_)
        return reject(lookup(nodes.rows), UNTOLERATED)

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterator[Detail]:  # noqa: ARG002
        """Name the taints that the pod does not tolerate; those of most nodes first."""
        rows_with: dict[Taint, list[int]] = {}
        for row in nodes.row_numbers().tolist():
            for taint in self.untolerated(pod.signature, self._table.taints.at(row)):
                rows_with.setdefault(taint, []).append(row)
        for taint, rows in sorted(rows_with.items(), key=lambda item: -len(item[1])):
            values = {"key": taint.key, "value": taint.value, "effect": taint.effect}
            yield Detail(f"taint {taint}", values, rows=tuple(rows))

    def untolerated(self, signature: PodSignature, taints: TaintSet) -> TaintSet:
        """Return the taints that reject pods of a signature."""
        return _forbidding(taints, signature.spec.tolerations, comparisons=self._comparisons)

    def pre_score(self, signature: PodSignature) -> Status:  # noqa: ARG002 (taints count for every pod)
        """Score every pod."""
        return SUCCESS

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Count the PreferNoSchedule taints that the pod does not tolerate."""
        lookup = self._disliked.get(signature)
        if lookup is None:
            applicable = [
                each
                for each in signature.spec.tolerations
                if each.effect in ("", names.PREFER_NO_SCHEDULE)
            ]

            def disliked(taints: TaintSet) -> int:
                return sum(
                    taint.effect == names.PREFER_NO_SCHEDULE
                    and not any_tolerates(applicable, taint, comparisons=self._comparisons)
                    for taint in taints
                )

            lookup = self._disliked[signature] = Lookup(self._table.taints, disliked, np.int64)
        return lookup(nodes.rows)

    @depends_on_min_max
    def normalize(self, scores: Int64Array) -> Int64Array:
        """Fewer is better."""
        return scale_to_worst(scores)

    def _after_node_change(self, signature: PodSignature, change: Change[Node]) -> bool:
        """Return whether the taints of an added or updated node are tolerated, as they were not."""
        if change.new is None or self._is_forbidden(signature, change.new):
            return False
        return change.old is None or self._is_forbidden(signature, change.old)

    def _is_forbidden(self, signature: PodSignature, node: Node) -> bool:
        return forbids(node.spec.taints, signature.spec.tolerations, comparisons=self._comparisons)


def forbids(
    taints: Iterable[Taint], tolerations: tuple[Toleration, ...], *, comparisons: bool
) -> bool:
    """Return whether one of some taints rejects pods with these tolerations."""
    return bool(_forbidding(taints, tolerations, comparisons=comparisons))


def _forbidding(
    taints: Iterable[Taint], tolerations: tuple[Toleration, ...], *, comparisons: bool
) -> TaintSet:
    """Return the taints that reject pods with these tolerations."""
    return tuple(
        taint
        for taint in taints
        if taint.effect in (names.NO_SCHEDULE, names.NO_EXECUTE)
        and not any_tolerates(tolerations, taint, comparisons=comparisons)
    )
