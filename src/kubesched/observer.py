"""Notifications of everything the scheduler sees and does, in order.

    App, Engine, Scheduler, Bindings, Evictions ──> SchedulerObserver
                                                          ^── Journal (recording/)
                                                          ^── AttemptTracer (tracing/)

The scheduler's parts notify their observer unconditionally. The base class ignores everything, so
an observer overrides the methods it needs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.group import GroupInfo
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Status
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod


class AttemptResult(Protocol):
    """The result of one attempt at a pod."""

    status: Status
    node_name: str
    diagnosis: Diagnosis | None
    nominated_node: str | None
    evaluated_nodes: int
    feasible_nodes: int


class GroupMemberResult(Protocol):
    """What an attempt at a group means for one member."""

    @property
    def status(self) -> Status:
        """Success, or why it has no node."""

    @property
    def binds(self) -> bool:
        """Whether it is bound."""

    @property
    def nominated_node(self) -> str | None:
        """Node to nominate it to, "" to clear its nomination, None for no change."""

    @property
    def decision(self) -> AttemptResult:
        """The decision about the member by itself."""


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

    def moved(self, entity: QueuedEntity, queue: str, event_label: str) -> None:
        """A pending pod or group entered a part of the queue, perhaps the one that it was in."""

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

    def abandoned(self) -> None:
        """An attempt ended without a result, and is made again."""

    def group_decided(
        self, profile: str, group: GroupInfo, members: Sequence[tuple[QueuedPod, GroupMemberResult]]
    ) -> None:
        """An attempt at a group ended with a result for each member."""

    def raised(self, pod: QueuedPod, bug: Exception) -> None:
        """Scheduling a pod raised an exception, before or after there was a result."""

    def binding(self, pod: QueuedPod) -> None:
        """The binding cycle of a pod begins, in a task of its own."""

    def bound(self, pod: QueuedPod, node_name: str) -> None:
        """A pod was bound."""

    def returned(self, pod: PodInfo, status: Status) -> None:
        """A placed pod could not be bound."""


class ObserverPair(SchedulerObserver):
    """Notifies two observers; the first one makes the cluster."""

    def __init__(self, first: SchedulerObserver, second: SchedulerObserver) -> None:
        self._first, self._second = first, second
        for name in vars(SchedulerObserver):
            if not name.startswith("_") and name != "make_cluster":
                setattr(self, name, _both(getattr(first, name), getattr(second, name)))

    def make_cluster(self, rules: RequestRules) -> Cluster:
        """Return the cluster of the first one."""
        return self._first.make_cluster(rules)


def _both(first: Callable[..., None], second: Callable[..., None]) -> Callable[..., None]:
    def notify(*told: Any, **named: Any) -> None:  # noqa: ANN401 (those of each method)
        first(*told, **named)
        second(*told, **named)

    return notify
