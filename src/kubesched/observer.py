"""Notifications of everything the scheduler sees and does, in order.

    App, Engine, Scheduler, Bindings, Evictions ──> SchedulerObserver
                                                          ^── Journal (recording/)

The scheduler's parts notify their observer unconditionally. The base class ignores everything, so
an observer overrides the methods it needs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Status
from kubesched.queue.queued_pod import QueuedPod


class AttemptResult(Protocol):
    """The result of one attempt at a pod."""

    status: Status
    node_name: str
    diagnosis: Diagnosis | None
    nominated_node: str | None
    evaluated_nodes: int
    feasible_nodes: int


class SearchStart(Protocol):
    """Where the next search for feasible nodes starts."""

    start: int


class RandomChoices(Protocol):
    """The random state of the next choice among equally good nodes."""

    @property
    def rng(self) -> random.Random:
        """Breaks ties."""

    @property
    def sampler(self) -> SearchStart:
        """Holds where the next search starts."""


class SchedulerObserver:
    """Receives what the scheduler sees and does; the base class ignores it."""

    # --- the scheduler as a whole -----------------------------------------------------------

    def make_cluster(self, rules: RequestRules) -> Cluster:
        """Return the cluster that the scheduler works on."""
        return Cluster(rules)

    def begin(
        self,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        choices: RandomChoices,
        frameworks: Mapping[str, Framework],
    ) -> None:
        """The scheduler was created; `frameworks` are always the current ones."""

    def configured(self, config: SchedulerConfiguration) -> None:
        """The configuration was replaced."""

    def detach(self) -> None:
        """This process is a forked copy: ignore what it does from now on."""

    # --- pending pods -----------------------------------------------------------------------

    def pending(self, pod: Pod) -> None:
        """A pending pod was added or changed."""

    def gone(self, uid: str) -> None:
        """A pending pod was deleted or bound."""

    # --- attempts ---------------------------------------------------------------------------

    def deciding(self) -> None:
        """An attempt at a pod begins."""

    def asking(self, profile: str, pod: Pod) -> None:
        """An attempt at a pod begins that calls extenders, while the loop handles other events."""

    def extenders_filtered(self, feasible: Sequence[str], rejected: Mapping[str, Status]) -> None:
        """Extenders filtered nodes."""

    def extenders_scored(self, scores: Mapping[str, int]) -> None:
        """Extenders scored nodes."""

    def extenders_chose_victims(self, victims: Mapping[str, tuple[Sequence[Pod], int]]) -> None:
        """Extenders chose victims, with the number of PDB violations."""

    def extenders_failed(self, message: str) -> None:
        """Extenders failed."""

    def evicting(self, victims: Iterable[PodInfo]) -> None:
        """Victims were chosen in this attempt."""

    def decided(self, profile: str, pod: QueuedPod, result: AttemptResult) -> None:
        """An attempt at a pod ended with a result."""

    def raised(self, pod: QueuedPod, bug: Exception) -> None:
        """Scheduling a pod raised an exception, before or after there was a result."""

    def returned(self, pod: PodInfo, status: Status) -> None:
        """A placed pod could not be bound."""
