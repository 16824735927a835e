"""Explains one pod: the scheduler's message, every node's reasons, scores, and helpful changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from typing import TypedDict

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.pod_groups import named_group
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError, UsageError
from kubesched.explain import (
    combining,
    commands,
    device_changes,
    requests,
    surroundings,
    wishes,
)
from kubesched.explain.case import Case, Proposal
from kubesched.explain.commands import Instructions
from kubesched.explain.devices import explain_devices
from kubesched.explain.groups import GATE_OFF, explain_group
from kubesched.explain.owners import WorkloadName, known_workloads
from kubesched.explain.patching import claim_differences, differences
from kubesched.explain.platform import OTHER_PLATFORM, is_other_platform
from kubesched.explain.prerequisites import Prerequisites, find_prerequisites, restored
from kubesched.explain.reasons import RejectedPod
from kubesched.explain.report import (
    ExplainedScore,
    Explanation,
    HelpfulChange,
    NodeAnswer,
    Operation,
    PluginScore,
    PreemptionEffect,
    Reason,
    ReasonCount,
    ReasonDetail,
    Victim,
)
from kubesched.explain.unclaimed import is_unclaimed, unclaimed_message
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Code, Status
from kubesched.snapshot.world import World

#: Maximum number of changes.
MAX_CHANGES = 12
_EXAMPLES = 3
_SIMILAR = 3


class ClaimChange(TypedDict, total=False):
    """The change of a claim, as fields of a `HelpfulChange`."""

    claim: str
    claim_patch: tuple[Operation, ...]


class ExplainOptions(Struct, frozen=True):
    """Options of an explanation."""

    #: whether to look for changes that would place the pod
    changes: bool = True
    #: name of the profile, "" for the one that the pod names
    profile: str = ""


def find_pod(world: World, namespace: str, name: str) -> Pod:
    """Return a pod by name; raises ObjectError that names similar pods if there is none."""
    pod = world.find_pod(namespace, name)
    if pod is not None:
        return pod
    keys = [*world.pending, *world.placed]
    elsewhere = [other for other, pod_name in keys if pod_name == name][:_SIMILAR]
    near = get_close_matches(name, {each for other, each in keys if other == namespace}, n=_SIMILAR)
    similar = (
        [f"{other}/{name}" for other in elsewhere]
        or [
            f"{each.kind.lower()} {each.namespace}/{each.name}"
            for each in _workloads_named(world, namespace, name)
        ]
        or [f"{namespace}/{each}" for each in near]
    )
    hint = f"; there is {', '.join(similar)}" if similar else ""
    raise ObjectError(f"pod {namespace}/{name} not found{hint}")


def _workloads_named(world: World, namespace: str, name: str) -> list[WorkloadName]:
    """Return workloads of a name: those of a namespace, else those of all."""
    pods = (*world.pending.values(), *world.placed.values())
    found = [each for each in dict.fromkeys(known_workloads(world, pods)) if each.name == name]
    return [each for each in found if each.namespace == namespace] or found[:_SIMILAR]


def explain(world: World, pod: Pod, options: ExplainOptions = ExplainOptions()) -> Explanation:  # noqa: B008 (immutable)
    """Explain a pod: pending, placed, or not created yet."""
    framework = _framework(world, pod, options)
    with world.cluster.transaction() as tx:
        tx.remove(pod.metadata.uid)
        if pod.spec.node_name:
            tx.release(pod)
        if world.find_pod(pod.metadata.namespace, pod.metadata.name) is None:
            pod = world.created(pod, tx)
        found = _Explaining(world, framework, pod, options).explanation()
        found = _as_member(world, pod, found, options)
    return replace(found, current_node=pod.spec.node_name, notes=(*world.notes, *found.notes))


def _as_member(world: World, pod: Pod, said: Explanation, options: ExplainOptions) -> Explanation:
    """Return an explanation with that of the group of a pending pod, which decides about it."""
    key = named_group(pod)
    if key is None or pod.spec.node_name:
        return said
    if world.engine.groups is None:
        return replace(said, notes=(*said.notes, GATE_OFF))
    group = world.cluster.groups.objects.get(key.namespace, key.name)
    if group is None:
        return said
    of_group = explain_group(world, group, changes=options.changes)
    if said.outcome in ("Gated", "Unclaimed"):
        return replace(said, group=of_group)
    mine = next((each for each in of_group.pods if each.pod == said.pod), None)
    message = (mine.condition if mine is not None else "") or of_group.message
    is_fitting = of_group.outcome == "Schedulable" and mine is not None and bool(mine.node)
    return replace(
        said,
        outcome="Schedulable" if is_fitting else of_group.outcome,
        message="" if is_fitting else message,
        group=of_group,
        changes=of_group.changes,
        preemption=of_group.preemption,
    )


def _framework(world: World, pod: Pod, options: ExplainOptions) -> Framework:
    """Return the profile to evaluate a pod with; the first one replaces another scheduler's."""
    wanted = options.profile or pod.spec.scheduler_name
    framework = world.frameworks.get(wanted)
    if framework is not None:
        return framework
    if options.profile:
        known = ", ".join(world.frameworks)
        raise UsageError(f"the configuration has no profile {wanted}, only {known}")
    return next(iter(world.frameworks.values()))


class _Explaining:
    """Explains one pod."""

    def __init__(
        self, world: World, framework: Framework, pod: Pod, options: ExplainOptions
    ) -> None:
        self._world = world
        self._table = world.table
        self._framework = framework
        self._pod = pod
        self._options = options
        self._case = Case(world, framework, pod)
        self._notes: list[str] = []
        self._unclaimed = not options.profile and is_unclaimed(pod, world.frameworks)
        named = pod.spec.scheduler_name
        if named and named not in world.frameworks and not self._unclaimed:
            self._notes.append(
                f"the pod is for scheduler {named}, which may decide otherwise: name its "
                f"configuration with --config; explained with profile {framework.scheduler_name}"
            )

    def explanation(self) -> Explanation:
        total = len(self._table)
        outcome, message, preemption = self._attempt()
        rows = self._case.feasible()
        said = Explanation(
            pod=f"{self._pod.metadata.namespace}/{self._pod.metadata.name}",
            scheduler_name=self._framework.scheduler_name,
            outcome=outcome,
            message=message,
            total_nodes=total,
            feasible_nodes=len(rows),
            reasons=self._counts(),
            pod_reasons=tuple(_reason(each) for each in self._case.reasons.of_pod),
            nodes=self._nodes(rows),
            preemption=preemption,
            notes=tuple(self._notes),
        )
        # Changes are tried on more rows, so they come last.
        if len(rows):
            said = self._with_scores(said, rows)
        else:
            said = replace(said, devices=explain_devices(self._case))
        is_rejected = outcome == "Unschedulable" or self._prerequisites is not None
        if self._options.changes and total and is_rejected and outcome != "Error":
            said = replace(said, changes=self._changes())
        return said

    # --- the scheduler's attempt ------------------------------------------------------------

    def _attempt(self) -> tuple[str, str, PreemptionEffect | None]:
        """Try the pod as the scheduling cycle does, without side effects."""
        if self._unclaimed:
            return "Unclaimed", unclaimed_message(self._pod, self._world.frameworks), None
        if not len(self._table):
            return "Unschedulable", NO_NODES_AVAILABLE, None
        info = self._world.compile(self._pod)
        gate = self._framework.gate(info)
        if not gate.ok:
            return "Gated", gate.message, None
        state = CycleState()
        try:
            found = self._framework.evaluator.look(state, info)
            if not isinstance(found, Diagnosis):
                return "Schedulable", "", None
            preemption = self._preemption(state, info, found)
        except AttemptError as failed:
            return "Error", failed.status.message, None
        return "Unschedulable", found.message(), preemption

    def _preemption(
        self, state: CycleState, info: PodInfo, diagnosis: Diagnosis
    ) -> PreemptionEffect:
        evictor = self._world.engine.evictor
        evictor.taken()
        if not self._framework.plugins.post_filter:
            return PreemptionEffect(message="the profile has no PostFilter plugin")
        result = self._framework.post_filter(state, info, diagnosis)
        diagnosis.post_filter_message = result.status.message
        evicted = evictor.taken()
        if evicted is None:
            return PreemptionEffect(message=result.status.message)
        node_name, victims = self._case.preempted = evicted
        return PreemptionEffect(node=node_name, victims=tuple(map(_victim, victims)))

    # --- node by node -----------------------------------------------------------------------

    def _counts(self) -> tuple[ReasonCount, ...]:
        found = self._case.reasons.counts()
        return tuple(
            ReasonCount(plugin, text, nodes, alone, self._details(plugin, text))
            for (plugin, text), (nodes, alone) in found.items()
        )

    def _details(self, plugin: str, reason: str) -> tuple[ReasonDetail, ...]:
        """Return what is behind a reason, over all nodes."""
        answer = self._case.reasons.answer_of(plugin)
        found = () if answer is None else answer.details.all
        return tuple(
            ReasonDetail(
                each.text,
                each.values,
                nodes=len(each.rows),
                examples=tuple(self._table.name_at(row) for row in each.rows[:_EXAMPLES]),
            )
            for each in found
            if each.reason in ("", reason)
        )

    def _nodes(self, feasible: IndexArray) -> tuple[NodeAnswer, ...]:
        fits = np.zeros(self._table.size, dtype=np.bool_)
        fits[feasible] = True
        reasons = self._case.reasons
        groups = reasons.groups().tolist()
        #: rows of a group have the same reasons
        told: dict[int, tuple[Reason, ...]] = {}
        answers = []
        for row in self._table.order.rows().tolist():
            name = self._table.name_at(row)
            if fits[row]:
                answers.append(NodeAnswer(name, feasible=True))
                continue
            known = told.get(groups[row])
            if known is None:
                known = told[groups[row]] = _all_reasons(reasons.of_row(row))
            answers.append(
                NodeAnswer(
                    name,
                    feasible=False,
                    reasons=tuple(self._with_details(row, each) for each in known)
                    or _all_reasons(self._rejected_beside_nominated(row)),
                )
            )
        return tuple(answers)

    def _with_details(self, row: int, reason: Reason) -> Reason:
        details = self._case.reasons.details_of(row, reason.plugin, reason.text)
        return replace(reason, details=_told(details)) if details else reason

    def _rejected_beside_nominated(self, row: int) -> tuple[Status, ...]:
        """Return why a row is infeasible although every filter passes it."""
        status = self._case.first_rejection(self._case.pod, row)
        if status is None:
            return ()
        others = self._world.cluster.nominator.pods_on(self._table.name_at(row))
        names = ", ".join(each.full_name for each in others)
        texts = (f"{text} (beside nominated {names})" for text in status.reasons)
        return (replace(status, reasons=tuple(texts)),)

    # --- scores -----------------------------------------------------------------------------

    def _with_scores(self, said: Explanation, rows: IndexArray) -> Explanation:
        state = CycleState()
        evaluator = self._framework.evaluator
        try:
            evaluator.look(state, self._case.info)
            columns = evaluator.plugin_scores(state, self._case.info, rows)
        except AttemptError as failed:
            return replace(said, outcome="Error", message=failed.status.message)
        total = np.zeros(len(rows), dtype=np.int64)
        for each in columns:
            total += each.normalized * each.weight
        order = np.argsort(-total, kind="stable")
        scores = tuple(
            ExplainedScore(
                self._table.name_at(int(rows[element])),
                int(total[element]),
                {
                    each.plugin: PluginScore(
                        int(each.raw[element]),
                        int(each.normalized[element]),
                        int(each.normalized[element]) * each.weight,
                    )
                    for each in columns
                },
            )
            for element in order.tolist()
        )
        best = tuple(each.node for each in scores if each.total == scores[0].total)
        weights = {each.plugin: each.weight for each in columns}
        return replace(said, scores=scores, best_nodes=best, weights=weights)

    # --- changes ----------------------------------------------------------------------------

    def _changes(self) -> tuple[HelpfulChange, ...]:
        found = (self._change(proposal, rows) for proposal, rows in self._helping())
        ranked = sorted(
            found, key=lambda each: (each.last_resort, each.steps, each.cost, -each.nodes)
        )
        return tuple(ranked[:MAX_CHANGES])

    def _helping(self) -> Iterator[tuple[Proposal, IndexArray]]:
        """Yield changes with the then feasible rows, what the pod lacks by itself first."""
        needed = self._prerequisites
        if needed is None:
            yield from changes_that_help(self._case)
            return
        case = Case(self._world, self._framework, needed.trial)
        rows = case.feasible()
        if len(rows):
            yield needed.alone(), rows
            return
        for proposal, then in changes_that_help(case):
            yield needed.before(proposal), then

    @cached_property
    def _prerequisites(self) -> Prerequisites | None:
        return find_prerequisites(self._case, is_unclaimed=self._unclaimed)

    def _change(self, proposal: Proposal, rows: IndexArray) -> HelpfulChange:
        # Hypothetical nodes of the proposal have no meaningful name.
        there = [
            self._table.name_at(row) for row in rows.tolist() if self._table.nodes[row] is not None
        ]
        needed = self._prerequisites
        changed = proposal.pod if needed is None else restored(proposal.pod, self._case.pod)
        how = self._instructions(proposal, changed, there)
        is_other = is_other_platform(self._case.pod, changed)
        notes = [
            "" if needed is None else needed.note,
            OTHER_PLATFORM if is_other else "",
            *(each.note for each in how),
        ]
        return HelpfulChange(
            kind=proposal.kind,
            title=proposal.title,
            nodes=len(rows),
            examples=tuple(there[:_EXAMPLES]),
            cost=round(proposal.cost, 3),
            steps=proposal.steps,
            last_resort=is_other,
            patch=differences(self._case.pod, changed),
            **self._claim_change(proposal),
            evict=tuple(map(_victim, proposal.evict)),
            commands=tuple(chain.from_iterable(each.commands for each in how)),
            note=" ".join(dict.fromkeys(filter(None, notes))),
        )

    def _claim_change(self, proposal: Proposal) -> ClaimChange:
        for claim in proposal.claims:
            meta = claim.metadata
            before = self._world.cluster.devices.claims.get(meta.namespace, meta.name)
            if before is not None:
                patch = claim_differences(before, claim)
                return {"claim": f"{meta.namespace}/{meta.name}", "claim_patch": patch}
        return {}

    def _instructions(
        self, proposal: Proposal, changed_pod: Pod, fits_on: list[str]
    ) -> list[Instructions]:
        """Return the commands for nodes, other pods and the pod itself."""
        found: list[Instructions] = []
        changed = {each.metadata.name for each in proposal.nodes}
        # If any of several nodes would do, one is enough.
        for name in [each for each in fits_on if each in changed][:1]:
            row = self._table.row_of(name)
            if row is not None:
                found.append(_node_back(self._table.node_at(row)))
        if proposal.evict:
            found.append(self._evicting(proposal))
        found += (commands.change_claim(self._case.pod, claim) for claim in proposal.claims)
        meta = self._pod.metadata
        if self._world.find_pod(meta.namespace, meta.name) is not None:
            replica_sets = self._world.cluster.workloads.replica_sets
            found.append(commands.change(self._case.pod, changed_pod, replica_sets))
        elif changed_pod != self._case.pod:
            found.append(Instructions(note="Change the manifest of the pod."))
        return found

    def _evicting(self, proposal: Proposal) -> Instructions:
        evicting = commands.evict(each.pod for each in proposal.evict)
        if self._case.preempted is None:
            return evicting
        return replace(evicting, note="Preemption does it by itself.")


def changes_that_help(case: Case) -> Iterator[tuple[Proposal, IndexArray]]:
    """Yield changes with the then feasible rows, each tried on the engine."""
    seen: set[str] = set()
    for proposal in chain(
        requests.proposals(case),
        wishes.proposals(case),
        device_changes.proposals(case),
        surroundings.nodes_back(case),
        surroundings.evictions(case),
        combining.proposals(case),
        surroundings.new_nodes(case),
    ):
        # Of changes with the same title, such as terms on the same key, only one may help.
        if proposal.title in seen:
            continue
        rows = case.outcome(proposal)
        if len(rows):
            seen.add(proposal.title)
            yield proposal, rows


def _node_back(node: Node) -> Instructions:
    name, causes = node.metadata.name, surroundings.unwell_because(node)
    if not causes:
        return commands.uncordon(name)
    return Instructions(note=f"Find out what is wrong with node {name}: {', '.join(causes)}.")


def _victim(pod: PodInfo) -> Victim:
    return Victim(pod.full_name, pod.priority)


def _all_reasons(statuses: Iterable[Status]) -> tuple[Reason, ...]:
    return tuple(chain.from_iterable(map(_reasons, statuses)))


def _reasons(status: Status) -> Iterator[Reason]:
    for text in status.reasons:
        yield Reason(status.plugin, text, resolvable=status.code is Code.UNSCHEDULABLE)


def _reason(rejected: RejectedPod) -> Reason:
    status = rejected.status
    resolvable = status.code is Code.UNSCHEDULABLE
    details = _told(rejected.details)
    return Reason(status.plugin, status.message, resolvable=resolvable, details=details)


def _told(details: Iterable[Detail]) -> tuple[ReasonDetail, ...]:
    return tuple(ReasonDetail(each.text, each.values) for each in details)
