"""Changes that would place a group, each tried on the engine with the whole group.

group      fewer members needed, no topology, members that are missing
members    smaller or less demanding, all that are alike
cluster    pods evicted, nodes back in use, more nodes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from kubesched.api.claim_templates import without_own_claims
from kubesched.api.core import Node, Pod
from kubesched.api.scheduling import GangPolicy, PodGroup
from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.pod_info import PodInfo
from kubesched.explain import commands, requests, surroundings, wishes
from kubesched.explain.case import Case, Proposal
from kubesched.explain.group_case import GroupCase, GroupProposal
from kubesched.explain.report import HelpfulChange, Victim
from kubesched.framework.detail import listed
from kubesched.framework.group import Assignment, GroupInfo
from kubesched.plugins.group_preemption import GroupVictims, GroupVictimSearch
from kubesched.plugins.victim_units import VictimUnit, VictimUnits
from kubesched.scheduler.group_cycle import place_member
from kubesched.scheduler.group_dry_run import GroupDecision, SurveyedPlacement
from kubesched.snapshot.world import is_bound_to_its_node

COST_FEWER_MEMBERS = 0.3
COST_MISSING = 0.1
COST_GATES = 0.1
COST_TOPOLOGY = 0.35
_MAX_CHANGES = 12
_EXAMPLES = 3
_MAX_SHAPES = 3
_MAX_PLACEMENTS = 3
_MAX_NODES = 64
_MAX_UNITS = 48


def helpful(
    case: GroupCase,
    own: GroupInfo,
    surveyed: Sequence[SurveyedPlacement],
    decision: GroupDecision,
) -> tuple[HelpfulChange, ...]:
    """Return the changes after which enough of a PodGroup fit, the smallest first."""
    best = max(surveyed, key=lambda each: each.fitting, default=None)
    if decision.gate.ok:
        proposals = chain(
            _of_group(case, own, best),
            _of_members(case, own, best),
            _evictions(case, own, surveyed, decision),
            _more_nodes(case, own, best),
        )
    else:
        proposals = chain(_missing(case, own), _gates(own))
    found: dict[str, HelpfulChange] = {}
    for proposal in proposals:
        assigned = () if proposal.title in found else case.outcome(proposal, own.key)
        if assigned:
            found[proposal.title] = _change(case, proposal, assigned)
    ranked = sorted(found.values(), key=lambda each: (each.cost, each.title))
    return tuple(ranked[:_MAX_CHANGES])


def _change(
    case: GroupCase, proposal: GroupProposal, assigned: Sequence[Assignment]
) -> HelpfulChange:
    known = case.world.table.row_of
    nodes = list(dict.fromkeys(each.node_name for each in assigned))
    there = [name for name in nodes if known(name) is not None]
    evicting = commands.evict(each.pod for each in proposal.evict) if proposal.evict else None
    return HelpfulChange(
        kind=proposal.kind,
        title=proposal.title,
        nodes=len(nodes),
        examples=tuple(there[:_EXAMPLES]),
        cost=round(proposal.cost, 3),
        evict=tuple(Victim(each.full_name, each.priority) for each in proposal.evict),
        commands=proposal.commands if evicting is None else evicting.commands,
        note=proposal.note if evicting is None else evicting.note,
    )


# --- the group itself ---------------------------------------------------------------------------


def _of_group(
    case: GroupCase, own: GroupInfo, best: SurveyedPlacement | None
) -> Iterator[GroupProposal]:
    group = own.group
    if not isinstance(group, PodGroup):
        return
    gang = group.spec.scheduling_policy.gang
    placed = case.dry_run.forest.groups.members(own.key).placed_count
    fits = 0 if best is None else placed + best.fitting
    if gang is not None and 0 < fits < gang.min_count:
        policy = replace(group.spec.scheduling_policy, gang=GangPolicy(min_count=fits))
        yield GroupProposal(
            kind="minCount",
            title=f"minCount {fits} instead of {gang.min_count}",
            cost=COST_FEWER_MEMBERS + (gang.min_count - fits) / gang.min_count,
            group=replace(group, spec=replace(group.spec, scheduling_policy=policy)),
            commands=commands.need_fewer(group, fits).commands,
        )
    if group.spec.scheduling_constraints is not None:
        yield GroupProposal(
            kind="topology",
            title=f"drop the topology constraint on {own.topology_key}",
            cost=COST_TOPOLOGY,
            group=replace(group, spec=replace(group.spec, scheduling_constraints=None)),
            note=f"Create PodGroup {own.key.name} anew without spec.schedulingConstraints.",
        )


def _missing(case: GroupCase, own: GroupInfo) -> Iterator[GroupProposal]:
    """Propose the members that the group waits for, like the last of those that are there."""
    needed = own.group.min_count
    count = case.dry_run.forest.groups.members(own.key).count
    if count >= needed or not own.pods:
        return
    missing = needed - count
    more = tuple(_another(own.pods[-1].pod, number) for number in range(missing))
    yield GroupProposal(
        kind="members",
        title=f"create {missing} more {_pods(missing)}: {count} of {needed} are there",
        cost=COST_MISSING,
        more=more,
    )


def _pods(count: int) -> str:
    return "pod" if count == 1 else "pods"


def _another(pod: Pod, number: int) -> Pod:
    name = f"{pod.metadata.name}-more-{number}"
    meta = replace(pod.metadata, name=name, uid=f"{pod.metadata.uid}/more-{number}")
    return without_own_claims(replace(pod, metadata=meta))


def _gates(own: GroupInfo) -> Iterator[GroupProposal]:
    """Propose to remove the scheduling gates of members."""
    gated = {pod.uid: pod.pod for pod in own.pods if pod.pod.spec.scheduling_gates}
    if not gated:
        return
    names = sorted({gate.name for pod in gated.values() for gate in pod.spec.scheduling_gates})
    yield GroupProposal(
        kind="schedulingGates",
        title=f"remove scheduling gate {', '.join(names)} of {len(gated)} {_pods(len(gated))}",
        cost=COST_GATES,
        pods={
            uid: replace(pod, spec=replace(pod.spec, scheduling_gates=()))
            for uid, pod in gated.items()
        },
        note="The controller that set a gate removes it when it is ready.",
    )


# --- its members --------------------------------------------------------------------------------


def _of_members(
    case: GroupCase, own: GroupInfo, best: SurveyedPlacement | None
) -> Iterator[GroupProposal]:
    """Propose what would help the first member without a node, for all members like it."""
    lacking = [] if best is None else [e.pod for e in best.members if not e.decision.node_name]
    if best is None or not lacking:
        return
    pod = lacking[0]
    for proposal in _for_one(case, best, pod):
        alike = {each.uid: each.pod for each in own.pods if each.pod.spec == pod.pod.spec}
        changed = {
            uid: replace(each, spec=replace(proposal.pod.spec, node_name=""))
            for uid, each in alike.items()
        }
        is_of_node = bool(proposal.nodes)
        of_all = "" if is_of_node or len(alike) == 1 else f" ({len(alike)} members)"
        yield GroupProposal(
            kind=proposal.kind,
            title=f"{proposal.title}{of_all}",
            cost=proposal.cost,
            pods={} if is_of_node else changed,
            nodes=proposal.nodes,
            commands=_uncordoning(proposal.nodes),
            note="" if is_of_node else "Pods cannot change these fields: create them anew.",
        )


def _uncordoning(nodes: Sequence[Node]) -> tuple[str, ...]:
    return commands.uncordon(nodes[0].metadata.name).commands if len(nodes) == 1 else ()


def _for_one(case: GroupCase, best: SurveyedPlacement, pod: PodInfo) -> list[Proposal]:
    """Return what would help one member, with those placed that fit."""
    with case.world.cluster.transaction() as tx:
        for each in best.members:
            if each.decision.node_name:
                assigned = Assignment(each.pod, each.decision.node_name, each.decision.state)
                place_member(case.framework, assigned, tx)
        alone = Case(case.world, case.framework, pod.pod)
        proposals = chain(
            requests.proposals(alone), wishes.proposals(alone), surroundings.nodes_back(alone)
        )
        return [each for each in proposals if len(alone.outcome(each))]


# --- the cluster --------------------------------------------------------------------------------


def _evictions(
    case: GroupCase,
    own: GroupInfo,
    surveyed: Sequence[SurveyedPlacement],
    decision: GroupDecision,
) -> Iterator[GroupProposal]:
    """Propose what preemption does by itself, or victims that it spares, on one placement each.

    None of the group's own pods, nor of a higher priority: these would be scheduled first again.
    """
    root, cluster = case.root, case.world.cluster
    if decision.victims:
        nodes = {cluster.node_of(each.uid) or "" for each in decision.victims}
        yield _eviction(case, own, tuple(decision.victims), nodes)
        return
    priority = root.group.spec.priority or 0
    spec = replace(root.group.spec, priority=priority + 1)
    foremost = replace(root, group=replace(root.group, spec=spec))
    mine = {pod.uid for pod in case.dry_run.forest.placed(root.key)}

    def may_go(pod: PodInfo) -> bool:
        is_bound = is_bound_to_its_node(pod.pod)
        return pod.uid not in mine and not is_bound and pod.priority <= priority

    search = GroupVictimSearch(cluster, case.dry_run.forest)
    trial = case.dry_run.trial(case.framework, foremost)
    is_found = False
    for each in sorted(surveyed, key=lambda each: -each.fitting)[:_MAX_PLACEMENTS]:

        def is_there(pod: PodInfo, rows: BoolArray = each.placement.rows) -> bool:
            row = cluster.table.row_of(cluster.node_of(pod.uid) or "")
            return row is not None and bool(rows[row]) and may_go(pod)

        found = search.search(foremost, trial, is_there)
        if isinstance(found, GroupVictims):
            is_found = True
            yield _eviction(case, own, found.victims, set(found.nominations.values()))
    if is_found:
        return
    # Devices of evicted pods are not free in that search, as they are not for kube-scheduler.
    victims = _users_of_devices(case, may_go) if _claims_devices(own) else ()
    if victims:
        yield _eviction(case, own, victims, set())


def _claims_devices(own: GroupInfo) -> bool:
    return any(pod.pod.spec.resource_claims for pod in own.pods)


def _users_of_devices(case: GroupCase, may_go: Callable[[PodInfo], bool]) -> tuple[PodInfo, ...]:
    """Return as few units with claims as have to go, the least important first."""
    cluster = case.world.cluster
    everywhere = (pod for pods in cluster.table.pods for pod in pods.values())
    units = [
        unit
        for unit in VictimUnits(case.dry_run.forest).of(everywhere)
        if any(pod.pod.spec.resource_claims for pod in unit.pods) and all(map(may_go, unit.pods))
    ]
    units.sort(key=lambda unit: unit.importance, reverse=True)

    def fits(without: Sequence[VictimUnit]) -> bool:
        evict = tuple(pod for unit in without for pod in unit.pods)
        proposal = GroupProposal(kind="evict", title="", cost=0.0, evict=evict)
        return bool(case.outcome(proposal, case.root.key))

    for count in range(1, min(len(units), _MAX_UNITS) + 1):
        if fits(units[:count]):
            chosen = units[:count]
            for unit in tuple(chosen):
                rest = [each for each in chosen if each is not unit]
                chosen = rest if fits(rest) else chosen
            return tuple(pod for unit in chosen for pod in unit.pods)
    return ()


def _eviction(
    case: GroupCase, own: GroupInfo, victims: tuple[PodInfo, ...], nodes: set[str]
) -> GroupProposal:
    overdrawing = len(case.world.cluster.budgets.split(victims)[0])
    budgets = f", overdrawing disruption budgets {overdrawing} times" if overdrawing else ""
    names = listed([f"{each.full_name} (priority {each.priority})" for each in victims])
    domain = _domain(case, own, nodes)
    title = f"free {domain} by evicting {names}" if domain else f"evict {names}"
    return GroupProposal(
        kind="evict",
        title=f"{title}{budgets}",
        cost=surroundings.COST_EVICTION
        + surroundings.COST_VICTIM * len(victims)
        + surroundings.COST_OVERDRAWN * overdrawing,
        evict=victims,
    )


def _domain(case: GroupCase, own: GroupInfo, nodes: set[str]) -> str:
    """Return the topology domain that all nodes are in, "" if there is none."""
    if own.topology_key is None:
        return ""
    rows = [row for name in nodes if (row := case.world.table.row_of(name)) is not None]
    labels = [case.world.table.node_at(row).metadata.labels or {} for row in rows]
    domains = {each.get(own.topology_key, "") for each in labels}
    return domains.pop() if len(domains) == 1 else ""


def _more_nodes(
    case: GroupCase, own: GroupInfo, best: SurveyedPlacement | None
) -> Iterator[GroupProposal]:
    """Propose as few more nodes as would do, like those of the best placement."""
    rows = [] if best is None else [row for row, here in enumerate(best.placement.rows) if here]
    nodes = [case.world.table.node_at(row) for row in rows]
    shapes = Counter(surroundings.shape_key(each) for each in nodes)
    examples = {surroundings.shape_key(each): each for each in reversed(nodes)}
    for shape, _ in shapes.most_common(_MAX_SHAPES):
        count = _fewest(case, own, examples[shape])
        if count:
            yield _with_more(case, examples[shape], count)


def _fewest(case: GroupCase, own: GroupInfo, example: Node) -> int:
    def fits(count: int) -> bool:
        return bool(case.outcome(_with_more(case, example, count), own.key))

    most = min(_MAX_NODES, len(own.pods))
    if not fits(most):
        return 0
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _with_more(case: GroupCase, example: Node, count: int) -> GroupProposal:
    name = example.metadata.name
    made = [
        surroundings.more_like(case.world, example, f"{surroundings.NEW_NODE}-{number}")
        for number in range(count)
    ]
    which = "one more node" if count == 1 else f"{count} more nodes"
    return GroupProposal(
        kind="node",
        title=f"{which} like {name} ({surroundings.described(case.world, example)})",
        cost=surroundings.COST_NEW_NODE * count,
        nodes=tuple(each.node for each in made),
        arriving=tuple(pod for each in made for pod in each.daemons),
        slices=tuple(piece for each in made for piece in each.slices),
    )
