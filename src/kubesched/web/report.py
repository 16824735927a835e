"""The data of the page: plain structs, every field present, as JSON in camelCase."""

from __future__ import annotations

from msgspec import Struct, field

from kubesched.explain.report import Explanation
from kubesched.framework.grading import PlacementGrade
from kubesched.simulate.report import Applied


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
    #: position after the first listing; before it, the cluster is not complete
    first: int
    at: int
    #: what the entry before this position was, "" where a file begins
    entry: str
    #: number of decisions up to this position, and of all
    decision: int
    decisions: int
    start: str
    end: str
    #: decisions in each of several equal parts of the positions after `first`
    timeline: tuple[int, ...] = ()
    #: positions of decisions to step through when it is played
    steps: tuple[int, ...] = ()
    #: positions before and after this one at which a decision has just been made
    previous_decision: int | None = None
    next_decision: int | None = None


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


class DeviceTold(Told, frozen=True):
    """A device of a node, and the claims that it is allocated to."""

    name: str
    #: namespace/name
    claims: tuple[str, ...] = ()
    #: namespace/name of the pods that these are reserved for
    pods: tuple[str, ...] = ()


class DevicePoolTold(Told, frozen=True):
    """The devices of one pool that a node has or can reach."""

    driver: str
    pool: str
    #: whether other nodes have them, too
    shared: bool
    total: int
    allocated: int
    devices: tuple[DeviceTold, ...]


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
    devices: tuple[DevicePoolTold, ...] = ()


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
    #: name of its pod group, "" if it has none
    group: str = ""
    #: kind/name of its controller, "" if it has none
    workload: str = ""


class MemberTold(Told, frozen=True):
    """A pod of a group."""

    name: str
    #: "" while it waits
    node: str = ""
    message: str = ""


class GroupTold(Told, frozen=True):
    """A group of pods that are scheduled together."""

    namespace: str
    name: str
    #: gang or basic
    policy: str
    #: how many pods have to fit for any of them to be bound
    min_count: int
    pods: int
    placed: int
    #: scheduled, unschedulable or pending, as its condition says
    state: str
    message: str = ""
    priority: int = 0
    since: str = ""
    #: labels of which all its nodes must have the same value
    topology: tuple[str, ...] = ()
    #: nodes of its pods
    nodes: tuple[str, ...] = ()


class GroupDetails(GroupTold, frozen=True, kw_only=True):
    """A group with its pods."""

    members: tuple[MemberTold, ...]


class ClaimTold(Told, frozen=True):
    """A claim of devices of a pod."""

    #: as the pod calls it
    name: str
    #: the object's name, "" if it is not there yet
    claim: str = ""
    #: pending, allocated, reserved, or missing
    state: str = "missing"
    #: what it asks for, one line a request
    requests: tuple[str, ...] = ()
    #: driver/pool/device of those that it has
    devices: tuple[str, ...] = ()


class PodTold(Told, frozen=True):
    """The pod itself: what it wants, and what it belongs to."""

    namespace: str
    name: str
    node: str
    scheduler_name: str
    priority: int
    created: str
    phase: str
    #: kind/name of its controller, "" if it has none
    workload: str
    requests: dict[str, str]
    labels: dict[str, str]
    #: what it demands of nodes and other pods, one line each
    demands: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    group: GroupTold | None = None
    claims: tuple[ClaimTold, ...] = ()


class DecisionTold(Told, frozen=True):
    """An attempt at a pod, or a placement that was seen."""

    #: number of the entry in a recording, otherwise of the decision
    number: int
    time: str
    namespace: str
    name: str
    #: "" if none was found
    node: str = ""
    message: str = ""
    attempts: int | None = None
    #: nodes that were evaluated, and those that fit
    evaluated: int | None = None
    feasible: int | None = None
    #: None if it is not known: of a member of a group, with extenders, of another scheduler
    grade: PlacementGrade | None = None
    #: from the creation of the pod, or since it was first seen
    waited_s: float | None = field(default=None, name="waitedS")


class DecisionsTold(Told, frozen=True):
    """The last decisions, newest first."""

    decisions: tuple[DecisionTold, ...]
    total: int


class NodeLabels(Told, frozen=True):
    """Labels that nodes can be grouped by, and the values of one of them."""

    keys: tuple[str, ...]
    key: str = ""
    #: node → value; nodes without the label are left out
    values: dict[str, str] = {}


class ReasonTold(Told, frozen=True):
    """How many pods a plugin rejects."""

    plugin: str
    pods: int


class QueueTold(Told, frozen=True):
    """The pending pods."""

    total: int
    pods: tuple[PendingPodReport, ...]
    reasons: tuple[ReasonTold, ...]
    #: groups of pods, those that wait first
    groups: tuple[GroupTold, ...] = ()


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


class AppliedOnPage(Applied, frozen=True, kw_only=True):
    """Whether the pods of a manifest fit, and one that does not."""

    explanation: ShortExplanation | None = None


class Problem(Told, frozen=True):
    """An error."""

    error: str
