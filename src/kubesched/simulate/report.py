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
    #: "" if it has none
    workload: str = ""


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


class NodesOfPods(SimulationReport, frozen=True):
    """Nodes of one pool and zone, with the pods that go there."""

    pods: int
    #: node → pods
    nodes: dict[str, int]
    #: "" if no label of the nodes says so
    pool: str = ""
    zone: str = ""


class AppliedWorkload(SimulationReport, frozen=True):
    """A workload and the pods that it lacks."""

    kind: str
    namespace: str
    name: str
    #: how many pods it is to have, and how many of these are there
    asked: int
    existing: int
    #: how many are missing, and how many of these fit
    more: int
    placed: int


class PreemptedPod(SimulationReport, frozen=True):
    """A pod that has to make room for another, or for a group."""

    pod: str
    priority: int
    node: str
    preemptor: str
    #: "" if it has none
    workload: str = ""
    #: the PodDisruptionBudget that its eviction violates
    budget: str = ""
    #: the node that it finds instead
    now: str = ""


class Applied(SimulationReport, frozen=True, kw_only=True):
    """Whether the pods of manifests fit, and where."""

    fits: bool
    pods: int
    placed: int
    workloads: tuple[AppliedWorkload, ...] = ()
    places: tuple[NodesOfPods, ...] = ()
    #: pod → node
    placements: dict[str, str] = field(default_factory=dict)
    preempted: tuple[PreemptedPod, ...] = ()
    left: tuple[Left, ...] = ()
    notes: tuple[str, ...] = ()


class GangPlacement(SimulationReport, frozen=True):
    """Where the pods of one gang go."""

    #: node → pods
    nodes: dict[str, int]
    #: value of the group's topology label
    domain: str = ""


class GangHeadroom(SimulationReport, frozen=True):
    """How many more gangs fit, each as a whole."""

    group: str
    gangs: int
    #: pods of each gang, and how many of them it needs
    pods_each: int
    min_count: int
    #: whether the count stopped at a limit
    at_least: bool = False
    #: in the order in which they are placed
    placements: tuple[GangPlacement, ...] = ()
    #: why not one more
    message: str = ""


class BrokenGang(SimulationReport, frozen=True):
    """A gang that has too few pods left on nodes."""

    group: str
    running: int
    needed: int


class BlockingBudget(SimulationReport, frozen=True):
    """A PodDisruptionBudget that does not allow all evictions now."""

    budget: str
    #: how many it allows
    allowed: int
    #: pods whose eviction it does not
    pods: tuple[str, ...]


class DisplacedPod(SimulationReport, frozen=True):
    """A pod that another node takes."""

    pod: str
    before: str
    after: str
    #: "" if it has none
    workload: str = ""


class Displacement(SimulationReport, frozen=True):
    """The pods of nodes that are lost or drained."""

    name: str
    nodes: int
    #: pods that must move, and those that end with their node
    displaced: int
    ended: int = 0
    placed: int = 0
    left: tuple[Left, ...] = ()
    #: pods whose eviction a PDB does not allow now, and these PDBs
    against_budgets: tuple[str, ...] = ()
    budgets: tuple[BlockingBudget, ...] = ()
    #: pod → node, and the same with where it was and what it belongs to
    moves: dict[str, str] = field(default_factory=dict)
    moved: tuple[DisplacedPod, ...] = ()
    #: gangs below what they need afterwards
    gangs: tuple[BrokenGang, ...] = ()


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
    #: "" if it has none
    workload: str = ""


class Preemption(SimulationReport, frozen=True):
    """Victims of a preemption."""

    #: seconds after the start
    at_s: float
    preemptor: str
    node: str
    victims: tuple[str, ...]
    #: victim → the PodDisruptionBudget that its eviction violates
    violated: dict[str, str] = field(default_factory=dict)


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
