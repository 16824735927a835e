"""The data of the page: plain structs, every field present, as JSON in camelCase."""

from __future__ import annotations

from msgspec import Struct, field

from kubesched.explain.report import Explanation


class Told(Struct, frozen=True, gc=False, rename="camel"):
    """Base of all page data."""


class PodTotals(Told, frozen=True):
    """The number of pods by state."""

    placed: int = 0
    active: int = 0
    backoff: int = 0
    unschedulable: int = 0
    gated: int = 0
    #: pods whose schedulerName has no profile
    unclaimed: int = 0

    @property
    def waiting(self) -> int:
        """The number of pending pods."""
        return self.active + self.backoff + self.unschedulable + self.gated + self.unclaimed


class Rate(Told, frozen=True):
    """Placements per second."""

    per_second: float = 0.0
    #: one number per second, oldest first
    history: tuple[float, ...] = ()


class Latency(Told, frozen=True):
    """Durations of attempts during the last minute."""

    p50_ms: float | None = field(default=None, name="p50Ms")
    p99_ms: float | None = field(default=None, name="p99Ms")


class RecordingTold(Told, frozen=True):
    """A recording, and the position in it."""

    entries: int
    at: int
    start: str
    end: str
    #: decisions in each of several equal intervals
    timeline: tuple[int, ...] = ()


class Stale(Told, frozen=True):
    """Marks the data as stale."""

    since: str
    why: str


class Overview(Told, frozen=True):
    """The header of the page."""

    #: scheduler, cluster, recording or snapshot
    source: str
    title: str
    version: str
    scheduler_names: tuple[str, ...]
    time: str
    nodes: int
    pods: PodTotals
    rate: Rate
    latency: Latency
    resources: tuple[str, ...]
    recording: RecordingTold | None = None
    what_if: bool = True
    #: None while the API server responds
    stale: Stale | None = None
    #: notes about missing or skipped data, one line each
    notes: tuple[str, ...] = ()


class ResourceColumns(Told, frozen=True):
    """One resource of many nodes."""

    allocatable: list[int]
    requested: list[int]


class NodesTold(Told, frozen=True):
    """Many nodes as columns, one entry per node."""

    names: list[str]
    zones: list[str]
    unschedulable: list[int]
    ready: list[int]
    taints: list[int]
    pods: list[int]
    resources: dict[str, ResourceColumns]


class AllNodes(NodesTold, frozen=True, kw_only=True):
    """All nodes, by zone and name."""

    version: int


class ChangedNodes(Told, frozen=True):
    """Nodes that changed since an earlier version."""

    version: int
    changed: NodesTold
    #: whether nodes were added or removed: all must be fetched again
    reload: bool = False


class Amounts(Told, frozen=True):
    """One resource of one node, as quantities."""

    allocatable: str
    requested: str


class PodOnNode(Told, frozen=True):
    """A pod on a node."""

    namespace: str
    name: str
    priority: int
    requests: dict[str, str]


class NodeTold(Told, frozen=True):
    """One node in detail."""

    name: str
    zone: str
    labels: dict[str, str]
    taints: tuple[str, ...]
    unschedulable: bool
    ready: bool
    resources: dict[str, Amounts]
    pods: tuple[PodOnNode, ...]


class PendingPodReport(Told, frozen=True):
    """A pending pod, and why."""

    namespace: str
    name: str
    #: active, backoff, unschedulable, gated or unclaimed
    state: str
    plugins: tuple[str, ...] = ()
    message: str = ""
    attempts: int = 0
    since: str = ""
    priority: int = 0


class ReasonTold(Told, frozen=True):
    """How many pods a plugin rejects."""

    plugin: str
    pods: int


class QueueTold(Told, frozen=True):
    """The pending pods."""

    total: int
    pods: tuple[PendingPodReport, ...]
    reasons: tuple[ReasonTold, ...]


class FoundPod(Told, frozen=True):
    """A pod, and the node that it is on."""

    namespace: str
    name: str
    node: str = ""


class FoundPods(Told, frozen=True):
    """Search results."""

    pods: tuple[FoundPod, ...]


class ShortExplanation(Explanation, frozen=True, kw_only=True, omit_defaults=True):
    """An explanation, shortened for display."""

    nodes_left_off: int = 0
    scores_left_off: int = 0


class Problem(Told, frozen=True):
    """An error."""

    error: str
