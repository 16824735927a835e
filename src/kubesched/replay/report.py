"""What a replay says: plain data, for tables and for programs."""

from __future__ import annotations

from kubesched.cluster.node_table import NodeTable
from kubesched.replay.deciding import Outcome
from kubesched.simulate.report import Said


class Difference(Said, frozen=True):
    """A decision that came out otherwise."""

    entry: int
    time: str
    pod: str
    #: in which respect, as "node" or "message"
    fields: tuple[str, ...]
    recorded: Outcome
    now: Outcome


class Usage(Said, frozen=True):
    """How much of a resource is requested, of what all nodes offer, in percent."""

    resource: str
    recorded: float
    now: float
    #: of the fullest node
    highest_recorded: float
    highest_now: float


class Preemptions(Said, frozen=True):
    """Decisions to evict others, and how many those are."""

    decisions: int = 0
    victims: int = 0


class Placements(Said, frozen=True):
    """Where pods are in the end."""

    recorded: int
    now: int
    #: pods that are elsewhere, or nowhere, or only now anywhere
    moved: int


class Replayed(Said, frozen=True, kw_only=True):
    """What came of a replay."""

    recording: str
    #: whether the configuration was another one
    other_configuration: bool = False
    follow: str = "recorded"
    entries: int
    decisions: int
    same: int
    #: another node that was just as good was chosen
    tied: int = 0
    different: int = 0
    #: how many placed pods elsewhere, placed more, placed less, would evict others
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
    usage: tuple[Usage, ...] = ()
    placements: Placements | None = None
    notes: tuple[str, ...] = ()


def usage_of(recorded: NodeTable, now: NodeTable) -> tuple[Usage, ...]:
    """Measure how full the nodes are, by resource."""
    then, today = _shares(recorded), _shares(now)
    return tuple(
        Usage(name, then[name][0], today[name][0], then[name][1], today[name][1])
        for name in then
        if name in today
    )


def _shares(table: NodeTable) -> dict[str, tuple[float, float]]:
    """Return percentages by resource: of all nodes, and of the fullest."""
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
