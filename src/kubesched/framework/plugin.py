"""The extension points: the methods that a plugin may implement.

A plugin is a class that derives from one or more of the classes below. Filters and scores come in
two forms:

* *Row-local* (`RowFilter`, `RowScore`): the answer for a node depends only on that node, its pods,
  and the pod's signature. The runtime caches the answers and calls the plugin only for rows that
  changed. The types enforce this: a row-local plugin never gets the pod.
* *Cluster-wide* (`Filter`, `Score`): everything else, called in each cycle.

Both answer for all given rows at once, in arrays.

Some methods and attributes are for in-tree plugins only: shortcuts for the hottest paths, each with
a test that it agrees with the method it replaces (`testing/promises.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from enum import Flag, auto
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeVar

from msgspec import Struct

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.count_bounds import CountBounds
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.domain_scores import DomainScores
from kubesched.framework.group import (
    Assignments,
    GroupInfo,
    GroupTrial,
    Placement,
    PodGroupPostFilterResult,
    Progress,
)
from kubesched.framework.status import SKIP, SUCCESS, Status
from kubesched.framework.verdict import Verdict
from kubesched.kinds import Watched
from kubesched.queue.hints import Registrations
from kubesched.queue.queued_pod import QueuedEntity

if TYPE_CHECKING:
    from kubesched.framework.diagnosis import Diagnosis
    from kubesched.framework.registry import PluginContext

MAX_NODE_SCORE = 100


class Plugin(ABC):
    """Base of all plugins."""

    #: the name in the configuration
    name: ClassVar[str]
    #: in the tree: whether it rejects no pod without volumes and has nothing to reserve or bind for
    #: it; it is not asked about such pods but for scores, if it is enabled at PreFilter, and that
    #: counts as Skip
    only_with_volumes: ClassVar[bool] = False
    #: in the tree: whether it has no say when a pod on its node has a deferred resize; that
    #: counts as Skip at PreFilter
    skips_resizes: ClassVar[bool] = False

    #: in the tree: whether a Skip at PreFilter and PreScore holds for the next pod that is alike as
    #: well, with the first one placed, and Reserve has nothing to do then
    repeats_skip: ClassVar[bool] = False

    #: additional kinds that it reads with `context.objects`
    watches: ClassVar[tuple[Watched, ...]] = ()

    @classmethod
    def create(cls, context: PluginContext) -> Self:  # noqa: ARG003 (for overrides)
        """Create the plugin for a profile; raises ConfigError if its arguments are invalid."""
        return cls()

    def events_to_register(self) -> Registrations:
        """Return the events that may help a pod which this plugin rejected; None means any."""
        return None

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterable[Detail]:  # noqa: ARG002
        """Return the numbers and names behind its rejections, the nodes that come closest first.

        Only explanations call it: after PreFilter and Filter, with the rows that Filter rejected,
        or without rows if PreFilter rejected the pod.
        """
        return ()


class Reads(Flag):
    """What the answers of a row-local plugin depend on, beside the rest of the pod's signature."""

    #: the node object
    NODE = auto()
    #: the node's pods, as sums
    PODS = auto()
    #: the pod's requests
    REQUESTS = auto()


NODE, PODS, REQUESTS = Reads.NODE, Reads.PODS, Reads.REQUESTS


class RowLocal(Plugin):
    """Base of plugins whose answers depend on one row and the pod's signature."""

    #: with fewer of them, the plugin is called less often
    reads: ClassVar[Reads] = NODE | PODS | REQUESTS


class PreFilterResult(Struct, frozen=True):
    """The result of PreFilter for the pod as a whole."""

    status: Status = SUCCESS
    #: the only nodes to evaluate; None means all
    node_names: frozenset[str] | None = None


#: The result of a plugin that does not apply to the pod.
NOTHING_TO_FILTER: Final = PreFilterResult(SKIP)
#: The result of a plugin that leaves the decision to its filter.
NOTHING_AGAINST: Final = PreFilterResult()


class PreEnqueue(Plugin):
    """Gates pods: they enter the active queue once all of these plugins admit them."""

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Return whether the pod may be tried."""

    def kept_out(self) -> Container[str] | None:
        """Return the uids of all pods that it gates; None if it does not track them.

        In the tree. With many gated pods, that is much faster than a call per pod and event.
        """
        return None


class QueueSort(Plugin):
    """Orders the queue."""

    @abstractmethod
    def sort_key(self, pod: QueuedEntity) -> tuple[float, ...]:
        """Return the place of a pod, or of a group of pods: smaller keys are scheduled earlier."""


class SignaturePreFilter(RowLocal):
    """PreFilter of a row-local plugin: called once per signature."""

    @abstractmethod
    def pre_filter(self, signature: PodSignature) -> PreFilterResult:
        """Reject the signature, skip the filter, or restrict the nodes."""


class PreFilter(Plugin):
    """PreFilter of a cluster-wide plugin: called in each cycle."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
        """Reject the pod, prepare the filter, skip it, or restrict the nodes."""


class RowFilter(RowLocal):
    """A filter that depends only on the row and the signature."""

    @abstractmethod
    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Return which rows reject a pod of this signature."""

    def row_filter(
        self,
        signature: PodSignature,  # noqa: ARG002
        table: NodeTable,  # noqa: ARG002
    ) -> Callable[[int], Status | None] | None:
        """Return a function that gives one row's rejection, None if the row passes.

        In the tree. After a placement one row is evaluated again, for which arrays are slow. It
        must agree with `filter`, which is called if this returns None.
        """
        return None


class Filter(Plugin):
    """A filter that may read everything."""

    #: in the tree: whether it implements `count_bounds`
    bounds_counts: ClassVar[bool] = False

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        """Return which rows reject the pod."""

    def count_bounds(
        self,
        state: CycleState,  # noqa: ARG002
        pod: PodInfo,  # noqa: ARG002
        nodes: NodeRows,  # noqa: ARG002
    ) -> Sequence[CountBounds]:
        """Return bounds on the counts of each row's pods; a row outside of them is rejected.

        In the tree. The first bounds that a row is outside of give the reason. They must agree with
        `filter`, also once pods are added to a row or removed from it.
        """
        return ()


class PostFilterResult(Struct, frozen=True):
    """The result of PostFilter for an unschedulable pod."""

    status: Status
    #: node to nominate, "" to clear a nomination, None to leave it as it is
    nominated_node: str | None = None


class PostFilter(Plugin):
    """Tries to make an unschedulable pod schedulable, as preemption does."""

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """Make the pod schedulable, or return why that is not possible."""


class Normalize(Plugin):
    """Maps a plugin's scores to the range 0 to 100, given all feasible nodes at once."""

    @abstractmethod
    def normalize(self, scores: Int64Array) -> Int64Array | None:
        """Return the scores to be weighted; None is 0 for all nodes."""


Normalizing = TypeVar("Normalizing", bound=Callable[..., Int64Array | None])


def depends_on_min_max(normalize: Normalizing) -> Normalizing:
    """Declare that `normalize` depends only on the raw score, the minimum and the maximum.

    Normalized scores are then cached while these two stay the same. The declaration belongs to the
    function: an override must declare it again.
    """
    normalize.depends_on_min_max = True  # type: ignore[attr-defined]
    return normalize


def is_by_min_max(plugin: Normalize) -> bool:
    """Return whether a plugin's `normalize` is declared so."""
    return getattr(type(plugin).normalize, "depends_on_min_max", False)


class SignaturePreScore(RowLocal):
    """PreScore of a row-local plugin: called once per signature."""

    @abstractmethod
    def pre_score(self, signature: PodSignature) -> Status:
        """Return Skip if there is nothing to score."""


class PreScore(Plugin):
    """PreScore of a cluster-wide plugin."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:
        """Prepare scoring of the feasible nodes, or return Skip."""


class RowScore(RowLocal):
    """A score that depends on the row, the signature, and the inputs that `epoch` returns."""

    #: in the tree: whether weighted scores are proven, by tests, to be within 0 and 100
    proven_range: ClassVar[bool] = False

    @abstractmethod
    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Return a score for each row."""

    def row_scorer(
        self,
        signature: PodSignature,  # noqa: ARG002
        table: NodeTable,  # noqa: ARG002
    ) -> Callable[[int], int | None] | None:
        """Return a function that scores one row, if there is a faster way.

        In the tree. It must agree with `score`, and may return None to fall back to it.
        """
        return None

    def epoch(self, signature: PodSignature, table: NodeTable) -> Hashable:  # noqa: ARG002 (for overrides)
        """Return other inputs of the scores; a change invalidates all rows."""
        return None


class Score(Plugin):
    """A score that may read everything."""

    #: in the tree, as above
    proven_range: ClassVar[bool] = False

    @abstractmethod
    def score(
        self, state: CycleState, pod: PodInfo, nodes: NodeRows
    ) -> Int64Array | DomainScores | None:
        """Return a score for each of the feasible rows; None is 0 for all of them.

        Scores by domain are normalized and weighted domain by domain, of which there are few.
        """


class Reserve(Plugin):
    """Reserves resources for a pod, and releases them when a later step fails."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Reserve."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Release; may be called without a reserve, or after one that failed."""


class Permit(Plugin):
    """Allows, rejects or delays the binding."""

    @abstractmethod
    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Return Success, a rejection, or Wait with the timeout in seconds."""


class PreBind(Plugin):
    """Work that must be done before a pod is bound."""

    #: whether it may run concurrently with its neighbours
    parallel: ClassVar[bool] = False

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:  # noqa: ARG002
        """Return Skip if there is nothing to do for this pod."""
        return SUCCESS

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Do the work."""


class Bind(Plugin):
    """Binds a pod to its node."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Bind the pod, or return Skip to leave it to the next plugin."""


class PostBind(Plugin):
    """Called for pods that were bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Handle a bound pod."""


class PlacementGenerate(Plugin):
    """Generates the sets of nodes on which a group is tried."""

    @abstractmethod
    def generate_placements(
        self, state: CycleState, group: GroupInfo, within: Placement
    ) -> tuple[Sequence[Placement], Status]:
        """Return sets of nodes, each part of `within`."""


class PlacementFeasible(Plugin):
    """Decides whether enough of a group is placed.

    There is no configuration key: GangScheduling, and Coscheduling if the profile has it, are asked
    wherever groups are scheduled.
    """

    @abstractmethod
    def placement_feasible(self, state: CycleState, group: GroupInfo, progress: Progress) -> Status:
        """Return Success, Wait if the rest may make it enough, or Unschedulable if it cannot."""


class PlacementScore(Plugin):
    """Scores placements that a group fits into."""

    @abstractmethod
    def score_placement(self, group: GroupInfo, placed: Assignments) -> tuple[int, Status]:
        """Return a score."""

    def score_placements(
        self, group: GroupInfo, placed: Sequence[Assignments]
    ) -> tuple[Sequence[int], Status]:
        """Return the score of each placement; override it where all at once are faster."""
        scores: list[int] = []
        for each in placed:
            score, status = self.score_placement(group, each)
            if not status.ok:
                return scores, status
            scores.append(score)
        return scores, SUCCESS

    def normalize_placements(
        self,
        state: CycleState,  # noqa: ARG002 (for subclasses)
        scores: Sequence[int],
    ) -> tuple[Sequence[int], Status]:
        """Bring the scores of all placements into the range 0 to 100."""
        return scores, SUCCESS


class PodGroupPostFilter(Plugin):
    """Preempts for a group that could not be placed."""

    #: whether it runs after all others, even if one of them returned that nothing helps
    last_resort: ClassVar[bool] = False

    @abstractmethod
    def pod_group_post_filter(
        self, state: CycleState, group: GroupInfo, trial: GroupTrial
    ) -> PodGroupPostFilterResult:
        """Find victims, or return why preemption does not help."""


#: Configuration key of each extension point → the classes that implement it.
EXTENSION_POINTS: Mapping[str, tuple[type[Plugin], ...]] = {
    "preEnqueue": (PreEnqueue,),
    "queueSort": (QueueSort,),
    "preFilter": (SignaturePreFilter, PreFilter),
    "filter": (RowFilter, Filter),
    "postFilter": (PostFilter,),
    "preScore": (SignaturePreScore, PreScore),
    "score": (RowScore, Score),
    "reserve": (Reserve,),
    "permit": (Permit,),
    "preBind": (PreBind,),
    "bind": (Bind,),
    "postBind": (PostBind,),
    "placementGenerate": (PlacementGenerate,),
    "placementScore": (PlacementScore,),
    "podGroupPostFilter": (PodGroupPostFilter,),
}


def extension_points(plugin: type[Plugin]) -> frozenset[str]:
    """Return the configuration keys of the points that a plugin class implements."""
    return frozenset(
        point for point, classes in EXTENSION_POINTS.items() if issubclass(plugin, classes)
    )
