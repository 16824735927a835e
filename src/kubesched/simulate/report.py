"""Reports of simulations: plain data, for tables and for programs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.resources import CPU, MEMORY


class SimulationReport(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all reports."""


class Left(SimulationReport, frozen=True):
    """A pod that found no node."""

    pod: str
    priority: int
    message: str


class Utilisation(SimulationReport, frozen=True):
    """Requested share of allocatable, in percent."""

    cpu: float
    memory: float
    #: of the fullest node
    highest_cpu: float
    highest_memory: float

    @classmethod
    def of(cls, table: NodeTable) -> Utilisation:
        """Compute it."""
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


class Headroom(SimulationReport, frozen=True):
    """How many more pods fit."""

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


class Displacement(SimulationReport, frozen=True):
    """The pods of nodes that are lost or drained."""

    name: str
    nodes: int
    #: pods that must move, and those that end with their node
    displaced: int
    ended: int = 0
    placed: int = 0
    left: tuple[Left, ...] = ()
    #: pods whose eviction a PDB does not allow now
    against_budgets: tuple[str, ...] = ()
    #: pod → node
    moves: dict[str, str] = field(default_factory=dict)


class Losses(SimulationReport, frozen=True):
    """The loss of each of several domains."""

    domains: tuple[Displacement, ...]

    @property
    def harmless(self) -> int:
        """Domains whose pods would all find another node."""
        return sum(not each.left for each in self.domains)


class Addition(SimulationReport, frozen=True):
    """The effect of more nodes on pending pods."""

    added: int
    like: str
    pending: int
    placed_before: int
    placed_after: int
    still_left: tuple[Left, ...] = ()
    before: Utilisation | None = None
    after: Utilisation | None = None


class Move(SimulationReport, frozen=True):
    """A pod that another configuration places elsewhere; "" is no node."""

    pod: str
    before: str
    after: str


class Preemption(SimulationReport, frozen=True):
    """Victims of a preemption."""

    #: seconds after the start
    at_s: float
    preemptor: str
    node: str
    victims: tuple[str, ...]


class WorkloadSpread(SimulationReport, frozen=True):
    """The spread of one workload's pods."""

    pods: int = 0
    #: zones that have at least one of them
    zones: int = 0
    #: pods in the zone with the most minus pods in the zone with the fewest
    zone_skew: int = 0
    nodes: int = 0
    #: pods on the node with the most
    most_on_a_node: int = 0


class Spread(SimulationReport, frozen=True):
    """The spread of pods, over all workloads of at least two."""

    workloads: int = 0
    #: workloads that the loss of one zone, or of one node, would take down
    in_one_zone: int = 0
    on_one_node: int = 0
    mean_zone_skew: float = 0.0
    highest_zone_skew: int = 0


class SpreadChange(SimulationReport, frozen=True):
    """A workload that another configuration spreads differently."""

    workload: str
    before: WorkloadSpread
    after: WorkloadSpread


class ConfigurationComparison(SimulationReport, frozen=True):
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


class Waits(SimulationReport, frozen=True):
    """Waiting times, in seconds."""

    pods: int = 0
    mean_s: float = 0.0
    p50_s: float = 0.0
    p90_s: float = 0.0
    p99_s: float = 0.0
    longest_s: float = 0.0

    @classmethod
    def of(cls, waits_s: Sequence[float]) -> Waits:
        """Aggregate; each percentile is the wait of one of the pods."""
        if not waits_s:
            return cls()
        ordered = sorted(waits_s)

        def percentile(share: float) -> float:
            return round(ordered[min(int(share * len(ordered)), len(ordered) - 1)], 3)

        mean_s = round(sum(ordered) / len(ordered), 3)
        p50_s, p90_s, p99_s = (percentile(share) for share in (0.5, 0.9, 0.99))
        return cls(len(ordered), mean_s, p50_s, p90_s, p99_s, round(ordered[-1], 3))


class StillPending(SimulationReport, frozen=True):
    """A pod that is pending at the end."""

    pod: str
    waited_s: float
    attempts: int
    #: why it was last rejected
    message: str = ""


class RejectionReason(SimulationReport, frozen=True):
    """Why pods were rejected."""

    reason: str
    pods: int
    refusals: int


class UsageSample(SimulationReport, frozen=True):
    """A sample of the state; cpu and memory in percent of allocatable."""

    at_s: float
    nodes: int
    #: pods on nodes
    pods: int
    #: pending pods
    waiting: int
    cpu: float
    memory: float


class RunReport(SimulationReport, frozen=True):
    """The result of a run in virtual time."""

    #: its length
    seconds: float
    arrived: int
    #: number of placements
    placed: int
    ended: int
    #: pods that were preempted or lost their node, and were recreated
    displaced: int
    #: pods pending at the end
    pending: int
    waits: Waits
    preemptions: tuple[Preemption, ...] = ()
    reasons: tuple[RejectionReason, ...] = ()
    waiting: tuple[StillPending, ...] = ()
    #: means over the samples, and so over time if those are regular
    mean_cpu: float = 0.0
    mean_memory: float = 0.0
    spread: Spread = Spread()
    readings: tuple[UsageSample, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def victims(self) -> int:
        """The number of victims."""
        return sum(len(each.victims) for each in self.preemptions)
