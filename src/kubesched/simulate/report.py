"""What simulations say: plain data, for tables and for programs."""

from __future__ import annotations

from msgspec import Struct, field

from kubesched.cluster.resources import CPU, MEMORY
from kubesched.snapshot.world import World


class Said(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of everything that is shown."""


class Left(Said, frozen=True):
    """A pod that found no node."""

    pod: str
    priority: int
    message: str


class Utilisation(Said, frozen=True):
    """How much of what the nodes offer is requested, in percent."""

    cpu: float
    memory: float
    #: of the fullest node
    highest_cpu: float
    highest_memory: float

    @classmethod
    def of(cls, world: World) -> Utilisation:
        """Measure it."""
        table = world.table
        rows = table.order.rows()
        total, highest = [], []
        for resource in (CPU, MEMORY):
            offered, taken = table.allocatable[resource, rows], table.requested[resource, rows]
            total.append(_percent(int(taken.sum()), int(offered.sum())))
            some = offered > 0
            shares = taken[some] / offered[some]
            highest.append(round(100 * float(shares.max(initial=0.0)), 1))
        return cls(total[0], total[1], highest[0], highest[1])


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


class Headroom(Said, frozen=True):
    """How many more of a pod fit."""

    pod: str
    pods: int
    #: whether the count stopped at a limit
    at_least: bool = False
    #: nodes that take at least one
    nodes: int = 0
    by_zone: dict[str, int] = field(default_factory=dict)
    #: node → pods
    by_node: dict[str, int] = field(default_factory=dict)
    #: why not one more
    message: str = ""


class Displacement(Said, frozen=True):
    """What becomes of the pods of nodes that are lost or drained."""

    name: str
    nodes: int
    #: pods that have to move, and those that end with their node
    displaced: int
    ended: int = 0
    placed: int = 0
    left: tuple[Left, ...] = ()
    #: pods whose eviction the disruption budgets do not allow now
    against_budgets: tuple[str, ...] = ()
    #: pod → node
    moves: dict[str, str] = field(default_factory=dict)


class Losses(Said, frozen=True):
    """Each of several domains lost in turn."""

    domains: tuple[Displacement, ...]

    @property
    def harmless(self) -> int:
        """Domains whose pods would all find another node."""
        return sum(not each.left for each in self.domains)


class Addition(Said, frozen=True):
    """What more nodes would do for the pods that wait."""

    added: int
    like: str
    pending: int
    placed_before: int
    placed_after: int
    still_left: tuple[Left, ...] = ()
    before: Utilisation | None = None
    after: Utilisation | None = None


class Move(Said, frozen=True):
    """A pod that another configuration places elsewhere; "" is nowhere."""

    pod: str
    before: str
    after: str


class Comparison(Said, frozen=True):
    """Two configurations on the same pods."""

    pods: int
    unchanged: int
    moves: tuple[Move, ...]
    left_before: int
    left_after: int
    before: Utilisation
    after: Utilisation
