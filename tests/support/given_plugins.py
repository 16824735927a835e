"""Plugins that answer what a test says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Filter, Score
from kubesched.framework.status import Status
from kubesched.framework.verdict import Verdict


def filters(name: str, rejected: dict[str, Status]) -> type[Filter]:
    """A cluster-wide filter that turns the named nodes away, each for its own reason."""
    plugin_name = name

    class Rejecting(Filter):
        name = plugin_name

        def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
            statuses = tuple(rejected.values())
            answers = np.zeros(len(nodes), dtype=np.int32)
            for number, node_name in enumerate(rejected, start=1):
                answers[nodes.row_numbers() == nodes.table.row_of(node_name)] = number
            return Verdict(answers, statuses)

    return Rejecting


def scores(name: str, give: Callable[[NodeRows], Int64Array], **attributes: object) -> type[Score]:
    """A cluster-wide score."""
    plugin_name = name

    class Given(Score):
        name = plugin_name

        def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array:
            return give(nodes)

    for attribute, value in attributes.items():
        setattr(Given, attribute, value)
    return Given
