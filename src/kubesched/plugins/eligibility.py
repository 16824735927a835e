"""The rows that a pod's node selector, affinity and tolerations allow, as cached columns.

Every cycle needs them, by signature, and they change only with nodes.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from kubesched.api import names
from kubesched.api.core import Taint
from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.incremental import Column
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_signature import PodSignature, any_tolerates
from kubesched.cluster.vocabulary import Lookup


class Eligibility:
    """Cached columns for the signatures in use."""

    def __init__(self, table: NodeTable, *, comparisons: bool) -> None:
        self._table = table
        self._comparisons = comparisons
        self._matching: WeakKeyDictionary[PodSignature, Column[np.bool_]] = WeakKeyDictionary()
        self._tolerated: WeakKeyDictionary[PodSignature, Column[np.bool_]] = WeakKeyDictionary()

    def restricts(self, signature: PodSignature) -> bool:
        """Return whether the pod has a node selector or affinity to nodes."""
        spec = signature.spec
        return bool(spec.node_selector or (spec.affinity and spec.affinity.node_affinity))

    def matches_affinity(self, signature: PodSignature) -> BoolArray | None:
        """Return which rows match the pod's node selector and affinity; None if it has none."""
        if not self.restricts(signature):
            return None
        column = self._matching.get(signature)
        if column is None:
            selector = signature.node_selector
            column = Column(self._table, self._table.node_changes, selector)
            self._matching[signature] = column
        return column.current()

    def tolerated(self, signature: PodSignature) -> BoolArray:
        """Return the rows whose NoSchedule and NoExecute taints the pod tolerates."""
        column = self._tolerated.get(signature)
        if column is None:
            # Not the signature itself: the column must not keep the signature alive.
            tolerations, comparisons = signature.spec.tolerations, self._comparisons

            def all_tolerated(taints: tuple[Taint, ...]) -> bool:
                return all(
                    taint.effect not in (names.NO_SCHEDULE, names.NO_EXECUTE)
                    or any_tolerates(tolerations, taint, comparisons=comparisons)
                    for taint in taints
                )

            lookup = Lookup(self._table.taints, all_tolerated, np.bool_)
            column = Column(
                self._table,
                self._table.node_changes,
                lambda nodes: lookup(nodes.rows),
            )
            self._tolerated[signature] = column
        return column.current()
