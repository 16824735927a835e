"""The report of a replay: plain data, for tables and for programs."""

from __future__ import annotations

from kubesched.cluster.node_table import NodeTable
from kubesched.replay.deciding import AttemptOutcome
from kubesched.simulate.report import SimulationReport


class Difference(SimulationReport, frozen=True):
    """A decision that differs."""

    entry: int
    time: str
    pod: str
    #: the differing field, such as "node" or "message"
    fields: tuple[str, ...]
    recorded: AttemptOutcome
    now: AttemptOutcome


class ResourceUsage(SimulationReport, frozen=True):
    """Requested share of allocatable, in percent."""

    resource: str
    recorded: float
    now: float
    #: of the fullest node
    highest_recorded: float
    highest_now: float


class Preemptions(SimulationReport, frozen=True):
    """Decisions to preempt, and their victims."""

    decisions: int = 0
    victims: int = 0


class PlacementChanges(SimulationReport, frozen=True):
    """Where pods are at the end."""

    recorded: int
    now: int
    #: pods on another node, or with a node in only one of both
    moved: int


class Replayed(SimulationReport, frozen=True, kw_only=True):
    """The result of a replay."""

    recording: str
    #: whether the configuration differs from the recorded one
    other_configuration: bool = False
    follow: str = "recorded"
    entries: int
    decisions: int
    same: int
    #: another, equally good node was chosen
    tied: int = 0
    different: int = 0
    #: decisions that chose another node, placed more, placed less, preempted differently
    placed_elsewhere: int = 0
    placed_only_now: int = 0
    placed_only_then: int = 0
    otherwise: int = 0
    differences: tuple[Difference, ...] = ()
    start: str
    end: str
    covered_seconds: float
    took_seconds: float
    decisions_per_second: float
    cut_off: bool = False
    redacted: bool = False
    recorded_preemptions: Preemptions = Preemptions()
    preemptions: Preemptions = Preemptions()
    usage: tuple[ResourceUsage, ...] = ()
    placements: PlacementChanges | None = None
    notes: tuple[str, ...] = ()


def usage_of(recorded: NodeTable, now: NodeTable) -> tuple[ResourceUsage, ...]:
    """Compute the usage of nodes, by resource."""
    then, today = _shares(recorded), _shares(now)
    return tuple(
        ResourceUsage(name, then[name][0], today[name][0], then[name][1], today[name][1])
        for name in then
        if name in today
    )


def _shares(table: NodeTable) -> dict[str, tuple[float, float]]:
    """Return percentages by resource: over all nodes, and of the fullest."""
    rows = table.order.rows()
    amounts = [
        (name, table.allocatable[number, rows], table.requested[number, rows])
        for number, name in enumerate(table.resources.names)
    ]
    amounts.append(("pods", table.allowed_pods[rows], table.pod_count[rows]))
    found: dict[str, tuple[float, float]] = {}
    for name, offered, taken in amounts:
        there = offered > 0
        if there.any():
            whole = 100 * int(taken.sum()) / int(offered.sum())
            highest = 100 * float((taken[there] / offered[there]).max())
            found[name] = round(whole, 1), round(highest, 1)
    return found
