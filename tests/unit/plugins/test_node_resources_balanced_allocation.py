"""NodeResourcesBalancedAllocation: 50 + (50 + balance with the pod - balance without it) / 2."""

from __future__ import annotations

import pytest

from kubesched.api.core import Node, Pod
from kubesched.config.args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

PLUGIN = "NodeResourcesBalancedAllocation"
GPU = "example.com/gpu"


def _score(
    asking: Pod, *objects: Node | Pod, resources: tuple[str, ...] = ("cpu", "memory")
) -> int:
    specs = tuple(ResourceSpec(name=name) for name in resources)
    args = NodeResourcesBalancedAllocationArgs(resources=specs)
    lab = Lab(*objects, args={PLUGIN: args})
    return lab.raw_scores(PLUGIN, asking)["n"]


@pytest.mark.parametrize(
    ("there", "asking", "want"),
    [
        # 100 before and after
        pytest.param([], pod(cpu="1", memory="2Gi"), 75, id="an even pod changes nothing"),
        # shares .25 and .5: balance 87.5, cut to 87; 50 + (50 + 87 - 100) / 2
        pytest.param([], pod(cpu="1", memory="4Gi"), 68, id="an uneven pod"),
        # shares 1 and 0: balance 50; 50 + (50 + 50 - 100) / 2
        pytest.param([], pod(cpu="4"), 50, id="the worst that can happen"),
        # before .5 and 0: 75; after .5 and .5: 100; 50 + (50 + 100 - 75) / 2
        pytest.param([pod("a", node="n", cpu="2")], pod(memory="4Gi"), 87, id="it evens out"),
        # before 1 and 0: 50; after 1 and 1: 100
        pytest.param([pod("a", node="n", cpu="4")], pod(memory="8Gi"), 100, id="the best"),
        # more than all is all: before 1 and 0, after 1 and .5: 75; 50 + (50 + 75 - 50) / 2
        pytest.param([pod("a", node="n", cpu="9")], pod(memory="4Gi"), 87, id="more than all"),
        # pods without requests count nothing here
        pytest.param([pod("a", node="n")], pod(cpu="1", memory="2Gi"), 75, id="real requests"),
        # pod-level requests count here: shares .5 and .5
        pytest.param(
            [], pod(cpu="1", pod_level={"cpu": "2", "memory": "4Gi"}), 75, id="pod as a whole"
        ),
    ],
)
def test_two_resources(there: list[Pod], asking: Pod, want: int) -> None:
    assert _score(asking, node("n"), *there) == want


def test_three_resources_use_the_standard_deviation() -> None:
    # shares .25, .5, .75: deviation sqrt(.125 / 3) = .2041…, balance 79; 50 + (50 + 79 - 100) / 2
    asking = pod(cpu="1", memory="4Gi", requests={GPU: "3"})
    offers = node("n", resources={GPU: "4"})
    assert _score(asking, offers, resources=("cpu", "memory", GPU)) == 64


def test_resources_that_the_node_does_not_offer_do_not_count() -> None:
    asking = pod(cpu="1", memory="4Gi", requests={GPU: "3"})
    others = node("other", resources={GPU: "4"})
    assert _score(asking, node("n"), others, resources=("cpu", "memory", GPU)) == 68


def test_one_resource_is_always_balanced() -> None:
    assert _score(pod(cpu="3"), node("n"), resources=("cpu",)) == 75


@pytest.mark.parametrize(
    ("asking", "skips"),
    [
        pytest.param(pod(), True, id="requests nothing"),
        pytest.param(pod(cpu="0"), True, id="requests zero"),
        pytest.param(pod(requests={"ephemeral-storage": "1Gi"}), True, id="requests other things"),
        pytest.param(pod(memory="1"), False, id="requests a little"),
        pytest.param(pod(pod_level={"cpu": "1"}), False, id="requests as a whole"),
    ],
)
def test_pods_that_request_none_of_the_resources_are_skipped(asking: Pod, skips: bool) -> None:
    lab = Lab(node("a", resources={"ephemeral-storage": "2Gi"}), node("b"))
    assert (PLUGIN not in lab.plugin_scores(asking)) is skips
