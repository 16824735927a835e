"""What is known of pods goes with them: rollouts, sizes and nodes may change for ever."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

from kubesched.api import names
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plan import PLANS_WITHOUT_PODS
from tests.support.evaluating import feasible_rows, total_scores
from tests.support.objects import node, on_node, pod, pod_term, should, spread_over
from tests.support.scheduling import Lab

NODES = 6
PODS = 8
#: As many as let every cache that is bounded by a small number fill up.
WARM_UP = 2 * PLANS_WITHOUT_PODS // PODS + 70
GENERATIONS = 60


def test_a_plan_goes_with_the_last_pod_of_its_signature() -> None:
    lab = Lab(node("n"))
    plans = lab.framework.evaluator.plans
    infos = [lab.pending(pod(cpu=f"{number}m")) for number in range(1, PLANS_WITHOUT_PODS + 11)]
    signatures = [weakref.ref(info.signature) for info in infos]
    for info in infos:
        plans.plan(info.signature)
    assert len(plans) == len(infos)
    gc.disable()
    try:
        del info
        infos.clear()
        alive = [signature for signature in signatures if signature() is not None]
        assert alive == signatures[-PLANS_WITHOUT_PODS:], "the last ones may come again"
        assert len(plans) == PLANS_WITHOUT_PODS
    finally:
        gc.enable()


@pytest.mark.parametrize("constrained", [False, True], ids=["plain", "spread and anti-affinity"])
def test_rollouts_leave_nothing_behind(constrained: bool) -> None:
    """Each generation of pods has labels and an image that were never there before."""
    lab = Lab(*(node(f"n{number}", zone=f"z{number % 3}") for number in range(NODES)))

    def generation(version: int) -> None:
        labels = {"app": "web", "hash": str(version)}
        spread, apart = [], None
        if constrained:
            spread = [spread_over(names.LABEL_ZONE, soft=True, app="web", hash=str(version))]
            apart = should((1, pod_term(names.LABEL_HOSTNAME, **labels)))
        placed = []
        for number in range(PODS):
            unbound = pod(
                f"p{number}-{version}",
                cpu=f"{10 * (number + 1)}m" if number else "100",  # the first one fits nowhere
                image=f"web:{version}",
                labels=labels,
                spread=spread,
                away_from=apart,
            )
            info, state = lab.pending(unbound), CycleState()
            rows = feasible_rows(lab.framework.evaluator, state, info)
            if isinstance(rows, Diagnosis):
                rows.message()
                continue
            total_scores(lab.framework.evaluator, state, info, rows)
            placed.append(on_node(unbound, lab.cluster.table.name_at(rows[0].item())))
            lab.cluster.put_pod(placed[-1])
        for each in placed:
            lab.cluster.remove_pod(each.metadata.uid)

    def blocks_after(versions: range) -> int:
        for version in versions:
            generation(version)
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks_after(range(WARM_UP))
    after = blocks_after(range(WARM_UP, WARM_UP + GENERATIONS))
    assert (after - before) / (GENERATIONS * PODS) < 0.5
