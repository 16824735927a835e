"""Another CPU architecture is never a first choice."""

from __future__ import annotations

import pytest

from kubesched.api.core import Pod
from kubesched.explain.platform import OTHER_PLATFORM
from tests.support.objects import node, pod, requirement, requires, taint, term
from tests.support.worlds import explained

ARCH = "kubernetes.io/arch"
ARM = node("arm", labels={ARCH: "arm64"})
FULL = node("amd", cpu="1", labels={ARCH: "amd64"}, taints=[taint("gpu:NoSchedule")])


@pytest.mark.parametrize(
    "asked",
    [
        pod("p", cpu="2", node_selector={ARCH: "amd64"}),
        pod("p", cpu="2", node_affinity=requires(term(requirement(ARCH, "In", "amd64")))),
    ],
)
def test_it_comes_after_several_other_changes(asked: Pod) -> None:
    said = explained(asked, ARM, FULL)

    assert not said.changes[0].last_resort
    assert said.changes[0].steps == 2
    others = [each for each in said.changes if each.last_resort]
    assert others
    assert others == list(said.changes[-len(others) :])
    assert all(OTHER_PLATFORM in each.note for each in others)


def test_a_tolerated_taint_of_an_architecture_counts_as_well() -> None:
    tainted = node("arm", taints=[taint(f"{ARCH}=arm64:NoSchedule")])

    said = explained(pod("p", cpu="2"), tainted, node("amd", cpu="1"))

    assert said.changes[0].title == "request 1 cpu instead of 2"
    tolerating = next(each for each in said.changes if each.kind == "tolerate")
    assert tolerating.last_resort


def test_other_selectors_are_no_platform() -> None:
    said = explained(pod("p", node_selector={"disk": "ssd"}), node("n", labels={"disk": "hdd"}))

    assert said.changes[0].title == "node selector disk=hdd instead of ssd"
    assert not any(each.last_resort for each in said.changes)
