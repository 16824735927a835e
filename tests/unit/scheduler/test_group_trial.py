"""Trials of groups: shortcuts in the search for victims find what trying all members again does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.group import Assignment, GroupInfo
from kubesched.framework.status import Status
from kubesched.plugins.group_preemption import GroupVictims, GroupVictimSearch
from kubesched.scheduler.group_trial import GroupTrialRun
from tests.support.group_objects import ZONE, GroupLab, key, member, pod_group
from tests.support.objects import must, node, pod, pod_term, spread_over

HOST = "kubernetes.io/hostname"


class FullTrial(GroupTrialRun):
    """Tries all members again for each unit."""

    def concerns(
        self, assigned: Sequence[Assignment], changed: frozenset[int], pods: Sequence[PodInfo]
    ) -> bool:
        return True

    def still_fits(
        self, assigned: Sequence[Assignment], changed: frozenset[int], pods: Sequence[PodInfo]
    ) -> bool:
        everywhere = frozenset(range(self._cluster.table.size))
        return self._fit(self._of(assigned).in_turn, everywhere)


#: What members, and pods of lower priority, may ask of others.
RELATIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "near a": {"near": must(pod_term(ZONE, app="a"))},
    "beside a": {"near": must(pod_term(HOST, app="a"))},
    "near b": {"near": must(pod_term(ZONE, app="b"))},
    "away from a": {"away_from": must(pod_term(ZONE, app="a"))},
    "not beside b": {"away_from": must(pod_term(HOST, app="b"))},
    "spread": {"spread": [spread_over(ZONE, max_skew=1, app="b")]},
}
APPS = st.sampled_from(["a", "b", "c"])
LOW = st.tuples(
    st.integers(0, 3), APPS, st.sampled_from(["none", "none", "away from a", "not beside b"])
)


def nodes() -> list[Node]:
    return [
        node(f"n{number}", cpu="3", labels={ZONE: f"z{number % 2}", HOST: f"n{number}"})
        for number in range(4)
    ]


def found_by(
    trial: type[GroupTrialRun], lab: GroupLab, members: list[Pod]
) -> tuple[list[str], dict[str, str]] | str:
    """Return victims and nominations, or why there are none."""
    infos = [lab.cluster.compiler.pending(each) for each in members]
    for info in infos:
        lab.cluster.groups.put_pending(info)
    group: GroupInfo = lab.info(key(), infos)
    lab.cycle.members.rng.seed(7)
    search = GroupVictimSearch(lab.cluster, lab.forest)
    found = search.search(group, trial(lab.cycle, lab.cluster, lab.framework, group))
    lab.cluster.validate()
    if isinstance(found, Status):
        return found.message
    assert isinstance(found, GroupVictims)
    return [each.full_name for each in found.victims], dict(found.nominations)


@given(
    low=st.lists(LOW, max_size=9),
    relation=st.sampled_from(sorted(RELATIONS)),
    app=APPS,
    count=st.integers(1, 3),
    cpu=st.integers(1, 3),
    nominated=st.one_of(st.none(), st.integers(0, 3)),
)
@settings(max_examples=300, deadline=None)
def test_shortcuts_find_the_same_victims(  # noqa: PLR0917
    low: list[tuple[int, str, str]],
    relation: str,
    app: str,
    count: int,
    cpu: int,
    nominated: int | None,
) -> None:
    there = [
        pod(
            f"low{number}",
            cpu="1",
            node=f"n{on}",
            labels={"app": of},
            priority=number % 2,
            **RELATIONS[asks],
        )
        for number, (on, of, asks) in enumerate(low)
    ]
    members = [
        member(f"m{n}", cpu=str(cpu), priority=10, labels={"app": app}, **RELATIONS[relation])
        for n in range(count)
    ]
    lab = GroupLab(*nodes(), *there, pod_group(gang=count, priority=10))
    if nominated is not None:
        other = lab.cluster.compiler.pending(pod("other", cpu="1", priority=20))
        lab.cluster.nominator.nominate(other, f"n{nominated}")

    assert found_by(GroupTrialRun, lab, members) == found_by(FullTrial, lab, members)
