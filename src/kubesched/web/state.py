"""The state of a cluster at one moment, from any source.

    scheduler's engine · watched cluster · snapshot · entry of a recording ──> PageState ──> page

A state is read in the event loop's thread between two turns; only `make_world` is for children,
which may modify what they get.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec import Struct

from kubesched.api.core import Node, Pod
from kubesched.api.scheduling import PriorityClass
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_groups import named_group
from kubesched.kinds import KINDS
from kubesched.snapshot.world import World
from kubesched.web.columns import NodeColumns
from kubesched.web.conditions import ACTIVE, BACKOFF, GATED, UNCLAIMED, UNSCHEDULABLE
from kubesched.web.report import (
    AllNodes,
    ChangedNodes,
    DecisionsTold,
    FoundPod,
    PendingPodReport,
    PodTotals,
)


class PendingEntry(Struct, frozen=True):
    """A pending pod; its report is built on demand."""

    pod: Pod
    tell: Callable[[], PendingPodReport]


class PageColumns(Protocol):
    """The nodes as the page draws them."""

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that some node has."""

    def current_version(self) -> int:
        """Apply changes; return the version."""

    def all(self) -> AllNodes:
        """Return all nodes."""

    def since(self, version: int) -> ChangedNodes | None:
        """Return the nodes that changed after a version; None if there are none."""


class PageState(ABC):
    """A cluster to show."""

    #: all nodes
    columns: PageColumns

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about missing or skipped data, one line each."""
        return ()

    @property
    @abstractmethod
    def node_count(self) -> int:
        """The number of nodes."""

    @abstractmethod
    def with_node(self, name: str) -> Cluster | None:
        """Return a cluster that has a node with all its pods; None if there is no such node."""

    @abstractmethod
    def nodes(self) -> Iterable[Node]:
        """Return all nodes."""

    @abstractmethod
    def counts(self) -> PodTotals:
        """Return the number of pods by state."""

    @abstractmethod
    def reasons(self) -> Mapping[str, int]:
        """Return the number of pending pods by rejecting plugin."""

    @abstractmethod
    def waiting(self) -> Iterator[PendingEntry]:
        """Yield the pending pods, those already tried first."""

    @abstractmethod
    def pods(self) -> Iterable[Pod]:
        """Return all pods that are not terminated."""

    @abstractmethod
    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod."""

    @abstractmethod
    def objects(self, kind: str) -> Iterable[Any]:
        """Return the objects of a kind of the table of kinds, nodes and pods excepted."""

    def members(self) -> Mapping[tuple[str, str], Sequence[Pod]]:
        """Return the pods of each group, by its namespace and name."""
        return by_group(self.pods())

    def decisions(self, limit: int) -> DecisionsTold:  # noqa: ARG002 (for overrides)
        """Return the last decisions, newest first; none by default."""
        return DecisionsTold(decisions=(), total=0)

    async def graded(self, limit: int) -> DecisionsTold:
        """Return the same, each with its grade where that takes time to find out."""
        return self.decisions(limit)

    @abstractmethod
    def make_world(self) -> World:
        """Return a world for what-if questions; only in a child."""

    async def priority_classes(self) -> Sequence[PriorityClass]:
        """Return the known priority classes."""
        return ()

    def found(self, pod: Pod) -> FoundPod:
        """Return a pod with its node."""
        return FoundPod(pod.metadata.namespace, pod.metadata.name, pod.spec.node_name)


class ClusterState(PageState):
    """A complete cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.columns = NodeColumns(cluster.table)

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return len(self.cluster.table)

    def with_node(self, name: str) -> Cluster | None:
        """Return the cluster if it has the node."""
        return None if self.cluster.table.row_of(name) is None else self.cluster

    def nodes(self) -> Iterable[Node]:
        """Return all nodes."""
        return (each for each in self.cluster.table.nodes if each is not None)

    def objects(self, kind: str) -> Iterable[Any]:
        """Return the objects of a kind."""
        store = KINDS[kind].store
        return () if store is None else store(self.cluster)

    def found(self, pod: Pod) -> FoundPod:
        """Return a pod with its node, assumed ones included."""
        meta = pod.metadata
        node = pod.spec.node_name or self.cluster.node_of(meta.uid) or ""
        return FoundPod(meta.namespace, meta.name, node)


def by_group(pods: Iterable[Pod]) -> dict[tuple[str, str], list[Pod]]:
    """Sort pods by the group that they name; others are left out."""
    found: dict[tuple[str, str], list[Pod]] = {}
    for pod in pods:
        key = named_group(pod)
        if key is not None:
            found.setdefault((key.namespace, key.name), []).append(pod)
    return found


class ReportedPending:
    """Pending pods, as reported by their conditions or a recording."""

    _ORDER = (UNCLAIMED, UNSCHEDULABLE, BACKOFF, ACTIVE, GATED)

    def __init__(self, pods: Iterable[Pod], tell: Callable[[Pod], PendingPodReport]) -> None:
        told = [(pod, tell(pod)) for pod in pods]
        self._told = sorted(told, key=lambda each: self._ORDER.index(each[1].state))
        self._states = Counter(each.state for _, each in told)
        self.reasons: Mapping[str, int] = Counter(
            plugin for _, each in told for plugin in each.plugins
        )

    def counts(self, placed: int) -> PodTotals:
        """Return the number of pods by state."""
        return PodTotals(
            placed=placed,
            active=self._states[ACTIVE],
            backoff=self._states[BACKOFF],
            unschedulable=self._states[UNSCHEDULABLE],
            gated=self._states[GATED],
            unclaimed=self._states[UNCLAIMED],
        )

    def waiting(self) -> Iterator[PendingEntry]:
        """Yield them, those that are gated or already tried first."""
        return (PendingEntry(pod, partial(_as_is, told)) for pod, told in self._told)


def _as_is(told: PendingPodReport) -> PendingPodReport:
    return told
