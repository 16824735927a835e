"""What the page is told: plain data, every field always there, as JSON in camelCase."""

from __future__ import annotations

from msgspec import Struct, field

from kubesched.explain.report import Explanation


class Told(Struct, frozen=True, gc=False, rename="camel"):
    """Base of everything that the page is told."""


class PodCounts(Told, frozen=True):
    """How many pods are where."""

    placed: int = 0
    active: int = 0
    backoff: int = 0
    unschedulable: int = 0
    gated: int = 0
    #: for a scheduler that no profile is for
    unclaimed: int = 0

    @property
    def waiting(self) -> int:
        """How many have no node."""
        return self.active + self.backoff + self.unschedulable + self.gated + self.unclaimed


class Rate(Told, frozen=True):
    """Pods placed a second."""

    per_second: float = 0.0
    #: one number a second, oldest first
    history: tuple[float, ...] = ()


class Latency(Told, frozen=True):
    """How long attempts took during the last minute."""

    p50_ms: float | None = field(default=None, name="p50Ms")
    p99_ms: float | None = field(default=None, name="p99Ms")


class RecordingTold(Told, frozen=True):
    """A recording, and where in it we are."""

    entries: int
    at: int
    start: str
    end: str
    #: decisions in each of so many equal parts of the recording
    timeline: tuple[int, ...] = ()


class Stale(Told, frozen=True):
    """That what is shown is not up to date."""

    since: str
    why: str


class Overview(Told, frozen=True):
    """Everything at a glance."""

    #: scheduler, cluster, recording or snapshot
    source: str
    title: str
    version: str
    scheduler_names: tuple[str, ...]
    time: str
    nodes: int
    pods: PodCounts
    rate: Rate
    latency: Latency
    resources: tuple[str, ...]
    recording: RecordingTold | None = None
    what_if: bool = True
    #: None as long as the API server is heard of
    stale: Stale | None = None
    #: what is missing or was left out, one line each
    notes: tuple[str, ...] = ()


class ResourceColumns(Told, frozen=True):
    """One resource of many nodes."""

    allocatable: list[int]
    requested: list[int]


class NodesTold(Told, frozen=True):
    """Many nodes as columns, an entry a node."""

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
    #: whether nodes came or went: all of them are to be asked for again
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
    """Everything about one node."""

    name: str
    zone: str
    labels: dict[str, str]
    taints: tuple[str, ...]
    unschedulable: bool
    ready: bool
    resources: dict[str, Amounts]
    pods: tuple[PodOnNode, ...]


class WaitingPod(Told, frozen=True):
    """A pod that has no node, and why."""

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
    """How many pods a plugin keeps waiting."""

    plugin: str
    pods: int


class QueueTold(Told, frozen=True):
    """The pods that wait."""

    total: int
    pods: tuple[WaitingPod, ...]
    reasons: tuple[ReasonTold, ...]


class FoundPod(Told, frozen=True):
    """A pod, and the node that it is on."""

    namespace: str
    name: str
    node: str = ""


class FoundPods(Told, frozen=True):
    """Pods that were looked for."""

    pods: tuple[FoundPod, ...]


class ShortExplanation(Explanation, frozen=True, kw_only=True, omit_defaults=True):
    """An explanation without what is too much to show."""

    nodes_left_off: int = 0
    scores_left_off: int = 0


class Problem(Told, frozen=True):
    """Why there is no answer."""

    error: str
