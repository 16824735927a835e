"""ImageLocality: 100 * (clamp(sum, 23Mi, 1000Mi * images) - 23Mi) / (max - 23Mi)."""

from __future__ import annotations

import pytest

from kubesched.api.core import Pod
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from tests.support.evaluating import feasible_rows
from tests.support.objects import MI, container, node, pod
from tests.support.scheduling import Lab, framework_of

PLUGIN = "ImageLocality"


@pytest.mark.parametrize(
    ("asking", "want"),
    [
        # 300 on one of two nodes counts 150: 100 * 127 / 977
        pytest.param(pod(image="rare:1"), [12, 0], id="on one node of two"),
        # 100 * 277 / 977
        pytest.param(pod(image="common:1"), [28, 28], id="on both"),
        pytest.param(pod(image="tiny:1"), [0, 0], id="too small to matter"),
        pytest.param(pod(image="huge:1"), [100, 100], id="as much as counts"),
        pytest.param(pod(image="unknown:1"), [0, 0], id="on none"),
        pytest.param(pod(), [0, 0], id="no image"),
        pytest.param(pod(image="untagged"), [28, 28], id="no tag means latest"),
        # 600 of at most 2000: 100 * 577 / 1977
        pytest.param(
            pod(containers=[container("a", image="common:1"), container("b", image="common:1")]),
            [29, 29],
            id="twice the same",
        ),
        # init containers count like others
        pytest.param(
            pod(image="common:1", init_containers=[container("i", image="common:1")]),
            [29, 29],
            id="init container",
        ),
        # a volume counts like a container: 600 of at most 2000
        pytest.param(
            pod(image="common:1", image_volumes=["untagged"]), [29, 29], id="image volume"
        ),
        # 150 + 300: 100 * 427 / 1977; 300: 100 * 277 / 1977
        pytest.param(
            pod(containers=[container("a", image="rare:1"), container("b", image="common:1")]),
            [21, 14],
            id="two images",
        ),
    ],
)
def test_scores(asking: Pod, want: list[int]) -> None:
    everywhere = {
        "common:1": 300 * MI,
        "untagged:latest": 300 * MI,
        "tiny:1": 22 * MI,
        "huge:1": 5000 * MI,
    }
    lab = Lab(node("a", images={**everywhere, "rare:1": 300 * MI}), node("b", images=everywhere))
    assert lab.raw_scores(PLUGIN, asking) == {"a": want[0], "b": want[1]}


def test_a_pod_without_images_scores_nothing() -> None:
    lab = Lab(node("a", images={"data:latest": 900 * MI}))
    assert lab.raw_scores(PLUGIN, pod(containers=[])) == {"a": 0}
    # 100 * 877 / 977
    assert lab.raw_scores(PLUGIN, pod(containers=[], image_volumes=["data"])) == {"a": 89}


def test_the_scaled_size_is_cut_to_whole_bytes_for_each_image() -> None:
    # 24Mi + 1 byte on one of three nodes, three times over; 8Mi + 0.33 bytes is 8Mi each
    size = 24 * MI + 1
    lab = Lab(node("a", images={"x:1": size}), node("b"), node("c"))
    many = [container(f"c{number}", image="x:1") for number in range(20)]
    # 160 of at most 20000: 100 * 137 / 19977
    assert lab.raw_scores(PLUGIN, pod(containers=many))["a"] == 0
    lab.cluster.remove_node("b")
    lab.cluster.remove_node("c")
    # 480Mi + 20 bytes: 100 * 457 / 19977 = 2.28…
    assert lab.raw_scores(PLUGIN, pod(containers=many)) == {"a": 2}


def test_scores_follow_how_widely_an_image_is_spread() -> None:
    lab = Lab(*(node(f"n{number}") for number in range(8)))
    lab.cluster.put_node(node("n0", images={"web:1": 800 * MI}))
    asking = pod(image="web:1")
    # 800 / 8 = 100: 100 * 77 / 977
    assert lab.scores(PLUGIN, asking)["n0"] == 7
    lab.cluster.put_node(node("n5", images={"web:1": 800 * MI}))
    # 200: 100 * 177 / 977, for the node that did not change too
    assert lab.scores(PLUGIN, asking)["n0"] == 18
    lab.cluster.remove_node("n7")
    # 800 * 2 / 7 = 228.57…: 100 * 205.57 / 977
    assert lab.scores(PLUGIN, asking)["n0"] == 21


def test_scores_follow_images_that_come_and_go_in_equal_numbers() -> None:
    """As many images and nodes as before, but others."""
    large = 5000 * MI
    lab = Lab(*(node(f"n{number:02}") for number in range(16)))

    def hold(name: str, *images: str) -> None:
        lab.cluster.put_node(node(name, images={f"{each}:1": large for each in images}))

    for name, image in (("n01", "b"), ("n03", "a"), ("n04", "a")):
        hold(name, image)
    asking = pod(containers=[container(each, image=f"{each}:1") for each in "abc"])
    lab.scores(PLUGIN, asking)
    for name, *images in (("n03",), ("n04",), ("n02", "b"), ("n05", "c")):
        hold(name, *images)

    evaluator = framework_of(lab.cluster).evaluator
    info, state = lab.pending(asking), CycleState()
    rows = feasible_rows(evaluator, state, info)
    assert not isinstance(rows, Diagnosis)
    afresh = {each.plugin: each for each in evaluator.plugin_scores(state, info, rows)}
    assert list(lab.scores(PLUGIN, asking, raw=True).values()) == afresh[PLUGIN].raw.tolist()
    assert any(afresh[PLUGIN].raw)
