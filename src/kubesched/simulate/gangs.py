"""How many more gangs like a given one fit, and where they go: each as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from kubesched.api.claim_templates import without_own_claims
from kubesched.api.core import Pod, PodSchedulingGroup
from kubesched.api.scheduling import PodGroup
from kubesched.cluster.pod_groups import key_of_group
from kubesched.errors import ObjectError, UsageError
from kubesched.explain.groups import GATE_OFF
from kubesched.simulate.placing import GroupPlacementResult, SequentialPlacer
from kubesched.simulate.report import GangHeadroom, GangPlacement
from kubesched.snapshot.world import World

DEFAULT_LIMIT = 1000


def members_of(world: World, group: PodGroup) -> list[Pod]:
    """Return the pods of a group, on nodes and not; raises ObjectError if it has none."""
    key = key_of_group(group)
    members = world.cluster.groups.members(key)
    found = {**members.placed, **members.pending}
    if not found:
        raise ObjectError(f"podgroup {key.full_name} has no pods: give a manifest of one with -f")
    return [each.pod for each in sorted(found.values(), key=lambda each: each.full_name)]


def gang_headroom(
    world: World,
    group: PodGroup,
    pods: Sequence[Pod],
    *,
    limit: int = DEFAULT_LIMIT,
    seed: int = 0,
) -> GangHeadroom:
    """Count how many more groups with pods like these fit, beside those that are there.

    If there are fewer pods than the group needs, the last of them stands for those missing.
    """
    if world.engine.groups is None:
        raise UsageError(GATE_OFF)
    wanted = [*pods, *[pods[-1]] * (group.min_count - len(pods))]
    placer = SequentialPlacer(world, seed=seed)
    found: list[GangPlacement] = []
    message = ""
    try:
        for number in range(limit):
            result = _place(placer, group, wanted, number)
            nodes = Counter(each.node for each in result.members.values() if each.node)
            if not nodes:
                message = result.message
                break
            found.append(GangPlacement(domain=_domain(world, group, nodes), nodes=dict(nodes)))
    finally:
        placer.take_all_back()
    return GangHeadroom(
        group=key_of_group(group).full_name,
        gangs=len(found),
        pods_each=len(wanted),
        min_count=group.min_count,
        at_least=len(found) == limit,
        placements=tuple(found),
        message=message,
    )


def _place(
    placer: SequentialPlacer, group: PodGroup, pods: Sequence[Pod], number: int
) -> GroupPlacementResult:
    meta = group.metadata
    name = f"{meta.name}-{number}"
    copy = replace(group, metadata=replace(meta, name=name, uid=f"headroom/{meta.uid}/{number}"))
    placer.put_group(copy)
    members = [_copy(pod, name, f"{number}-{place}") for place, pod in enumerate(pods)]
    return placer.place_group(key_of_group(copy), members)


def _copy(pod: Pod, group: str, number: str) -> Pod:
    """Return a copy of a pod as a member of another group, not tried yet."""
    meta = replace(
        pod.metadata,
        name=f"{pod.metadata.name}-{number}",
        uid=f"headroom/{pod.metadata.uid}/{number}",
    )
    member_of = PodSchedulingGroup(pod_group_name=group)
    spec = replace(pod.spec, node_name="", scheduling_group=member_of)
    status = replace(pod.status, nominated_node_name="")
    return without_own_claims(replace(pod, metadata=meta, spec=spec, status=status))


def _domain(world: World, group: PodGroup, nodes: Counter[str]) -> str:
    """Return the value of the group's topology label on its nodes, "" if it has none."""
    constraints = group.spec.scheduling_constraints
    row = world.table.row_of(next(iter(nodes)))
    if constraints is None or not constraints.topology or row is None:
        return ""
    labels = world.table.node_at(row).metadata.labels or {}
    return labels.get(constraints.topology[0].key, "")
