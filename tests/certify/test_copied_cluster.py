"""Answers agree if the real scheduler may have decided as ours did."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kubesched.cluster.cluster import Cluster
from kubesched.errors import ObjectError
from kubesched.framework.cycle_state import CycleState

from .copied_cluster import Answer, CopiedCluster

A, B = frozenset({"a"}), frozenset({"a", "b"})
REFUSED = Answer(messages=frozenset({"no room"}))


@pytest.mark.parametrize(
    ("ours", "theirs", "want"),
    [
        pytest.param(Answer(A), Answer(A), True, id="the only best node"),
        pytest.param(Answer(B), Answer(A), True, id="one of several best nodes"),
        pytest.param(Answer(A), Answer(frozenset({"b"})), False, id="another node"),
        pytest.param(Answer(A), REFUSED, False, id="only theirs refuses"),
        pytest.param(REFUSED, Answer(A), False, id="only ours refuses"),
        pytest.param(REFUSED, REFUSED, True, id="the same words"),
        pytest.param(REFUSED, Answer(messages=frozenset({"no space"})), False, id="other words"),
        pytest.param(
            Answer(A, claims={"c": "v1"}), Answer(A, claims={"c": "v2"}), False, id="other volumes"
        ),
        pytest.param(
            REFUSED._replace(nominated="a", victims=A),
            REFUSED._replace(nominated="a", victims=B),
            False,
            id="more victims",
        ),
        pytest.param(
            REFUSED._replace(nominated="a", victims=A),
            REFUSED._replace(nominated="b", victims=A),
            False,
            id="nominated elsewhere",
        ),
    ],
)
def test_agreement(ours: Answer, theirs: Answer, want: bool) -> None:
    assert ours.agrees_with(theirs) is want


def _refused(_state: CycleState, _cluster: Cluster, node_name: str) -> Mapping[str, object]:
    raise ObjectError(f"no claim on {node_name}")


@pytest.mark.parametrize(("chosen", "asked"), [("", {"a", "b"}), ("b", {"b"})])
def test_a_refusal_of_claims_on_a_chosen_node_or_on_any_of_the_best(
    chosen: str, asked: set[str]
) -> None:
    copied = CopiedCluster(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    )
    for name in "ab":
        status = {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}}
        copied.put("Node", {"metadata": {"name": name}, "status": status})
    pod = {"metadata": {"name": "p", "uid": "p"}, "spec": {"containers": [{"name": "c"}]}}

    answer = copied.answer(pod, chosen, _refused)

    assert answer == Answer(messages=frozenset(f"no claim on {name}" for name in asked))
