"""What simulations say: plain data, for tables and for programs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.resources import CPU, MEMORY


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
    def of(cls, table: NodeTable) -> Utilisation:
        """Measure it."""
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


class Preemption(Said, frozen=True):
    """Pods that had to make room for another one."""

    #: seconds after the beginning
    at_s: float
    preemptor: str
    node: str
    victims: tuple[str, ...]


class WorkloadSpread(Said, frozen=True):
    """How the pods of one workload are spread."""

    pods: int = 0
    #: zones that have at least one of them
    zones: int = 0
    #: pods in the zone with the most minus pods in the zone with the fewest
    zone_skew: int = 0
    nodes: int = 0
    #: pods on the node with the most
    most_on_a_node: int = 0


class Spread(Said, frozen=True):
    """How pods are spread, over all workloads of at least two."""

    workloads: int = 0
    #: workloads that the loss of one zone, or of one node, would end
    in_one_zone: int = 0
    on_one_node: int = 0
    mean_zone_skew: float = 0.0
    highest_zone_skew: int = 0


class SpreadChange(Said, frozen=True):
    """A workload that another configuration spreads otherwise."""

    workload: str
    before: WorkloadSpread
    after: WorkloadSpread


class Comparison(Said, frozen=True):
    """Two configurations on the same pods."""

    pods: int
    unchanged: int
    moves: tuple[Move, ...]
    left_before: int
    left_after: int
    before: Utilisation
    after: Utilisation
    preemptions_before: tuple[Preemption, ...] = ()
    preemptions_after: tuple[Preemption, ...] = ()
    spread_before: Spread = Spread()
    spread_after: Spread = Spread()
    spread_changes: tuple[SpreadChange, ...] = ()
    notes: tuple[str, ...] = ()


# --- virtual time -----------------------------------------------------------------------------


class Waits(Said, frozen=True):
    """How long pods waited for a node, in seconds."""

    pods: int = 0
    mean_s: float = 0.0
    p50_s: float = 0.0
    p90_s: float = 0.0
    p99_s: float = 0.0
    longest_s: float = 0.0

    @classmethod
    def of(cls, waits_s: Sequence[float]) -> Waits:
        """Sum them up; each percentile is the wait of one of the pods."""
        if not waits_s:
            return cls()
        ordered = sorted(waits_s)

        def percentile(share: float) -> float:
            return round(ordered[min(int(share * len(ordered)), len(ordered) - 1)], 3)

        mean_s = round(sum(ordered) / len(ordered), 3)
        p50_s, p90_s, p99_s = (percentile(share) for share in (0.5, 0.9, 0.99))
        return cls(len(ordered), mean_s, p50_s, p90_s, p99_s, round(ordered[-1], 3))


class Waiting(Said, frozen=True):
    """A pod that still waits in the end."""

    pod: str
    waited_s: float
    attempts: int
    #: why it was turned away the last time
    message: str = ""


class Reason(Said, frozen=True):
    """Why pods were turned away."""

    reason: str
    pods: int
    refusals: int


class Reading(Said, frozen=True):
    """The state at one moment; cpu and memory in percent of what the nodes offer."""

    at_s: float
    nodes: int
    #: pods on nodes
    pods: int
    #: pods that want a node
    waiting: int
    cpu: float
    memory: float


class Run(Said, frozen=True):
    """What happened in virtual time."""

    #: how long it was
    seconds: float
    arrived: int
    #: how many times a pod found a node
    placed: int
    ended: int
    #: pods that were preempted, or whose node went, and which came again
    displaced: int
    #: pods that still wait
    pending: int
    waits: Waits
    preemptions: tuple[Preemption, ...] = ()
    reasons: tuple[Reason, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    #: means over the readings, and over time if those are regular
    mean_cpu: float = 0.0
    mean_memory: float = 0.0
    spread: Spread = Spread()
    readings: tuple[Reading, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def victims(self) -> int:
        """Pods that had to make room for others."""
        return sum(len(each.victims) for each in self.preemptions)
