"""TaintToleration: forbidding taints turn pods away, disliked ones cost points."""

from __future__ import annotations

import weakref

import pytest

from kubesched.api.core import Toleration
from kubesched.config.features import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import unresolvable
from tests.support.evaluating import feasible_rows
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

REJECTED = unresolvable("node(s) had untolerated taint(s)")


@pytest.mark.parametrize(
    ("taints", "tolerations", "fits"),
    [
        pytest.param([], [], True, id="no taint"),
        pytest.param(["a=b:NoSchedule"], [], False, id="NoSchedule"),
        pytest.param(["a=b:NoExecute"], [], False, id="NoExecute"),
        pytest.param(["a=b:PreferNoSchedule"], [], True, id="PreferNoSchedule only costs"),
        pytest.param(["a=b:Unheard"], [], True, id="an effect that means nothing"),
        pytest.param(["a=b:NoSchedule"], [Toleration(key="a", value="b")], True, id="tolerated"),
        pytest.param(
            ["a=b:NoSchedule", "c:NoExecute"],
            [Toleration(key="a", value="b")],
            False,
            id="one of two is not enough",
        ),
        pytest.param(
            ["a=b:NoSchedule", "c:NoExecute"],
            [Toleration(key="a", value="b"), Toleration(key="c", operator="Exists")],
            True,
            id="each by another toleration",
        ),
    ],
)
def test_filter(taints: list[str], tolerations: list[Toleration], fits: bool) -> None:
    lab = Lab(node("n", taints=taints))
    found = lab.rejections("TaintToleration", pod(tolerations=tolerations))
    assert found == ({} if fits else {"n": REJECTED})


def test_comparisons_need_their_gate() -> None:
    asking = pod(tolerations=[Toleration(key="load", operator="Lt", value="50")])
    nodes = (
        node("idle", taints=["load=10:NoSchedule"]),
        node("busy", taints=["load=90:NoSchedule"]),
    )
    on = FeatureGates.of({"TaintTolerationComparisonOperators": True})
    assert Lab(*nodes, gates=on).rejections("TaintToleration", asking) == {"busy": REJECTED}
    assert set(Lab(*nodes).rejections("TaintToleration", asking)) == {"idle", "busy"}


def test_fewer_disliked_taints_are_better() -> None:
    lab = Lab(
        node("none"),
        node("one", taints=["a:PreferNoSchedule"]),
        node("three", taints=["a:PreferNoSchedule", "b:PreferNoSchedule", "c:PreferNoSchedule"]),
    )
    assert lab.scores("TaintToleration", pod(), raw=True) == {"none": 0, "one": 1, "three": 3}
    # 100 - 100 * 1 / 3 = 100 - 33
    assert lab.scores("TaintToleration", pod()) == {"none": 100, "one": 67, "three": 0}


def test_without_disliked_taints_all_nodes_are_best() -> None:
    assert Lab(node("a"), node("b")).scores("TaintToleration", pod()) == {"a": 100, "b": 100}


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        pytest.param(Toleration(key="a", operator="Exists"), 1, id="any effect"),
        pytest.param(
            Toleration(key="a", operator="Exists", effect="PreferNoSchedule"), 1, id="this effect"
        ),
        pytest.param(
            Toleration(key="a", operator="Exists", effect="NoSchedule"), 2, id="another effect"
        ),
        pytest.param(Toleration(operator="Exists"), 0, id="everything"),
    ],
)
def test_tolerated_taints_are_not_disliked(toleration: Toleration, want: int) -> None:
    lab = Lab(node("n", taints=["a=1:PreferNoSchedule", "b:PreferNoSchedule"]))
    asking = pod(tolerations=[toleration])
    assert lab.raw_scores("TaintToleration", asking) == {"n": want}


def test_signatures_are_released() -> None:
    lab = Lab(node("a"))
    info = lab.pending(pod(cpu="1"))
    signature = weakref.ref(info.signature)
    feasible_rows(lab.framework.evaluator, CycleState(), info)
    lab.framework.evaluator.plans.clear()
    del info
    assert signature() is None
