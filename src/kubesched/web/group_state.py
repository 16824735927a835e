"""Groups of pods as the page shows them: how each stands, and where its pods are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubesched.api.core import Pod
from kubesched.api.scheduling import PodGroup
from kubesched.web.conditions import group_name, scheduled_condition
from kubesched.web.report import GroupDetails, GroupTold, MemberTold
from kubesched.web.state import PageState

PENDING: Final = "pending"
SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
#: Limits of one answer.
MOST_GROUPS: Final = 200
MOST_MEMBERS: Final = 2000
_CONDITION: Final = "PodGroupInitiallyScheduled"
_ORDER: Final = (UNSCHEDULABLE, PENDING, SCHEDULED)


def groups(state: PageState, *, most: int = MOST_GROUPS) -> tuple[GroupTold, ...]:
    """Return the groups, those that wait first."""
    there: list[PodGroup] = list(state.objects("PodGroup"))
    if not there:
        return ()
    there.sort(key=lambda each: (_ORDER.index(_state(each)), each.metadata.name))
    members = state.members()
    return tuple(
        _told(state, each, members.get((each.metadata.namespace, each.metadata.name), ()))
        for each in there[:most]
    )


def group(state: PageState, namespace: str, name: str) -> GroupDetails | None:
    """Return a group with its pods; None if there is no such group."""
    found = _find(state, namespace, name)
    if found is None:
        return None
    pods = state.members().get((namespace, name), ())
    told = _told(state, found, pods)
    values = {each: getattr(told, each) for each in GroupTold.__struct_fields__}
    members = [_member(state, pod) for pod in pods[:MOST_MEMBERS]]
    members.sort(key=lambda each: (bool(each.node), each.name))
    return GroupDetails(**values, members=tuple(members))


def group_of_pod(state: PageState, pod: Pod) -> GroupTold | None:
    """Return the group of a pod; None if it has none, or there is no such group."""
    name = group_name(pod)
    found = _find(state, pod.metadata.namespace, name) if name else None
    if found is None:
        return None
    return _told(state, found, state.members().get((pod.metadata.namespace, name), ()))


def _find(state: PageState, namespace: str, name: str) -> PodGroup | None:
    every: Iterable[PodGroup] = state.objects("PodGroup")
    wanted = namespace, name
    return next((e for e in every if (e.metadata.namespace, e.metadata.name) == wanted), None)


def _told(state: PageState, found: PodGroup, pods: Sequence[Pod]) -> GroupTold:
    nodes = [node for node in (state.found(pod).node for pod in pods) if node]
    spec, meta = found.spec, found.metadata
    constraints = spec.scheduling_constraints
    return GroupTold(
        namespace=meta.namespace,
        name=meta.name,
        policy="gang" if spec.scheduling_policy.gang is not None else "basic",
        min_count=found.min_count,
        pods=len(pods),
        placed=len(nodes),
        state=_state(found),
        message=_message(found, len(pods)),
        priority=spec.priority or 0,
        since=meta.creation_timestamp or "",
        topology=() if constraints is None else tuple(each.key for each in constraints.topology),
        nodes=tuple(dict.fromkeys(nodes)),
    )


def _state(found: PodGroup) -> str:
    for each in found.status.conditions:
        if each.type == _CONDITION:
            return SCHEDULED if each.status == "True" else UNSCHEDULABLE
    return PENDING


def _message(found: PodGroup, pods: int) -> str:
    for each in found.status.conditions:
        if each.type == _CONDITION and each.status != "True":
            return each.message or each.reason
    if _state(found) == PENDING and pods < found.min_count:
        return f"waits for more of its pods: {pods} of {found.min_count} are there"
    return ""


def _member(state: PageState, pod: Pod) -> MemberTold:
    said = scheduled_condition(pod)
    node = state.found(pod).node
    waits = not node and said is not None
    return MemberTold(pod.metadata.name, node, said.message if waits and said else "")
