"""From the pods of each row that cannot come back to candidates and their costs.

Arrays are [element, place]: an element is the index of a row, a place that of a pod among those of
the row, the most important first.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array
from kubesched.cluster.budgets import Budgets
from kubesched.cluster.pod_info import PodInfo
from kubesched.plugins.lower_pods import NEVER_STARTED, PodsByRow, importance
from kubesched.plugins.verdicts import Candidate, Judged

#: Added to each priority, so that more victims are worse even if their priorities are negative.
OFFSET = 2**31


class Harm(Struct, frozen=True, eq=False):
    """Which pods would overdraw a disruption budget; they come back before the others."""

    overdrawing: BoolArray
    #: the places of each row's pods in the order of their return
    turns: IndexArray


def harm_of(budgets: Budgets, pods: PodsByRow) -> Harm | None:
    """Return which pods would overdraw a budget; None if none does."""
    if not len(budgets):
        return None
    overdrawing = np.zeros_like(pods.there)
    for element, of_row in enumerate(pods.pods):
        uids = budgets.overdrawn(of_row)
        if uids:
            overdrawing[element, : len(of_row)] = [each.uid in uids for each in of_row]
    if not overdrawing.any():
        return None
    return Harm(overdrawing, np.argsort(~overdrawing, axis=1, kind="stable"))


def judged(rows: IndexArray, pods: PodsByRow, lost: BoolArray, harm: Harm | None) -> Judged:
    """Return a candidate for each row, with the pods that it loses."""
    found = _lost_of_each(pods, lost) if harm is None else _lost_in_order(pods, lost, harm.turns)
    overdrawing = lost & harm.overdrawing if harm is not None else np.zeros_like(lost)
    costs = _costs(pods, lost, overdrawing)
    candidates = map(Candidate, rows.tolist(), found, costs[0].tolist())
    return Judged(rows, list(candidates), costs)


def _lost_of_each(pods: PodsByRow, lost: BoolArray) -> list[tuple[PodInfo, ...]]:
    places, found, first = np.nonzero(lost)[1].tolist(), [], 0
    for of_row, after in zip(pods.pods, lost.sum(axis=1).cumsum().tolist(), strict=True):
        found.append(tuple([of_row[place] for place in places[first:after]]))
        first = after
    return found


def _lost_in_order(
    pods: PodsByRow, lost: BoolArray, turns: IndexArray
) -> list[tuple[PodInfo, ...]]:
    """Return the same; of equally important pods, those that overdraw a budget come first."""
    in_turn = np.take_along_axis(lost, turns, axis=1)
    return [
        tuple(sorted((of_row[place] for place in places[out].tolist()), key=importance))
        for of_row, places, out in zip(pods.pods, turns, in_turn, strict=True)
    ]


def _costs(pods: PodsByRow, lost: BoolArray, overdrawing: BoolArray) -> Int64Array:
    """Return what `Candidate.cost` is of each row: [criterion, element]."""
    priorities = pods.priorities
    # The first one is the most important.
    highest = np.take_along_axis(priorities, lost.argmax(axis=1)[:, np.newaxis], axis=1)
    starts = np.where(lost & (priorities == highest), pods.starts, NEVER_STARTED)
    return np.stack(
        [
            np.count_nonzero(overdrawing, axis=1),
            highest[:, 0],
            np.where(lost, priorities + OFFSET, 0).sum(axis=1),
            np.count_nonzero(lost, axis=1),
            -starts.min(axis=1),
        ]
    )
