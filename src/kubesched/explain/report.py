"""What an explanation says: plain data, for tables and for programs."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, field


class Said(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of everything that is shown."""


class Reason(Said, frozen=True):
    """Why one filter turns a node away."""

    plugin: str
    text: str
    #: whether evicting pods could help
    resolvable: bool = False


class NodeAnswer(Said, frozen=True):
    """What became of a node."""

    node: str
    feasible: bool
    reasons: tuple[Reason, ...] = ()


class ReasonCount(Said, frozen=True):
    """How many nodes a reason keeps away."""

    plugin: str
    text: str
    nodes: int
    #: nodes that nothing else keeps away
    alone: int = 0


class PluginScore(Said, frozen=True):
    """One plugin's view of a node."""

    raw: int
    normalized: int
    weighted: int


class NodeScore(Said, frozen=True):
    """A feasible node's scores."""

    node: str
    total: int
    #: plugin → scores
    plugins: dict[str, PluginScore]


class Victim(Said, frozen=True):
    """A pod that would have to go."""

    pod: str
    priority: int


class Preemption(Said, frozen=True):
    """What preemption would do for the pod."""

    #: node that it would be nominated to, "" if preemption does not help
    node: str = ""
    victims: tuple[Victim, ...] = ()
    #: why not
    message: str = ""


class Operation(Said, frozen=True):
    """One operation of a JSON Patch."""

    op: str
    path: str
    #: not there if something is removed
    value: Any = UNSET


class Change(Said, frozen=True):
    """A change after which the pod fits, tried out on the engine."""

    kind: str
    title: str
    #: how many nodes the pod fits on then, and some of them
    nodes: int
    examples: tuple[str, ...] = ()
    #: how much is given up: changes are listed by it
    cost: float = 0.0
    #: how many things are changed at once
    steps: int = 1
    #: what becomes different in the pod, as a JSON Patch
    patch: tuple[Operation, ...] = ()
    evict: tuple[Victim, ...] = ()
    #: what to run in a shell to make the change; none where a command cannot
    commands: tuple[str, ...] = ()
    #: what to know about them, or what to do instead
    note: str = ""


class Explanation(Said, frozen=True):
    """Everything about one pod."""

    pod: str
    scheduler_name: str
    #: Schedulable, Unschedulable, Gated, Unclaimed (by any profile) or Error
    outcome: str
    #: as in the pod's condition; why there is none, if no profile is for the pod
    message: str
    total_nodes: int
    feasible_nodes: int
    #: node that the pod is on already
    current_node: str = ""
    #: node that the scheduler would choose, if there is only one best
    best_nodes: tuple[str, ...] = ()
    #: of nodes, by plugin and text; counts all reasons of a node, not just its first
    reasons: tuple[ReasonCount, ...] = ()
    #: reasons that are about the pod as a whole
    pod_reasons: tuple[Reason, ...] = ()
    nodes: tuple[NodeAnswer, ...] = ()
    weights: dict[str, int] = field(default_factory=dict)
    scores: tuple[NodeScore, ...] = ()
    preemption: Preemption | None = None
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
