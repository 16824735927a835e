"""Timed events of a simulation: pods that arrive, nodes that come and go."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from kubesched.api.core import Node, Pod
from kubesched.api.scheduling import PodGroup
from kubesched.simulate.simulated_cluster import SimulatedCluster


class TimedEvent(Protocol):
    """A timed event."""

    @property
    def at_s(self) -> float:
        """Seconds after the start."""

    def happen(self, stage: SimulatedCluster) -> None:
        """Apply the event."""


class Arrival(Struct, frozen=True, gc=False):
    """A pod that arrives, and ends some time after it was placed."""

    at_s: float
    pod: Pod
    #: None: never
    lifetime_s: float | None = None

    def happen(self, stage: SimulatedCluster) -> None:
        """Create the pod."""
        stage.create(self.pod, self.lifetime_s)


class GroupArrival(Struct, frozen=True):
    """A group that arrives with its pods."""

    at_s: float
    group: PodGroup
    #: its pods, and how long each runs once it is placed; None: forever
    pods: tuple[tuple[Pod, float | None], ...]

    def happen(self, stage: SimulatedCluster) -> None:
        """Create the group and its pods."""
        stage.create_group(self.group, self.pods)


class NodeAdded(Struct, frozen=True):
    """A node that is added, with the DaemonSet pods of another one."""

    at_s: float
    node: Node
    #: name of a node whose DaemonSet pods are copied
    like: str = ""

    def happen(self, stage: SimulatedCluster) -> None:
        """Add the node."""
        daemons = stage.daemons_like(self.like, self.node.metadata.name)
        stage.add_node(self.node, daemons, self.like)


class NodeLost(Struct, frozen=True):
    """A node that is lost, and may come back."""

    at_s: float
    node_name: str
    #: after this time it is back; None: never
    for_s: float | None = None

    def happen(self, stage: SimulatedCluster) -> None:
        """Remove the node."""
        lost = stage.lose_node(self.node_name)
        if lost is not None and self.for_s is not None:
            node, daemons = lost
            stage.later(self.for_s, lambda: stage.add_node(node, daemons))


class NodeDrained(Struct, frozen=True):
    """A node that is cordoned and drained, and may be used again later."""

    at_s: float
    node_name: str
    for_s: float | None = None

    def happen(self, stage: SimulatedCluster) -> None:
        """Drain the node."""
        stage.drain_node(self.node_name)
        if self.for_s is not None:
            stage.later(self.for_s, lambda: stage.uncordon_node(self.node_name))
