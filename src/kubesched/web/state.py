"""What there is to show of a cluster at one moment, whatever it comes from.

    scheduler's engine · watched cluster · snapshot · entry of a recording ──> State ──> the page

A state is read in the event loop's thread between two turns of it; only `make_world` is for
children, which may change what they get at will.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.api.scheduling import PriorityClass
from kubesched.cluster.cluster import Cluster
from kubesched.snapshot.world import World
from kubesched.web.columns import NodeColumns
from kubesched.web.conditions import ACTIVE, BACKOFF, GATED, UNCLAIMED, UNSCHEDULABLE
from kubesched.web.report import AllNodes, ChangedNodes, FoundPod, PodCounts, WaitingPod


class Waiting(Struct, frozen=True):
    """A pod that waits; what is told of it is put together only when somebody asks."""

    pod: Pod
    tell: Callable[[], WaitingPod]


class Columns(Protocol):
    """The nodes as the page draws them."""

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that some node offers."""

    def current_version(self) -> int:
        """Take notice of what changed; return the version."""

    def all(self) -> AllNodes:
        """Return all nodes."""

    def since(self, version: int) -> ChangedNodes | None:
        """Return the nodes that changed after a version; None if there are none."""


class State(ABC):
    """A cluster to be shown."""

    #: all nodes
    columns: Columns

    @property
    def notes(self) -> tuple[str, ...]:
        """What is missing or was left out, one line each."""
        return ()

    @property
    @abstractmethod
    def node_count(self) -> int:
        """How many nodes there are."""

    @abstractmethod
    def with_node(self, name: str) -> Cluster | None:
        """Return a cluster that has a node with all its pods; None if there is no such node."""

    @abstractmethod
    def counts(self) -> PodCounts:
        """Return how many pods are where."""

    @abstractmethod
    def reasons(self) -> Mapping[str, int]:
        """Return how many pods each plugin keeps waiting."""

    @abstractmethod
    def waiting(self) -> Iterator[Waiting]:
        """Return the pods that wait, first those that were tried in vain."""

    @abstractmethod
    def pods(self) -> Iterable[Pod]:
        """Return all pods that are not over."""

    @abstractmethod
    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod."""

    @abstractmethod
    def make_world(self) -> World:
        """Return the same as something that can be asked what if; only in a child."""

    async def priority_classes(self) -> Sequence[PriorityClass]:
        """Return the priority classes, as far as they are known."""
        return ()

    def found(self, pod: Pod) -> FoundPod:
        """Tell where a pod is."""
        return FoundPod(pod.metadata.namespace, pod.metadata.name, pod.spec.node_name)


class ClusterState(State):
    """A cluster that is there as a whole."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.columns = NodeColumns(cluster.table)

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self.cluster.table)

    def with_node(self, name: str) -> Cluster | None:
        """Return the cluster if it has a node."""
        return None if self.cluster.table.row_of(name) is None else self.cluster

    def found(self, pod: Pod) -> FoundPod:
        """Tell where a pod is, or is assumed to be."""
        meta = pod.metadata
        node = pod.spec.node_name or self.cluster.node_of(meta.uid) or ""
        return FoundPod(meta.namespace, meta.name, node)


class Pending:
    """Pods without a node, as their conditions, or somebody else, tell of them."""

    _ORDER = (UNCLAIMED, UNSCHEDULABLE, BACKOFF, ACTIVE, GATED)

    def __init__(self, pods: Iterable[Pod], tell: Callable[[Pod], WaitingPod]) -> None:
        told = [(pod, tell(pod)) for pod in pods]
        self._told = sorted(told, key=lambda each: self._ORDER.index(each[1].state))
        self._states = Counter(each.state for _, each in told)
        self.reasons: Mapping[str, int] = Counter(
            plugin for _, each in told for plugin in each.plugins
        )

    def counts(self, placed: int) -> PodCounts:
        """Return how many there are."""
        return PodCounts(
            placed=placed,
            active=self._states[ACTIVE],
            backoff=self._states[BACKOFF],
            unschedulable=self._states[UNSCHEDULABLE],
            gated=self._states[GATED],
            unclaimed=self._states[UNCLAIMED],
        )

    def waiting(self) -> Iterator[Waiting]:
        """Return them, first those that will not be tried, or were tried in vain."""
        return (Waiting(pod, partial(_as_is, told)) for pod, told in self._told)


def _as_is(told: WaitingPod) -> WaitingPod:
    return told
