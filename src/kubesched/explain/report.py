"""The report of an explanation: plain data, for tables and for programs."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, field


class ExplainReport(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all reports."""


class Reason(ExplainReport, frozen=True):
    """Why one filter rejects a node."""

    plugin: str
    text: str
    #: whether evicting pods could help
    resolvable: bool = False


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
    #: the change of the pod, as a JSON Patch
    patch: tuple[Operation, ...] = ()
    evict: tuple[Victim, ...] = ()
    #: shell commands for the change; empty where there are none
    commands: tuple[str, ...] = ()
    #: what to know about them, or what to do instead
    note: str = ""


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
    changes: tuple[HelpfulChange, ...] = ()
    notes: tuple[str, ...] = ()
