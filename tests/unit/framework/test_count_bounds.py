"""Bounds on counts: which rows pass, and what other rows have to do with it."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.api import names
from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.nominated_rows import kind_of
from kubesched.cluster.pod_counters import Selection
from kubesched.framework.count_bounds import UNLIMITED, BoundedRows, CountBounds, numbered
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Filter
from kubesched.framework.status import unschedulable
from kubesched.framework.status_book import StatusBook
from tests.support.objects import must, node, pod, pod_term, spread_over
from tests.support.scheduling import Lab

ZONE = names.LABEL_ZONE
TOO_MANY, TOO_FEW = unschedulable("too many"), unschedulable("too few")
WEB = {"app": "web"}


@pytest.fixture
def lab() -> Lab:
    """Two nodes in zone a with one and two pods of web, one in zone b with none."""
    return Lab(
        node("a1", zone="a"),
        node("a2", zone="a"),
        node("b1", zone="b"),
        *(pod(name, node=on, labels=WEB) for name, on in (("p", "a1"), ("q", "a2"), ("r", "a2"))),
    )


def bounds_of(lab: Lab, **more: object) -> list[tuple[list[int], list[int]]]:
    """The bounds of a pod, row by row: the lowest and the highest count that pass."""
    info, state = lab.pending(pod("asking", labels=WEB, **more)), CycleState()  # type: ignore[arg-type]  # any field
    evaluator = lab.framework.evaluator
    evaluator.look(state, info)
    bounded = evaluator.filters.bounded(state, info, np.arange(3))
    half = len(bounded.context()) // 2
    least, most = bounded.context()[:half], bounded.context()[half:]
    return list(zip(least.tolist(), most.tolist(), strict=True))


def of_web(lab: Lab, *, most: list[int], least: list[int] | None = None) -> BoundedRows:
    counter = lab.cluster.table.pod_counter(_web(lab))
    lowest: Int64Array | None = None if least is None else np.array(least, dtype=np.int64)
    bounds = [
        CountBounds(counter, np.full(3, UNLIMITED), TOO_FEW, lowest),
        CountBounds(counter, np.array(most, dtype=np.int64), TOO_MANY),
    ]
    found = numbered(StatusBook(), 3, "Counts", bounds)
    return BoundedRows(lab.cluster, np.arange(3), found)


def _web(lab: Lab) -> Selection:
    info = lab.pending(pod("asking", away_from=must(pod_term(ZONE, app="web"))))
    (term,) = info.terms.required_anti
    return Selection(term.selector, term.namespaces, with_terminating=True)


def test_rows_outside_of_bounds_are_rejected_for_the_first_reason(lab: Lab) -> None:
    bounded = of_web(lab, most=[0, 2, 9], least=[5, 0, 1])

    assert bounded.counts.tolist() == [[1, 2, 0], [1, 2, 0]]
    assert bounded.rejections(bounded.counts).tolist() == [1, 0, 1]
    assert bounded.rejections(np.full((2, 3), 5)).tolist() == [2, 2, 0]


def test_rows_that_pass_with_any_of_their_pods_never_reject(lab: Lab) -> None:
    assert of_web(lab, most=[0, 2, 0], least=[0, 0, 0]).never_reject().tolist() == [0, 1, 1]
    assert of_web(lab, most=[9, 9, 9], least=[0, 1, 0]).never_reject().tolist() == [1, 0, 1]


def test_nominated_pods_count_beside_those_that_are_there(lab: Lab) -> None:
    bounded = of_web(lab, most=[1, 2, 1])
    web, other = kind_of(lab.pending(pod("n", labels=WEB))), kind_of(lab.pending(pod("m")))
    bounded.reserve([(web, {0: 1}), (other, {2: 1})])

    assert bounded.reserved.tolist() == [[1, 0, 0], [1, 0, 0]]
    assert bounded.never_reject().tolist() == [0, 1, 1]
    elements = np.array([0, 2])
    assert bounded.passes(np.array([[0, 1], [0, 1]]), elements).tolist() == [1, 1]
    assert bounded.passes(np.array([[1, 2], [1, 2]]), elements).tolist() == [0, 0]


def test_anti_affinity_allows_no_pod_and_none_of_the_rows_of_the_zone_if_others_have_one(
    lab: Lab,
) -> None:
    assert bounds_of(lab, away_from=must(pod_term(ZONE, app="web"))) == [([0, 0, 0], [-1, -1, 0])]


def test_spread_leaves_what_the_smallest_other_domain_allows(lab: Lab) -> None:
    """Zone a may have none but the pod, as zone b has none: no row of it has room for others."""
    spread = [spread_over(ZONE, app="web")]
    assert bounds_of(lab, spread=spread) == [([0, 0, 0], [-1, -1, 0])]
    lab.cluster.put_pod(pod("s", node="b1", labels=WEB))
    lab.cluster.put_pod(pod("t", node="b1", labels=WEB))
    assert bounds_of(lab, spread=spread) == [([0, 0, 0], [0, 1, 2])]


def test_affinity_needs_a_pod_where_no_other_row_has_one(lab: Lab) -> None:
    """Without a pod of web in zone b, a row there needs one itself."""
    near = must(pod_term(ZONE, app="web"))
    assert bounds_of(lab, near=near) == [([0, 0, 1], [1, 2, 0])]


def test_filters_that_bound_counts_say_so(lab: Lab) -> None:
    filters = [each for each in lab.framework.plugins.filter if isinstance(each, Filter)]
    bounding = {each.name for each in filters if each.bounds_counts}
    assert bounding == {"PodTopologySpread", "InterPodAffinity"}
