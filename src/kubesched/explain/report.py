"""The report of an explanation: plain data, for tables and for programs."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, field


class ExplainReport(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all reports."""


class ReasonDetail(ExplainReport, frozen=True):
    """The numbers and names behind a reason."""

    text: str
    #: the same for programs; which there are depends on the plugin
    values: dict[str, Any] = field(default_factory=dict)
    #: nodes that it is so on, and some of them; none for the reasons of one node
    nodes: int = 0
    examples: tuple[str, ...] = ()


class Reason(ExplainReport, frozen=True):
    """Why one filter rejects a node."""

    plugin: str
    text: str
    #: whether evicting pods could help
    resolvable: bool = False
    details: tuple[ReasonDetail, ...] = ()


class NodeAnswer(ExplainReport, frozen=True):
    """The result for a node."""

    node: str
    feasible: bool
    reasons: tuple[Reason, ...] = ()


class ReasonCount(ExplainReport, frozen=True):
    """How many nodes a reason rejects."""

    plugin: str
    text: str
    nodes: int
    #: nodes of which it is the sole reason
    alone: int = 0
    #: the nodes that come closest first
    details: tuple[ReasonDetail, ...] = ()


class PluginScore(ExplainReport, frozen=True):
    """One plugin's score of a node."""

    raw: int
    normalized: int
    weighted: int


class ExplainedScore(ExplainReport, frozen=True):
    """A feasible node's scores."""

    node: str
    total: int
    #: plugin → scores
    plugins: dict[str, PluginScore]


class Victim(ExplainReport, frozen=True):
    """A pod that would be evicted."""

    pod: str
    priority: int


class PreemptionEffect(ExplainReport, frozen=True):
    """The effect of preemption for the pod."""

    #: nominated node, "" if preemption does not help
    node: str = ""
    victims: tuple[Victim, ...] = ()
    #: why not
    message: str = ""


class DeviceCause(ExplainReport, frozen=True):
    """Why devices cannot serve a request."""

    #: node, selector, taint, in use, capacity, counter or constraint
    cause: str
    #: what is so of them, as in "lack memory >= 40Gi"
    text: str
    devices: int
    #: pods that use them
    pods: tuple[str, ...] = ()


class DeviceRequestAnswer(ExplainReport, frozen=True):
    """One request of a claim, or one alternative of it, among all devices of the cluster."""

    claim: str
    request: str
    device_class: str
    #: how many are asked for on one node; 0 for all that match
    count: int
    #: devices that nodes can see, and those of them that may serve the request now
    devices: int
    usable: int
    causes: tuple[DeviceCause, ...] = ()
    #: why a selector has no answer
    problem: str = ""


class NodeDeviceAnswer(ExplainReport, frozen=True):
    """How close a node comes to a request."""

    node: str
    claim: str
    request: str
    #: how many devices the node sees, how many are asked for, and how many it could give
    devices: int
    wanted: int
    usable: int
    text: str
    causes: tuple[DeviceCause, ...] = ()


class ClaimAnswer(ExplainReport, frozen=True):
    """A claim of the pod that has its devices already."""

    claim: str
    devices: tuple[str, ...]
    #: the nodes that can use them, the first few of many
    nodes: tuple[str, ...] = ()
    #: pods that use it
    pods: tuple[str, ...] = ()


class DeviceExplanation(ExplainReport, frozen=True):
    """What speaks against the devices that a pod claims."""

    #: devices of the cluster, and nodes that see some
    devices: int
    nodes: int
    requests: tuple[DeviceRequestAnswer, ...] = ()
    #: the nodes that come closest, best first
    closest: tuple[NodeDeviceAnswer, ...] = ()
    allocated: tuple[ClaimAnswer, ...] = ()


class Operation(ExplainReport, frozen=True):
    """One operation of a JSON Patch."""

    op: str
    path: str
    #: absent if something is removed
    value: Any = UNSET


class HelpfulChange(ExplainReport, frozen=True):
    """A change after which the pod fits, tried on the engine."""

    kind: str
    title: str
    #: number of feasible nodes then, and some of them
    nodes: int
    examples: tuple[str, ...] = ()
    #: cost: changes are sorted by it
    cost: float = 0.0
    #: number of things changed at once
    steps: int = 1
    #: whether to do it only if nothing else helps
    last_resort: bool = False
    #: the change of the pod, as a JSON Patch
    patch: tuple[Operation, ...] = ()
    #: the changed claim of the pod, and the change of its spec as a JSON Patch
    claim: str = ""
    claim_patch: tuple[Operation, ...] = ()
    evict: tuple[Victim, ...] = ()
    #: shell commands for the change; empty where there are none
    commands: tuple[str, ...] = ()
    #: what to know about them, or what to do instead
    note: str = ""


class MemberAnswer(ExplainReport, frozen=True):
    """One member of a group."""

    pod: str
    #: the node that it has, or would get on the best placement; "" if none
    node: str = ""
    #: whether it has the node already
    placed: bool = False
    #: why it would get none there
    message: str = ""
    #: as in the pod's condition after an attempt at the group
    condition: str = ""


class LackingMembers(ExplainReport, frozen=True):
    """Members that fit on no node of a placement for the same reasons."""

    pods: int
    example: str
    message: str


class PlacementAnswer(ExplainReport, frozen=True):
    """How much of a group fits on one placement."""

    #: value of the group's topology label; "" for all nodes
    name: str
    nodes: int
    #: members that fit or are there already, of how many, and how many are needed
    fits: int
    members: int
    needed: int
    #: whether that is enough
    feasible: bool
    text: str
    lacking: tuple[LackingMembers, ...] = ()


class GroupExplanation(ExplainReport, frozen=True):
    """The explanation of a group of pods."""

    #: namespace/name
    group: str
    scheduler_name: str
    #: Scheduled, Schedulable, Unschedulable, Gated or Error
    outcome: str
    #: as in the group's condition, or why it is not tried yet
    message: str
    #: the same in one line, with numbers
    text: str
    #: gang or basic, and how many members have to fit
    policy: str
    min_count: int
    #: how many members there are, and how many have a node
    members: int
    placed: int
    #: label of which all nodes must have the same value
    topology_key: str = ""
    #: the group of groups that it is tried with
    part_of: str = ""
    #: the best first
    placements: tuple[PlacementAnswer, ...] = ()
    pods: tuple[MemberAnswer, ...] = ()
    preemption: PreemptionEffect | None = None
    changes: tuple[HelpfulChange, ...] = ()
    notes: tuple[str, ...] = ()


class Explanation(ExplainReport, frozen=True):
    """The explanation of one pod."""

    pod: str
    scheduler_name: str
    #: Schedulable, Unschedulable, Gated, Unclaimed (by any profile) or Error
    outcome: str
    #: as in the pod's condition; why there is none, if no profile is for the pod
    message: str
    total_nodes: int
    feasible_nodes: int
    #: the pod's current node
    current_node: str = ""
    #: node that the scheduler would choose, if there is a single best
    best_nodes: tuple[str, ...] = ()
    #: by plugin and text, over nodes; counts all reasons of a node, not just its first
    reasons: tuple[ReasonCount, ...] = ()
    #: reasons that concern the pod as a whole
    pod_reasons: tuple[Reason, ...] = ()
    nodes: tuple[NodeAnswer, ...] = ()
    weights: dict[str, int] = field(default_factory=dict)
    scores: tuple[ExplainedScore, ...] = ()
    preemption: PreemptionEffect | None = None
    #: for a pod that claims devices and fits nowhere
    devices: DeviceExplanation | None = None
    #: for a pending pod of a group
    group: GroupExplanation | None = None
    changes: tuple[HelpfulChange, ...] = ()
    notes: tuple[str, ...] = ()


class WaitingWorkload(ExplainReport, frozen=True):
    """Pods of one workload that wait for the same cause."""

    #: kind, namespace and name; a pod without a controller is one by itself
    kind: str
    namespace: str
    name: str
    pods: int


class WaitingCause(ExplainReport, frozen=True):
    """Why some pods wait for a node."""

    #: as in `Explanation`, or Nominated: victims of its preemption are being terminated
    outcome: str
    text: str
    pods: int
    #: one of the pods, the scheduler's message about it, and the numbers and names behind that
    example: str
    message: str
    reasons: tuple[ReasonCount, ...] = ()
    pod_reasons: tuple[Reason, ...] = ()
    #: the largest first
    workloads: tuple[WaitingWorkload, ...] = ()
    #: all of the pods
    names: tuple[str, ...] = ()


class WaitingReport(ExplainReport, frozen=True):
    """All pods that wait for a node, by cause."""

    waiting: int
    placed: int
    nodes: int
    #: the only namespace that counts, "" for all
    namespace: str = ""
    #: the most common first
    causes: tuple[WaitingCause, ...] = ()
    notes: tuple[str, ...] = ()


class PodsOnNode(ExplainReport, frozen=True):
    """How many pods of a workload a node has."""

    node: str
    pods: int


class WorkloadExplanation(ExplainReport, frozen=True):
    """The pods of a workload: where they are, and why others wait."""

    kind: str
    namespace: str
    name: str
    waiting: int
    placed: int
    causes: tuple[WaitingCause, ...] = ()
    #: the nodes with the most pods first
    nodes: tuple[PodsOnNode, ...] = ()
    notes: tuple[str, ...] = ()


class ScoreComparison(ExplainReport, frozen=True):
    """One plugin's weighted score of two nodes."""

    plugin: str
    weight: int
    winner: int
    node: int
    #: of the node to the winner: negative where it lost points
    difference: int


class NodeExplanation(ExplainReport, frozen=True):
    """Why a pod is, or is not, on a certain node."""

    pod: str
    node: str
    scheduler_name: str
    #: Rejected, Best, Tied with the best, or Outscored
    outcome: str
    #: in one line
    text: str
    #: the pod's current node
    current_node: str = ""
    #: why the node is rejected
    reasons: tuple[Reason, ...] = ()
    #: the node that is compared with: the pod's own, or the best
    winner: str = ""
    #: total scores
    winner_points: int = 0
    node_points: int = 0
    #: where it lost most points first
    scores: tuple[ScoreComparison, ...] = ()
    notes: tuple[str, ...] = ()
