"""VolumeBinding's scores, which the gate StorageCapacityScoring can switch off."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.api.core import Pod
from kubesched.cluster.node_rows import NodeRows
from kubesched.config.args import UtilizationShapePoint, VolumeBindingArgs
from kubesched.config.features import FeatureGates
from kubesched.framework.status import SKIP
from kubesched.plugins.volume_scoring import class_scorer
from tests.support.objects import pod
from tests.support.scheduling import DEFAULT_GATES
from tests.support.storage_objects import using
from tests.support.volume_scheduling import (
    StorageObject,
    VolumeLab,
    capacity,
    claim,
    driver,
    host,
    on_hosts,
    storage_class,
    volume,
)

NOT_SCORING = FeatureGates.of({"StorageCapacityScoring": False})


def lab_of(*objects: StorageObject, args: VolumeBindingArgs | None = None) -> VolumeLab:
    nodes = [host("n1", zone="a"), host("n2", zone="b")]
    return VolumeLab(*nodes, gates=DEFAULT_GATES, args=args).have(*objects)


def scores(lab: VolumeLab, asking: Pod) -> dict[str, int]:
    state, info = lab.decide(asking)
    nodes = NodeRows.all_of(lab.cluster.table)
    assert lab.plugin.pre_score(state, info, nodes).ok
    found = lab.plugin.score(state, info, nodes)
    assert found is not None
    return dict(zip(("n1", "n2"), found.tolist(), strict=True))


def test_without_the_gate_nothing_is_scored() -> None:
    lab = VolumeLab(host("n1"), gates=NOT_SCORING).have(storage_class(), claim())
    state, info = lab.decide(using(pod(), "c"))
    assert lab.plugin.pre_score(state, info, NodeRows.all_of(lab.cluster.table)) == SKIP


@pytest.mark.parametrize("asking", [pod(), using(pod(), "c")], ids=["no volumes", "all bound"])
def test_pods_with_nothing_to_bind_score_nothing_anywhere(asking: Pod) -> None:
    lab = lab_of(storage_class(), claim(volume="v", bound=True), volume("v"))
    state, info = lab.decide(asking)
    scored = lab.framework.evaluator.plugin_scores(state, info, np.arange(2))
    [own] = [each.normalized.tolist() for each in scored if each.plugin == "VolumeBinding"]
    assert own == [0, 0]


def test_space_that_stays_free_is_good_by_default() -> None:
    lab = lab_of(
        storage_class(),
        driver(),
        claim(size="10Gi"),
        capacity("a", size="100Gi", zone="a"),
        capacity("b", size="20Gi", zone="b"),
    )
    assert scores(lab, using(pod(), "c")) == {"n1": 90, "n2": 50}


def test_volumes_of_a_class_are_made_from_the_same_space() -> None:
    lab = lab_of(
        storage_class(),
        driver(),
        claim("x", size="20Gi"),
        claim("y", size="30Gi"),
        capacity(size="100Gi"),
    )
    assert scores(lab, using(pod(), "x", "y")) == {"n1": 50, "n2": 50}


def test_existing_volumes_count_by_what_is_used_of_them() -> None:
    lab = lab_of(
        storage_class(),
        claim(size="5Gi"),
        volume("large", size="50Gi", reach=[on_hosts("n1")]),
        volume("exact", size="5Gi", reach=[on_hosts("n2")]),
    )
    assert scores(lab, using(pod(), "c")) == {"n1": 90, "n2": 0}


def test_where_there_are_existing_volumes_new_ones_do_not_count() -> None:
    lab = lab_of(
        storage_class("local", provisioner=""),
        storage_class(),
        driver(),
        claim("found", size="5Gi", storage_class="local"),
        claim("made", size="99Gi"),
        volume("v", size="10Gi", storage_class="local"),
        capacity(size="100Gi"),
    )
    assert scores(lab, using(pod(), "found", "made")) == {"n1": 50, "n2": 50}


def test_the_score_is_the_mean_over_the_classes_rounded() -> None:
    lab = lab_of(
        storage_class("one", provisioner=""),
        storage_class("two", provisioner=""),
        claim("x", size="1Gi", storage_class="one"),
        claim("y", size="1Gi", storage_class="two"),
        volume("v", size="2Gi", storage_class="one"),
        volume("w", size="100Gi", storage_class="two"),
    )
    assert scores(lab, using(pod(), "x", "y")) == {"n1": 75, "n2": 75}  # (50 + 99) / 2


def test_space_that_is_not_reported_scores_nothing() -> None:
    assert scores(lab_of(storage_class(), claim()), using(pod(), "c")) == {"n1": 0, "n2": 0}


def test_a_report_of_the_largest_volume_alone_counts_as_full() -> None:
    lab = lab_of(storage_class(), driver(), claim(), capacity(size=None, largest="10Gi"))
    assert scores(lab, using(pod(), "c")) == {"n1": 0, "n2": 0}


def test_the_curve_is_an_argument() -> None:
    packed = VolumeBindingArgs(
        shape=(
            UtilizationShapePoint(utilization=0, score=0),
            UtilizationShapePoint(utilization=100, score=10),
        )
    )
    lab = lab_of(storage_class(), driver(), claim(size="10Gi"), capacity(size="40Gi"), args=packed)
    assert scores(lab, using(pod(), "c")) == {"n1": 25, "n2": 25}


@pytest.mark.parametrize(
    ("requested", "there", "score"),
    [(0, 100, 100), (1, 3, 67), (100, 100, 0), (101, 100, 0), (5, 0, 0), (2**62, 2**63 - 1, 50)],
)
def test_one_class(requested: int, there: int, score: int) -> None:
    falling = [
        UtilizationShapePoint(utilization=0, score=10),
        UtilizationShapePoint(utilization=100, score=0),
    ]
    assert class_scorer(falling)(requested, there) == score
