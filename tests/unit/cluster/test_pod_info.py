"""Pods compiled: what they share, and which versions of a pod are the same for scheduling."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Pod, PodCondition
from kubesched.cluster.pod_info import PodCompiler, PodInfo, RequestRules
from kubesched.config.features import FeatureGates
from tests.support.objects import pod

ZONE = names.LABEL_ZONE


@pytest.fixture
def compiler() -> PodCompiler:
    return PodCompiler()


def cpu_of(info: PodInfo) -> int:
    return info.requests.amounts[names.CPU]


# --- what is shared -------------------------------------------------------------------------------


def test_pods_that_require_the_same_share_their_signature(compiler: PodCompiler) -> None:
    one = compiler.pending(pod("one", cpu="1", labels={"app": "a"}))
    like_it = compiler.pending(pod("two", cpu="1", labels={"app": "b"}))
    larger = compiler.pending(pod("three", cpu="2", labels={"app": "a"}))

    assert one.signature is like_it.signature
    assert one.requests is like_it.requests
    assert one.labels is not like_it.labels
    assert one.signature is not larger.signature
    assert one.labels is larger.labels


def test_a_pod_on_a_node_has_the_signature_of_one_that_is_pending(compiler: PodCompiler) -> None:
    """But a pending pod that names its node does not: only that node will do."""
    pending, placed = compiler.pending(pod("p")), compiler.placed(pod("p", node="n1"))

    assert placed.signature is pending.signature
    assert compiler.pending(pod("p", node="n1")).signature is not pending.signature


def test_a_pod_that_was_resized_counts_as_its_node_has_it(compiler: PodCompiler) -> None:
    resized = pod("p", node="n1", cpu="1", resized_to={"cpu": "3"})

    assert cpu_of(compiler.placed(resized)) == 3000
    assert cpu_of(compiler.pending(resized)) == 1000


def test_a_resize_that_is_tried_again_is_told_from_a_pod_that_is_pending(
    compiler: PodCompiler,
) -> None:
    resizing = compiler.resizing(pod("p", node="n1"))

    assert resizing.signature.is_resize
    assert not compiler.pending(pod("p", node="n1")).signature.is_resize


@pytest.mark.parametrize("counts", [True, False])
def test_what_claims_take_of_a_node_counts_with_its_gate(counts: bool) -> None:
    gates = FeatureGates.of({"DRANodeAllocatableResources": True}) if counts else FeatureGates.of()
    assert RequestRules.of(gates).claims is counts


def test_the_object_on_a_node_names_it(compiler: PodCompiler) -> None:
    info = compiler.pending(pod("p", cpu="1"))

    assert info.object_on("n1") == pod("p", cpu="1", node="n1")
    assert info.pod.spec.node_name == ""


def test_messages_name_a_pod_with_its_namespace(compiler: PodCompiler) -> None:
    info = compiler.pending(pod("p", namespace="shop"))

    assert info.full_name == "shop/p"
    assert repr(info) == "PodInfo(shop/p)"
    assert info.priority == 0


# --- versions of a pod ----------------------------------------------------------------------------

BEFORE = pod("p", cpu="1", labels={"app": "web"}, priority=1)


@pytest.mark.parametrize(
    ("after", "want"),
    [
        pytest.param(pod("p", cpu="1", labels={"app": "web"}, priority=1), True, id="the same"),
        pytest.param(
            pod("p", cpu="1", labels={"app": "web"}, priority=1, nominated="n1"),
            True,
            id="nominated",
        ),
        pytest.param(pod("p", cpu="1", labels={"app": "db"}, priority=1), False, id="labels"),
        pytest.param(pod("p", cpu="2", labels={"app": "web"}, priority=1), False, id="requests"),
        pytest.param(pod("p", cpu="1", labels={"app": "web"}, priority=2), False, id="priority"),
    ],
)
def test_a_version_counts_as_another_if_scheduling_reads_the_same(
    compiler: PodCompiler, after: Pod, want: bool
) -> None:
    assert compiler.placed(BEFORE).counts_as(compiler.placed(after)) is want


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({"app": "web"}, True, id="none"),
        pytest.param({"app": "web", ZONE: "z"}, True, id="of the topology"),
        pytest.param({"app": "web", "other": "x"}, False, id="another one"),
        pytest.param({"app": "db", ZONE: "z"}, False, id="a changed one"),
        pytest.param({ZONE: "z"}, False, id="one less"),
    ],
)
def test_a_bound_version_may_have_more_labels_of_the_topology(
    compiler: PodCompiler, labels: dict[str, str], want: bool
) -> None:
    after = compiler.placed(pod("p", cpu="1", labels=labels, priority=1))
    assert compiler.placed(BEFORE).counts_as_bound(after) is want


def test_a_bound_version_that_takes_more_does_not_count_as_the_one_before(
    compiler: PodCompiler,
) -> None:
    after = compiler.placed(pod("p", cpu="2", labels={"app": "web"}, priority=1))
    assert not compiler.placed(BEFORE).counts_as_bound(after)


def test_pods_are_alike_but_for_names_and_nominations(compiler: PodCompiler) -> None:
    one = compiler.pending(pod("one", cpu="1", labels={"app": "web"}))

    assert compiler.pending(pod("two", cpu="1", labels={"app": "web"}, nominated="n")).alike == (
        one.alike
    )
    for other in (
        pod("two", cpu="2", labels={"app": "web"}),
        pod("two", cpu="1", labels={"app": "db"}),
        pod("two", cpu="1", labels={"app": "web"}, priority=1),
    ):
        assert compiler.pending(other).alike != one.alike


# --- victims --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "status", "deleted", "want"),
    [
        ("PreemptionByScheduler", "True", True, True),
        ("PreemptionByScheduler", "True", False, False),
        ("PreemptionByScheduler", "False", True, False),
        ("DeletionByTaintManager", "True", True, False),
    ],
)
def test_a_pod_is_being_preempted_while_it_terminates_for_that_reason(
    compiler: PodCompiler, reason: str, status: str, deleted: bool, want: bool
) -> None:
    there = pod("p", node="n1")
    condition = PodCondition(type="DisruptionTarget", status=status, reason=reason)
    at = "2026-01-01T00:00:00Z" if deleted else None
    there = replace(
        there,
        metadata=replace(there.metadata, deletion_timestamp=at),
        status=replace(there.status, conditions=(condition,)),
    )

    assert compiler.placed(there).is_being_preempted is want
