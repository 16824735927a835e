"""What is to happen to a cluster, and when: pods that come, nodes that come and go."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from kubesched.api.core import Node, Pod
from kubesched.simulate.stage import Stage


class Happening(Protocol):
    """Something that is to happen."""

    @property
    def at_s(self) -> float:
        """When, in seconds after the beginning."""

    def happen(self, stage: Stage) -> None:
        """Let it happen."""


class Arrival(Struct, frozen=True, gc=False):
    """A pod that comes, and ends some time after it was placed."""

    at_s: float
    pod: Pod
    #: None: it never ends
    lifetime_s: float | None = None

    def happen(self, stage: Stage) -> None:
        """Create the pod."""
        stage.create(self.pod, self.lifetime_s)


class NodeAdded(Struct, frozen=True):
    """A node that comes, with the daemons of another one."""

    at_s: float
    node: Node
    #: name of a node whose daemons it gets, too
    like: str = ""

    def happen(self, stage: Stage) -> None:
        """Add the node."""
        stage.add_node(self.node, stage.daemons_like(self.like, self.node.metadata.name))


class NodeLost(Struct, frozen=True):
    """A node that goes, and may come back."""

    at_s: float
    node_name: str
    #: after which time it is back; None: never
    for_s: float | None = None

    def happen(self, stage: Stage) -> None:
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

    def happen(self, stage: Stage) -> None:
        """Drain the node."""
        stage.drain_node(self.node_name)
        if self.for_s is not None:
            stage.later(self.for_s, lambda: stage.uncordon_node(self.node_name))
