"""Repeats a recorded decision: the scheduling cycle on a state, without queue and binding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_groups import GroupKey
from kubesched.cluster.pod_info import PodInfo
from kubesched.config import loading
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ObjectError
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.registry import Registry
from kubesched.framework.runtime import Framework
from kubesched.recording import randomness
from kubesched.recording.entries import Answered, Decided, Gates, Randomness
from kubesched.replay.replayed_extenders import ASKED_OTHERWISE, Attempt, ReplayedExtenders
from kubesched.scheduler.cycle import Decision
from kubesched.scheduler.dry_run import DryRun
from kubesched.scheduler.extended_cycle import ExtendedCycle
from kubesched.scheduler.group_results import MemberOutcome, all_outcomes


class AttemptOutcome(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The result of one attempt at a pod."""

    node: str = ""
    code: str = "Success"
    message: str = ""
    nominated: str | None = None
    victims: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    evaluated: int = 0
    feasible: int = 0

    @classmethod
    def recorded(cls, entry: Decided) -> AttemptOutcome:
        """Return the result in an entry."""
        return cls(
            node=entry.node,
            code=entry.code,
            message=entry.message,
            nominated=entry.nominated,
            victims=entry.victims,
            plugins=entry.plugins,
            pending_plugins=entry.pending_plugins,
            evaluated=entry.evaluated,
            feasible=entry.feasible,
        )


class Decider:
    """Decides about pods of a cluster under a configuration."""

    def __init__(
        self,
        cluster: Cluster,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        registry: Registry,
    ) -> None:
        self._cluster = cluster
        self._registry = registry
        self.engine = DryRun(cluster, config, gates, registry=registry)
        #: the attempt in progress, if it waits for extenders
        self._attempt: Attempt | None = None
        self._use_extenders(config)

    def configure(self, config: SchedulerConfiguration) -> None:
        """Replace the configuration."""
        self.engine.configure(config, self._registry)
        self._use_extenders(config)

    def _use_extenders(self, config: SchedulerConfiguration) -> None:
        self._extended: ExtendedCycle | None = None
        if config.extenders:
            extenders = ReplayedExtenders(config.extenders)
            self._extended = ExtendedCycle(self.engine.cycle, self._cluster, extenders)

    def restore(self, known: Randomness) -> None:
        """Restore the random generators."""
        cycle = self.engine.cycle
        cycle.rng.setstate(known.ties)
        cycle.sampler.start = known.start
        randomness.restore_plugins(known, self.engine.frameworks)

    def framework_of(self, profile: str) -> Framework:
        """Return a profile; the first one replaces missing profiles."""
        return self.engine.framework_of(profile)

    def ask(self, profile: str, pod: PodInfo) -> None:
        """Start an attempt that needs responses of extenders."""
        if self._extended is not None:
            self.engine.evictor.taken()
            self._attempt = Attempt(self._extended.schedule(self.framework_of(profile), pod))

    def answer(self, said: Answered) -> None:
        """Continue the attempt with a response of extenders."""
        if self._attempt is not None:
            self._attempt.answer(said)

    def decide(self, profile: str, pod: PodInfo) -> tuple[Decision | None, AttemptOutcome]:
        """Decide, or finish the attempt in progress; return the decision and its outcome.

        There is no decision if extenders were called differently than in the recording.
        """
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            decision, victims = self.engine.decide(self.framework_of(profile), pod)
            return decision, _outcome(decision, victims)
        attempt.close()
        if attempt.decision is None:
            return None, AttemptOutcome(code="Error", message=ASKED_OTHERWISE)
        return attempt.decision, _outcome(attempt.decision, self.engine.victims())

    def decide_group(
        self, profile: str, key: GroupKey, pods: Sequence[PodInfo]
    ) -> list[tuple[MemberOutcome, AttemptOutcome]]:
        """Decide about a group; return the outcome of each member.

        Victims are with the first of them. Raises ObjectError if the group is not there.
        """
        groups = self.engine.groups
        root = None if groups is None else groups.info(key, pods)
        if groups is None or root is None:
            raise ObjectError(f"the recording has no {key}")
        decision = groups.attempt(self.framework_of(profile), root)
        victims = tuple([each.uid for each in decision.victims])
        return [
            (
                each,
                AttemptOutcome(
                    node=each.decision.node_name if each.binds else "",
                    code=each.status.code.label,
                    message=each.status.message,
                    nominated=each.nominated_node,
                    victims=() if number else victims,
                ),
            )
            for number, each in enumerate(all_outcomes(decision.results))
        ]

    def is_as_good(self, profile: str, pod: PodInfo, node_name: str) -> bool:
        """Tell whether a node would have been chosen with other random numbers."""
        framework, row = self.framework_of(profile), self._cluster.table.row_of(node_name)
        if row is None:
            return False
        state = CycleState()
        try:
            found = framework.evaluator.filter(state, pod)
            if isinstance(found, Diagnosis) or row not in found.nodes.row_numbers():
                return False
            if not framework.plugins.score:
                return True
            totals = framework.evaluator.score(state, pod, found).totals()
        except AttemptError:
            return False
        return bool(totals[found.nodes.row_numbers() == row][0] == totals.max())


def _outcome(decision: Decision, victims: Iterable[PodInfo]) -> AttemptOutcome:
    status, diagnosis = decision.status, decision.diagnosis
    plugins: tuple[str, ...] = (status.plugin,) if status.plugin else ()
    waits: tuple[str, ...] = ()
    if diagnosis is not None:
        plugins = tuple(sorted(diagnosis.unschedulable_plugins))
        waits = tuple(sorted(diagnosis.pending_plugins))
    return AttemptOutcome(
        node=decision.node_name,
        code=status.code.label,
        message=status.message,
        nominated=decision.nominated_node,
        victims=tuple([each.uid for each in victims]),
        plugins=plugins,
        pending_plugins=waits,
        evaluated=decision.evaluated_nodes,
        feasible=decision.feasible_nodes,
    )


def gates_of(gates: Gates) -> FeatureGates:
    """Return the feature gates of a recording."""
    return FeatureGates.of(
        gates.explicit,
        emulated_version=gates.emulated_version,
        min_compatibility_version=gates.min_compatibility_version,
    )


def configuration_of(config: dict[str, object], gates: FeatureGates) -> SchedulerConfiguration:
    """Return the configuration of a recording."""
    text = msgspec.json.encode(config).decode()
    return loading.decode(text, "the recorded configuration", gates=gates)
