"""How good a placement is: the node's total score beside those of the other feasible nodes.

Only the web page uses it. `grade_on` evaluates a pod again, on the state before its placement;
`scheduler/graded_cycle.py` reads the same off decisions as they are made.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np
from msgspec import Struct

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import MAX_NODE_SCORE
from kubesched.framework.runtime import Framework


class PlacementGrade(Struct, frozen=True, gc=False, rename="camel"):
    """The total score of a pod's node among its feasible nodes."""

    #: how many nodes were feasible; with one, there are no scores
    feasible: int
    #: None: not computed
    total: int | None = None
    #: total of a node to which each plugin that scores this pod gives its most
    possible: int | None = None
    #: feasible nodes with a higher total, and others with the same
    better: int = 0
    equal: int = 0
    #: difference to the best of the other nodes, negative if that one is better
    margin: int | None = None


def grade_on(framework: Framework, pod: PodInfo, node_name: str) -> PlacementGrade | None:
    """Evaluate a pod on the current state; None if the node is not feasible.

    The pod must not be on a node yet.
    """
    evaluator, state = framework.evaluator, CycleState()
    evaluator.plans.shed()
    try:
        found = evaluator.look(state, pod)
        if isinstance(found, Diagnosis):
            return None
        rows = found.rows()
        places = np.flatnonzero(rows == found.nodes.table.row_of(node_name))
        if not len(places):
            return None
        if len(rows) == 1 or not framework.plugins.score:
            return PlacementGrade(len(rows), equal=len(rows) - 1)
        totals = evaluator.totals_again(state, pod, rows)
    except AttemptError:
        return None
    return grade_among(totals, places.item(0), possible_total(framework, state.skip_score))


def grade_among(totals: Int64Array, place: int, possible: int) -> PlacementGrade:
    """Return the grade of one of at least two nodes by their totals."""
    total = int(totals[place])
    return PlacementGrade(
        feasible=len(totals),
        total=total,
        possible=possible,
        better=int(np.count_nonzero(totals > total)),
        equal=int(np.count_nonzero(totals == total)) - 1,
        margin=total - int(np.delete(totals, place).max()),
    )


def possible_total(framework: Framework, skipped: Container[str]) -> int:
    """Return the highest total that a node can have, without the plugins that skip a pod."""
    weights = (weight for each, weight in framework.plugins.score if each.name not in skipped)
    return MAX_NODE_SCORE * sum(weights)
