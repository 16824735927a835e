"""TaintToleration, when nodes or tolerations change: was it forbidden, and is it allowed now?"""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.core import Toleration
from kubesched.config.features import FeatureGates
from kubesched.queue.events import Action
from kubesched.queue.hints import Change
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

from .hinting import added, changed_itself, helps, updated

PLUGIN = "TaintToleration"
TAINT, TOLERATION = Action.UPDATE_NODE_TAINT, Action.UPDATE_POD_TOLERATION

PLAIN = node("n")
RED, BLUE = node("n", taints=["team=red:NoSchedule"]), node("n", taints=["team=blue:NoSchedule"])
WAITING = pod("p", tolerations=[Toleration(key="team", value="blue", effect="NoSchedule")])


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(added(PLAIN), True, id="a node without taints came"),
        pytest.param(added(BLUE), True, id="a node came with a taint that is tolerated"),
        pytest.param(added(RED), False, id="a node came with a taint that is not"),
        pytest.param(
            added(node("n", taints=["team=red:PreferNoSchedule"])),
            True,
            id="a node came with a taint that does not forbid",
        ),
        pytest.param(
            added(node("n", taints=["team=red:NoExecute"])), False, id="NoExecute forbids, too"
        ),
        pytest.param(updated(TAINT, RED, BLUE), True, id="forbidden, now allowed"),
        pytest.param(updated(TAINT, RED, PLAIN), True, id="the taint is gone"),
        pytest.param(
            updated(TAINT, RED, node("n", taints=["team=red:NoSchedule", "team=pink:NoSchedule"])),
            False,
            id="forbidden before and after",
        ),
        pytest.param(updated(TAINT, BLUE, RED), False, id="allowed, now forbidden"),
        pytest.param(updated(TAINT, BLUE, PLAIN), False, id="allowed before and after"),
        pytest.param(
            updated(
                TAINT,
                node("n", taints=["a:NoSchedule", "b:NoSchedule"]),
                node("n", taints=["b:NoSchedule"]),
            ),
            False,
            id="one of two is gone",
        ),
    ],
)
def test_nodes(change: Change[Any], want: bool) -> None:
    assert helps(Lab(), PLUGIN, WAITING, change) is want


@pytest.mark.parametrize("enabled", [False, True])
def test_comparisons_count_where_their_gate_is_on(enabled: bool) -> None:
    gates = FeatureGates.of({"TaintTolerationComparisonOperators": enabled})
    waiting = pod(tolerations=[Toleration(key="load", operator="Lt", value="50")])
    change = updated(
        TAINT, node(taints=["load=80:NoSchedule"]), node(taints=["load=20:NoSchedule"])
    )
    assert helps(Lab(gates=gates), PLUGIN, waiting, change) is enabled


def test_tolerations_of_its_own() -> None:
    tolerant = pod("p", tolerations=[Toleration(key="any")])
    assert helps(Lab(), PLUGIN, pod("p"), changed_itself(TOLERATION, pod("p"), tolerant))
