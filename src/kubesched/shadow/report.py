"""The report of shadow mode: one finding per decision of the other scheduler, and a summary."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Agreement(StrEnum):
    """How a decision of the other scheduler compares with ours."""

    #: it chose one of our best nodes
    SAME = "Same"
    #: its node is feasible for us, but another scores higher
    LOWER_SCORE = "LowerScore"
    #: our filters reject its node, and pass others
    REFUSED = "Refused"
    #: our filters reject every node
    NONE_FITS = "NoneFits"
    #: both find no node, for the same reasons
    SAME_MESSAGE = "SameMessage"
    #: both find no node, with different messages
    OTHER_WORDS = "OtherWords"
    #: both find no node for the same reasons, and nominate different nodes
    OTHER_NOMINATION = "OtherNomination"
    #: it finds no node, and we find one
    WOULD_PLACE = "WouldPlace"
    #: both place the pod's group, in different topology domains
    OTHER_PLACEMENT = "OtherPlacement"
    #: our plugins gate the pod
    GATED = "Gated"
    #: one of our plugins failed
    FAILED = "Failed"

    @property
    def agrees(self) -> bool:
        """Whether both decisions agree."""
        return self in (Agreement.SAME, Agreement.SAME_MESSAGE)


class SchedulerChoice(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The decision of one of the two schedulers."""

    #: its node; for ours all equally good ones, the first few of many
    nodes: tuple[str, ...] = ()
    #: number of equally good nodes
    best_nodes: int = 0
    #: number of feasible nodes, 0 if unknown
    feasible_nodes: int = 0
    #: why there is no node
    message: str = ""
    #: the nominated node
    nominated_node: str = ""


class PluginDifference(Struct, frozen=True, rename="camel"):
    """One plugin's weighted scores of the two nodes."""

    plugin: str
    theirs: int
    ours: int


class ScoreDifference(Struct, frozen=True, rename="camel"):
    """The score difference between the other scheduler's node and the best one."""

    theirs: int
    ours: int
    #: rank of their node among the feasible ones, ties shared
    rank: int
    #: only plugins whose scores differ, those in favour of ours first
    plugins: tuple[PluginDifference, ...]


class NodeRefusal(Struct, frozen=True, rename="camel"):
    """Which of our plugins rejects the other scheduler's node, and why."""

    plugin: str
    reasons: tuple[str, ...]


class ShadowFinding(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One decision of the other scheduler, judged."""

    kind: str
    time: str
    #: namespace/name
    pod: str
    uid: str
    scheduler_name: str
    theirs: SchedulerChoice
    ours: SchedulerChoice
    verdict: Agreement
    #: one line of text
    why: str = ""
    score: ScoreDifference | None = None
    refused_by: NodeRefusal | None = None
    #: how late it was judged, if it was late
    late_seconds: float = 0.0
    #: bindings just before: they may have been decided in another order
    burst: int = 0
    #: whether both agree with another order of bindings of the same burst
    by_order: bool = False
    #: the pod's group, if the decision was compared as one about the group
    group: str = ""

    @property
    def plugin(self) -> str:
        """The plugin that makes the difference, "" if it is not a single one."""
        if self.refused_by is not None:
            return self.refused_by.plugin
        return self.score.plugins[0].plugin if self.score and self.score.plugins else ""


class ShadowSummary(Struct, kw_only=True, rename="camel"):
    """All findings, counted."""

    kind: str = "Summary"
    #: whether it is the last one
    final: bool = False
    seconds: float = 0.0
    #: judged bindings
    bindings: int = 0
    #: bindings of pods with a single best node, in our scores
    one_best: int = 0
    #: of those, how many agree
    one_best_same: int = 0
    #: of those, how many would agree with another order of bindings of a burst
    one_best_by_order: int = 0
    #: share of those that agree, None without such pods
    agreement_percent: float | None = None
    #: the same without those that depend on the order
    agreement_percent_without_order: float | None = None
    #: bindings of pods with several equally good nodes, in our scores
    ties: int = 0
    #: of those, how many went to one of them
    ties_same: int = 0
    lower_score: int = 0
    refused: int = 0
    none_fits: int = 0
    #: judged rejections with a message
    unschedulable: int = 0
    same_message: int = 0
    other_words: int = 0
    other_nomination: int = 0
    would_place: int = 0
    gated: int = 0
    failed: int = 0
    #: bindings that were judged as those of a whole group, and how many of them agree
    groups: int = 0
    groups_same: int = 0
    other_placement: int = 0
    #: differences by the plugin that makes them
    plugins: dict[str, int] = {}
    #: differences that another order of bindings of the same burst explains
    by_order: int = 0
    #: decisions judged late
    late: int = 0
    #: reason → decisions that were applied without being judged
    not_judged: dict[str, int] = {}
