"""What the scheduler tells of itself: everything it saw and did, in the order in which it happened.

    App, Engine, Scheduler, Bindings, Evictions ──> SchedulerObserver
                                                          ^── Journal (recording/)

The scheduler's parts notify their observer unconditionally. The base class ignores everything, so
an observer overrides what it wants to hear of.
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
    """What became of one attempt at one pod."""

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
    """What the next choice among equally good nodes depends on."""

    @property
    def rng(self) -> random.Random:
        """Settles ties."""

    @property
    def sampler(self) -> SearchStart:
        """Remembers where the next search starts."""


class SchedulerObserver:
    """Is told what the scheduler sees and does; this one ignores it."""

    # --- the scheduler as a whole -----------------------------------------------------------

    def make_cluster(self, rules: RequestRules) -> Cluster:
        """Return the state that the scheduler is to work on."""
        return Cluster(rules)

    def begin(
        self,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        choices: RandomChoices,
        frameworks: Mapping[str, Framework],
    ) -> None:
        """The scheduler was made; `frameworks` are those in use, at any later time, too."""

    def configured(self, config: SchedulerConfiguration) -> None:
        """Another configuration took the place of the one before."""

    def detach(self) -> None:
        """This process is a forked copy: what it does from now on did not happen."""

    # --- pods that want a node --------------------------------------------------------------

    def pending(self, pod: Pod) -> None:
        """A pod that wants a node came or changed."""

    def gone(self, uid: str) -> None:
        """A pod that wanted a node was deleted or bound."""

    # --- attempts ---------------------------------------------------------------------------

    def deciding(self) -> None:
        """An attempt at a pod begins."""

    def asking(self, profile: str, pod: Pod) -> None:
        """An attempt at a pod begins, during which extenders are asked and other things happen."""

    def extenders_filtered(self, feasible: Sequence[str], rejected: Mapping[str, Status]) -> None:
        """Extenders said which nodes suit the pod, and why not the others."""

    def extenders_scored(self, scores: Mapping[str, int]) -> None:
        """Extenders scored nodes."""

    def extenders_chose_victims(self, victims: Mapping[str, tuple[Sequence[Pod], int]]) -> None:
        """Extenders said which pods may be evicted from nodes, and how many budgets that breaks."""

    def extenders_failed(self, message: str) -> None:
        """Extenders gave no usable answer."""

    def evicting(self, victims: Iterable[PodInfo]) -> None:
        """Pods are to be evicted for the pod of this attempt."""

    def decided(self, profile: str, pod: QueuedPod, result: AttemptResult) -> None:
        """An attempt at a pod came to a result."""

    def raised(self, pod: QueuedPod, bug: Exception) -> None:
        """Scheduling a pod raised, before or after there was a result."""

    def returned(self, pod: PodInfo, status: Status) -> None:
        """A pod that had a node could not be bound to it."""
