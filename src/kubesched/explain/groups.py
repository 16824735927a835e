"""Explains a group of pods: why it waits, how much of it fits where, and what would help."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from msgspec.structs import replace

from kubesched.api.scheduling import PodGroup
from kubesched.cluster.pod_groups import GroupKey, GroupKind, GroupMembers
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError, UsageError
from kubesched.explain import group_changes
from kubesched.explain.group_case import GroupCase
from kubesched.explain.report import (
    GroupExplanation,
    LackingMembers,
    MemberAnswer,
    PlacementAnswer,
    PreemptionEffect,
    Victim,
)
from kubesched.scheduler.cycle import Decision
from kubesched.scheduler.group_dry_run import GroupDecision, GroupDryRun, SurveyedPlacement
from kubesched.scheduler.group_results import outcomes
from kubesched.snapshot.world import World

GATE_OFF = (
    "groups of pods are not taken into account: the feature gate GenericWorkload is off "
    "(--feature-gates GenericWorkload=true)"
)
_SIMILAR = 3
_BEFORE = "nodes are available: "
_INSUFFICIENT = "Insufficient "
_ONE_REASON = re.compile(r"^\d+ (?=[^,]*$)")


def find_group(world: World, namespace: str, name: str) -> PodGroup:
    """Return a PodGroup by name; raises ObjectError that names similar ones if there is none."""
    groups = world.cluster.groups.objects
    found = groups.get(namespace, name)
    if found is not None:
        return found
    names = [each.metadata.name for each in groups if each.metadata.namespace == namespace]
    near = [f"{namespace}/{each}" for each in get_close_matches(name, names, n=_SIMILAR)]
    hint = f"; there is {', '.join(near)}" if near else ""
    raise ObjectError(f"podgroup {namespace}/{name} not found{hint}")


def explain_group(world: World, group: PodGroup, *, changes: bool = True) -> GroupExplanation:
    """Explain a PodGroup; raises UsageError if groups are not scheduled as such."""
    if world.engine.groups is None:
        raise UsageError(GATE_OFF)
    meta = group.metadata
    key = GroupKey(GroupKind.POD_GROUP, meta.namespace, meta.name)
    return _ExplainingGroup(world, world.engine.groups, key, group).explanation(changes=changes)


class _ExplainingGroup:
    """Explains one PodGroup."""

    def __init__(self, world: World, dry_run: GroupDryRun, key: GroupKey, group: PodGroup) -> None:
        self._world = world
        self._dry_run = dry_run
        self._key = key
        self._group = group
        self._members: GroupMembers = dry_run.forest.groups.members(key)

    def explanation(self, *, changes: bool) -> GroupExplanation:
        root = self._dry_run.forest.root_of(self._key) or self._key
        unplaced = self._dry_run.info(root)
        if unplaced is None or not unplaced.pods:
            return self._without_attempt(root)
        decision = self._dry_run.decide(unplaced)
        own = self._dry_run.info(self._key, _own(unplaced.pods, self._members))
        surveyed = []
        if own is not None and own.pods and len(self._world.table):
            surveyed = self._dry_run.survey(decision.framework, own)
        said = self._about(root, decision, surveyed)
        if changes and own is not None and own.pods and not decision.status.ok:
            case = GroupCase(self._world, self._dry_run, decision.framework, unplaced)
            said = replace(said, changes=group_changes.helpful(case, own, surveyed, decision))
        return said

    def _without_attempt(self, root: GroupKey) -> GroupExplanation:
        """Explain a group of which no pod waits for a node."""
        count, placed = self._members.count, self._members.placed_count
        enough = placed >= self._group.min_count
        outcome = "Scheduled" if enough else "Gated"
        message = "" if enough else self._too_few()
        text = f"all {placed} members have a node" if enough else message
        if not count:
            text = f"{message}: it has no members yet"
        return replace(
            self._frame(root), outcome=outcome, message=message, text=text, pods=self._placed()
        )

    def _too_few(self) -> str:
        count, needed = self._members.count, self._group.min_count
        return f"{count} of the {needed} members that it needs are there"

    def _frame(self, root: GroupKey) -> GroupExplanation:
        spec = self._group.spec
        topology = spec.scheduling_constraints.topology if spec.scheduling_constraints else ()
        return GroupExplanation(
            group=self._key.full_name,
            scheduler_name="",
            outcome="",
            message="",
            text="",
            policy="basic" if spec.scheduling_policy.gang is None else "gang",
            min_count=self._group.min_count,
            members=self._members.count,
            placed=self._members.placed_count,
            topology_key=topology[0].key if topology else "",
            part_of="" if root == self._key else root.full_name,
            notes=tuple(self._world.notes),
        )

    def _about(
        self, root: GroupKey, decision: GroupDecision, surveyed: Sequence[SurveyedPlacement]
    ) -> GroupExplanation:
        placements = sorted(
            (self._placement(each) for each in surveyed), key=lambda each: (-each.fits, each.name)
        )
        result = decision.result_of(self._key)
        status = decision.status if result is None else result.status
        outcome = "Schedulable" if status.ok else "Unschedulable"
        if not decision.gate.ok:
            outcome = "Gated"
        elif not status.ok and not status.rejected:
            outcome = "Error"
        best = max(surveyed, key=lambda each: each.fitting, default=None)
        return replace(
            self._frame(root),
            scheduler_name=decision.framework.scheduler_name,
            outcome=outcome,
            message=status.message,
            text=self._text(outcome, status.message, placements),
            placements=tuple(placements),
            pods=(*self._placed(), *self._waiting(decision, best)),
            preemption=self._preemption(decision),
        )

    def _text(self, outcome: str, message: str, placements: Sequence[PlacementAnswer]) -> str:
        if outcome == "Error":
            return message
        if outcome == "Gated":
            known, needed = self._members.count, self._group.min_count
            return f"not tried: {self._too_few()}" if known < needed else f"not tried: {message}"
        if not placements:
            return message
        return placements[0].text

    # --- placements and members -----------------------------------------------------------------

    def _placement(self, surveyed: SurveyedPlacement) -> PlacementAnswer:
        placed, name = self._members.placed_count, surveyed.placement.name
        total, fits = placed + len(surveyed.members), placed + surveyed.fitting
        lacking = _lacking(surveyed)
        where = f" in {name}" if name else ""
        text = f"{fits} of {total} fit{where}"
        if lacking:
            others = _ordinal(total) if total - fits == 1 else f"other {total - fits}"
            why = lacking[0].message
            verb = "lacks " if total - fits == 1 else "lack "
            text += f"; the {others} "
            is_one = why.startswith(_INSUFFICIENT)
            text += why.replace(_INSUFFICIENT, verb, 1) if is_one else f"not: {why}"
        return PlacementAnswer(
            name=name,
            nodes=surveyed.placement.count,
            fits=fits,
            members=total,
            needed=self._group.min_count,
            feasible=fits >= self._group.min_count,
            text=text,
            lacking=lacking,
        )

    def _placed(self) -> tuple[MemberAnswer, ...]:
        nodes = (
            (pod, self._world.cluster.node_of(pod.uid)) for pod in self._members.placed.values()
        )
        return tuple(MemberAnswer(pod.full_name, node or "", placed=True) for pod, node in nodes)

    def _waiting(
        self, decision: GroupDecision, best: SurveyedPlacement | None
    ) -> tuple[MemberAnswer, ...]:
        result = decision.result_of(self._key)
        fits = decision.status.ok and result is not None and result.status.ok
        members = result.members if fits and result is not None else best.members if best else ()
        ended = {} if result is None else {each.pod.uid: each for each in outcomes(result)}
        return tuple(
            MemberAnswer(
                each.pod.full_name,
                each.decision.node_name,
                message="" if each.decision.node_name else each.decision.status.message,
                condition=ended[each.pod.uid].status.message if each.pod.uid in ended else "",
            )
            for each in members
        )

    def _preemption(self, decision: GroupDecision) -> PreemptionEffect | None:
        if decision.status.ok or not decision.gate.ok or not decision.results:
            return None
        victims = tuple(Victim(each.full_name, each.priority) for each in decision.victims)
        result = decision.results[decision.root.key]
        message = "" if victims else result.status.reasons[-1] if result.status.reasons else ""
        nodes = {self._world.cluster.node_of(each.uid) or "" for each in decision.victims}
        return PreemptionEffect(node=", ".join(sorted(nodes)), victims=victims, message=message)


def _own(pods: Sequence[PodInfo], members: GroupMembers) -> list[PodInfo]:
    return [pod for pod in pods if pod.uid in members.pending]


def _lacking(surveyed: SurveyedPlacement) -> tuple[LackingMembers, ...]:
    by_message: dict[str, list[str]] = {}
    for each in surveyed.members:
        if not each.decision.node_name:
            by_message.setdefault(_why(each.decision), []).append(each.pod.full_name)
    ordered = sorted(by_message.items(), key=lambda item: -len(item[1]))
    return tuple(LackingMembers(len(pods), pods[0], message) for message, pods in ordered)


def _why(decision: Decision) -> str:
    """Return the reasons of nodes; without their number, if it is the same reason everywhere."""
    _, _, reasons = decision.status.message.partition(_BEFORE)
    reasons = reasons.partition(". ")[0].rstrip(".")
    return _ONE_REASON.sub("", reasons) or decision.status.message


def _ordinal(number: int) -> str:
    last_two = number % 100
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 < last_two < 14 else endings.get(number % 10, 'th')}"
