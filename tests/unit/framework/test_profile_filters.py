"""The filters of a profile, asked in full: which apply, the first rejection, bounds on counts."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.api import names
from kubesched.api.core import Pod
from kubesched.cluster.node_rows import NodeRows
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.profile_filters import ProfileFilters
from kubesched.framework.status import unschedulable
from tests.support.given_plugins import filters
from tests.support.objects import must, node, pod, pod_term, spread_over
from tests.support.scheduling import Lab

NODES = (node("a"), node("b", unschedulable=True), node("c"))
ANTI = must(pod_term(names.LABEL_ZONE, app="web"))


def asked(lab: Lab, asking: Pod) -> tuple[ProfileFilters, CycleState]:
    """The filters after the PreFilter of an attempt."""
    state = CycleState()
    lab.find(asking, state)
    return lab.framework.evaluator.filters, state


@pytest.mark.parametrize(
    ("asking", "is_row_local", "is_arithmetic"),
    [
        pytest.param(pod(), True, True, id="only row-local filters"),
        pytest.param(pod(spread=[spread_over(names.LABEL_ZONE)]), False, True, id="a spread"),
        pytest.param(pod(away_from=ANTI), False, True, id="anti-affinity"),
    ],
)
def test_which_filters_apply_depends_on_what_prefilter_skips(
    asking: Pod, is_row_local: bool, is_arithmetic: bool
) -> None:
    found, state = asked(Lab(*NODES), asking)

    assert found.is_row_local(state) is is_row_local
    assert found.is_arithmetic(state) is is_arithmetic


def test_a_cluster_wide_filter_that_bounds_no_counts_is_no_arithmetic() -> None:
    found, state = asked(Lab(*NODES, plugins=[filters("F", {})]), pod())
    assert not found.is_row_local(state)
    assert not found.is_arithmetic(state)

    state.skip_filter |= {"F"}
    assert found.is_row_local(state)
    assert found.is_arithmetic(state)


def test_the_first_rejection_in_plugin_order_counts() -> None:
    lab = Lab(
        *NODES,
        plugins=[
            filters("F", {"c": unschedulable("f")}),
            filters("G", {"b": unschedulable("g"), "c": unschedulable("g")}),
        ],
        only=["NodeUnschedulable"],
    )
    found, state = asked(lab, pod())
    table, statuses = lab.cluster.table, lab.framework.evaluator.book.statuses

    numbers = found.evaluate(state, lab.pending(pod()), NodeRows.all_of(table)).tolist()
    assert numbers[0] == 0
    assert [statuses[number].plugin for number in numbers[1:]] == ["NodeUnschedulable", "F"]

    of_c = found.evaluate(state, lab.pending(pod()), NodeRows(table, np.array([2])))
    assert of_c.tolist() == numbers[2:]


def test_filters_that_the_attempt_skips_say_nothing() -> None:
    lab = Lab(*NODES, plugins=[filters("F", {"c": unschedulable("f")})], only=[])
    found, state = asked(lab, pod())
    state.skip_filter = frozenset({"F"})

    numbers = found.evaluate(state, lab.pending(pod()), NodeRows.all_of(lab.cluster.table))
    assert numbers.tolist() == [0, 0, 0]


def test_bounds_are_those_of_the_filters_that_apply_with_nominated_pods_reserved() -> None:
    lab = Lab(node("a", zone="x"), node("b", zone="y"), pod("p", node="a", labels={"app": "web"}))
    nominated = lab.pending(pod("n", labels={"app": "web"}, priority=1))
    lab.cluster.nominator.nominate(nominated, "b")
    found, state = asked(lab, pod("me", away_from=ANTI))

    bounded = found.bounded(state, lab.pending(pod("me", away_from=ANTI)), np.arange(2))
    assert bounded.counts.tolist() == [[1, 0]]
    assert bounded.reserved.tolist() == [[0, 1]]
    assert (bounded.rejections(bounded.counts) > 0).tolist() == [True, False]
    assert (bounded.rejections(bounded.counts + bounded.reserved) > 0).tolist() == [True, True]

    state.skip_filter |= {"InterPodAffinity"}
    assert found.bounded(state, lab.pending(pod("me")), np.arange(2)).counts.shape == (0, 2)
