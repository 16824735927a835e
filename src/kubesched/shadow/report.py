"""What shadow says: one finding a decision of the other scheduler, and their sum."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Verdict(StrEnum):
    """How a decision of the other scheduler compares with ours."""

    #: it chose a node that nothing beats in our eyes
    SAME = "Same"
    #: we find that node feasible, but another one better
    LOWER_SCORE = "LowerScore"
    #: our filters refuse that node, and let others pass
    REFUSED = "Refused"
    #: our filters refuse every node
    NONE_FITS = "NoneFits"
    #: both find no node, for the same reasons
    SAME_MESSAGE = "SameMessage"
    #: both find no node, and say so in other words
    OTHER_WORDS = "OtherWords"
    #: both find no node for the same reasons, and would make room on different ones
    OTHER_NOMINATION = "OtherNomination"
    #: it finds no node, and we find one
    WOULD_PLACE = "WouldPlace"
    #: we would not try the pod at all
    GATED = "Gated"
    #: one of our plugins failed
    FAILED = "Failed"

    @property
    def agrees(self) -> bool:
        """Whether both decided alike."""
        return self in (Verdict.SAME, Verdict.SAME_MESSAGE)


class Outcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one of the two schedulers made of a pod."""

    #: its node; of ours all that are equally good, the first few of many
    nodes: tuple[str, ...] = ()
    #: how many nodes are equally good
    best_nodes: int = 0
    #: how many nodes the pod fits on, 0 if that is not known
    feasible_nodes: int = 0
    #: why there is no node
    message: str = ""
    #: where room is to be made for the pod
    nominated_node: str = ""


class PluginDifference(Struct, frozen=True, rename="camel"):
    """What one plugin gives to the two nodes, weighted."""

    plugin: str
    theirs: int
    ours: int


class ScoreDifference(Struct, frozen=True, rename="camel"):
    """How far the other scheduler's node is behind the best one."""

    theirs: int
    ours: int
    #: position of their node among the feasible ones, best first, ties shared
    rank: int
    #: only plugins that tell the two nodes apart, those for ours first
    plugins: tuple[PluginDifference, ...]


class Refusal(Struct, frozen=True, rename="camel"):
    """Who of us refuses the other scheduler's node, and why."""

    plugin: str
    reasons: tuple[str, ...]


class Finding(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One decision of the other scheduler, judged."""

    kind: str
    time: str
    #: namespace/name
    pod: str
    uid: str
    scheduler_name: str
    theirs: Outcome
    ours: Outcome
    verdict: Verdict
    #: one line for people
    why: str = ""
    score: ScoreDifference | None = None
    refused_by: Refusal | None = None
    #: how long after the news of it had come it was judged, if that was late
    late_seconds: float = 0.0
    #: bindings seen just before: they may have been decided in another order
    burst: int = 0
    #: whether both agree once bindings of the same burst are taken in another order
    by_order: bool = False

    @property
    def plugin(self) -> str:
        """The plugin that makes the difference, "" if it is not one plugin's doing."""
        if self.refused_by is not None:
            return self.refused_by.plugin
        return self.score.plugins[0].plugin if self.score and self.score.plugins else ""


class Summary(Struct, kw_only=True, rename="camel"):
    """All findings in numbers."""

    kind: str = "Summary"
    #: whether nothing comes after it
    final: bool = False
    seconds: float = 0.0
    #: bindings that were judged
    bindings: int = 0
    #: bindings of pods for which there is one best node in our eyes
    one_best: int = 0
    #: of those, how many went there
    one_best_same: int = 0
    #: of those, how many would have gone there if bindings of a burst were decided otherwise
    one_best_by_order: int = 0
    #: share of the same, None as long as there was no such pod
    agreement_percent: float | None = None
    #: the same if those that depend on the order are left out
    agreement_percent_without_order: float | None = None
    #: bindings of pods for which several nodes are equally good in our eyes
    ties: int = 0
    #: of those, how many went to one of them
    ties_same: int = 0
    lower_score: int = 0
    refused: int = 0
    none_fits: int = 0
    #: refusals with a message that were judged
    unschedulable: int = 0
    same_message: int = 0
    other_words: int = 0
    other_nomination: int = 0
    would_place: int = 0
    gated: int = 0
    failed: int = 0
    #: differences by the plugin that makes them
    plugins: dict[str, int] = {}
    #: differences that are gone if bindings of the same burst were decided in another order
    by_order: int = 0
    #: decisions that were judged late
    late: int = 0
    #: reason → decisions that were applied without being judged
    not_judged: dict[str, int] = {}
