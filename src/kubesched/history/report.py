"""The report of a pod's history: plain data, for the terminal and for programs."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class EventKind(StrEnum):
    """What happened to a pod."""

    SEEN = "seen"
    CHANGED = "changed"
    MOVED = "moved"
    ATTEMPT = "attempt"
    ASSUMED = "assumed"
    BOUND = "bound"
    RETURNED = "returned"
    FORGOTTEN = "forgotten"
    NOMINATED = "nominated"
    UNNOMINATED = "unnominated"
    DEVICES = "devices"
    VOLUME = "volume"
    VICTIM = "victim"
    TERMINATING = "terminating"
    REMOVED = "removed"


class HistoryRecord(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Base of the records of a history."""


class RejectedNodes(HistoryRecord, frozen=True):
    """The nodes whose first rejection was the same."""

    plugin: str
    reason: str
    nodes: int
    #: the first of them
    examples: tuple[str, ...] = ()


class ScoredNode(HistoryRecord, frozen=True):
    """The score of a node, and each plugin's share, weighted."""

    node: str
    total: int
    plugins: dict[str, int] = {}


class WinningScore(HistoryRecord, frozen=True):
    """Why the chosen node was chosen."""

    winner: ScoredNode
    runner_up: ScoredNode | None = None
    #: how many nodes had the best score; one of them is chosen at random
    tied: int = 1


class ChosenVictim(HistoryRecord, frozen=True):
    """A pod that an attempt chose to evict."""

    pod: str
    uid: str
    priority: int = 0
    node: str = ""


class GroupAttempt(HistoryRecord, frozen=True):
    """The group that the pod was tried with."""

    #: kind/namespace/name
    group: str
    members: int
    #: how many of them got a node
    placed: int


class ClaimKnown(HistoryRecord, frozen=True):
    """A claim of the pod, as it was before the attempt."""

    #: PersistentVolumeClaim or ResourceClaim
    kind: str
    name: str
    #: its volume or devices; empty if it had none
    allocated: tuple[str, ...] = ()


class ExtenderAnswer(HistoryRecord, frozen=True):
    """What extenders answered in an attempt."""

    #: nodes that they left, None if they were not asked to filter
    feasible: int | None = None
    rejected: tuple[RejectedNodes, ...] = ()
    error: str = ""


class AttemptKnown(HistoryRecord, frozen=True):
    """An attempt: its result, and what was known then."""

    number: int
    profile: str
    #: kube-scheduler's status code
    code: str
    node: str = ""
    message: str = ""
    #: nodes of the cluster, those evaluated, and those feasible
    nodes: int = 0
    evaluated: int = 0
    feasible: int = 0
    rejected: tuple[RejectedNodes, ...] = ()
    scores: WinningScore | None = None
    #: node to nominate the pod to, "" to clear its nomination, None for no change
    nominated: str | None = None
    victims: tuple[ChosenVictim, ...] = ()
    #: plugins that rejected the pod, and those that make it wait
    plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    group: GroupAttempt | None = None
    claims: tuple[ClaimKnown, ...] = ()
    extenders: tuple[ExtenderAnswer, ...] = ()
    #: what could not be evaluated again, and why
    note: str = ""


class HistoryEvent(HistoryRecord, frozen=True):
    """Something that happened to the pod."""

    #: number of the entry in the recording
    entry: int
    time: str
    kind: EventKind
    #: one line for the reader
    text: str
    node: str = ""
    #: the part of the queue, and the event that moved the pod there
    queue: str = ""
    event: str = ""
    #: the preemptor, or the plugin that gated or refused the pod
    by: str = ""
    attempt: AttemptKnown | None = None


class PodLife(HistoryRecord, frozen=True):
    """One pod; a later one of the same name has another uid."""

    uid: str
    priority: int = 0
    scheduler_name: str = ""
    #: kind/namespace/name of its group
    group: str = ""
    attempts: int = 0
    #: its node at the end, "" if it has none
    node: str = ""
    events: tuple[HistoryEvent, ...] = ()


class PodHistory(HistoryRecord, frozen=True):
    """All that a recording has about the pods of one name."""

    #: namespace/name
    pod: str
    recording: str
    start: str
    end: str
    lives: tuple[PodLife, ...]
    redacted: bool = False
    notes: tuple[str, ...] = ()
