"""The extension points: what a plugin may be asked, and in which form.

A plugin is a class that derives from one or more of the classes below. Those that decide about
nodes come in two forms:

* *Row-local* (`RowFilter`, `RowScore`): the answer for a node depends on nothing but that node,
  its pods, and the pod's signature. The runtime caches the answers and asks again only for rows
  that changed. The types make the promise hold: a row-local plugin never gets to see the pod.
* *Cluster-wide* (`Filter`, `Score`): everything else, asked in each cycle.

Both answer for all rows they are given at once, in arrays.

Some methods and attributes are for plugins of the tree alone: shortcuts for what a pod costs most,
each with a test that it says the same as the method that it is short for (`testing/promises.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from enum import Flag, auto
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeVar

from msgspec import Struct

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.cycle_state import CycleState
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

    #: as it stands in the configuration
    name: ClassVar[str]
    #: in the tree: whether it rejects no pod without volumes and has nothing to reserve or bind for
    #: it; it is not asked about such pods but for scores, if it is enabled at PreFilter, and that
    #: counts as Skip
    only_with_volumes: ClassVar[bool] = False
    #: in the tree: whether it has no say when a pod on its node waits for room to be resized; that
    #: counts as Skip at PreFilter
    skips_resizes: ClassVar[bool] = False

    #: other kinds of objects that it reads, with `context.objects`
    watches: ClassVar[tuple[Watched, ...]] = ()

    @classmethod
    def create(cls, context: PluginContext) -> Self:  # noqa: ARG003 (for those who need it)
        """Make the plugin for a profile; raises ConfigError if its arguments make no sense."""
        return cls()

    def events_to_register(self) -> Registrations:
        """Return what may make a pod fit that this plugin turned away; None means anything."""
        return None


class Reads(Flag):
    """What the answers of a row-local plugin depend on, beside the rest of the pod's signature."""

    #: the node object
    NODE = auto()
    #: the node's pods, as sums
    PODS = auto()
    #: what the pod requests
    REQUESTS = auto()


NODE, PODS, REQUESTS = Reads.NODE, Reads.PODS, Reads.REQUESTS


class RowLocal(Plugin):
    """Base of plugins whose answers depend on one row and the signature of the pod."""

    #: less than all means that the plugin is asked less often
    reads: ClassVar[Reads] = NODE | PODS | REQUESTS


class PreFilterResult(Struct, frozen=True):
    """What PreFilter found out about the pod as a whole."""

    status: Status = SUCCESS
    #: the only nodes worth looking at; None means all
    node_names: frozenset[str] | None = None


#: What a plugin answers that has nothing to do with the pod.
NOTHING_TO_FILTER: Final = PreFilterResult(SKIP)
#: What one answers that has nothing against the pod as a whole: its filter has the say.
NOTHING_AGAINST: Final = PreFilterResult()


class PreEnqueue(Plugin):
    """Keeps pods out of the queue that should not be tried yet."""

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Say whether the pod may be tried."""

    def kept_out(self) -> Container[str] | None:
        """Return the uids of all pods that it would keep out, if it knows them; None if not.

        In the tree. With many pods waiting, that is far quicker than asking about each of them at
        each event.
        """
        return None


class QueueSort(Plugin):
    """Orders the queue."""

    @abstractmethod
    def sort_key(self, pod: QueuedEntity) -> tuple[float, ...]:
        """Return the place of a pod, or of a group of pods: smaller keys are scheduled earlier."""


class SignaturePreFilter(RowLocal):
    """PreFilter of a row-local plugin: asked once for each signature."""

    @abstractmethod
    def pre_filter(self, signature: PodSignature) -> PreFilterResult:
        """Turn the signature away, say that there is nothing to filter, or restrict the nodes."""


class PreFilter(Plugin):
    """PreFilter of a cluster-wide plugin: asked in each cycle."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
        """Turn the pod away, prepare the filter, say that there is nothing to filter…"""


class RowFilter(RowLocal):
    """A filter whose answer depends on the row and the signature alone."""

    @abstractmethod
    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Say which rows cannot take a pod of this signature."""

    def row_filter(
        self,
        signature: PodSignature,  # noqa: ARG002
        table: NodeTable,  # noqa: ARG002
    ) -> Callable[[int], Status | None] | None:
        """Return a function that says why one row cannot take the pod, None if it can.

        In the tree. After a placement one row has to be looked at again, for which arrays are slow.
        It must agree with `filter`, which is asked if this returns None.
        """
        return None


class Filter(Plugin):
    """A filter that may look at everything."""

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        """Say which rows cannot take the pod."""


class PostFilterResult(Struct, frozen=True):
    """What to do for a pod that fits nowhere."""

    status: Status
    #: node to nominate, "" to clear a nomination, None to leave it as it is
    nominated_node: str | None = None


class PostFilter(Plugin):
    """Tries to make room for a pod that fits nowhere."""

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """Make room, or say why that is not possible."""


class Normalize(Plugin):
    """Brings a plugin's scores into the range 0 to 100, seeing all feasible nodes at once."""

    @abstractmethod
    def normalize(self, scores: Int64Array) -> Int64Array | None:
        """Return the scores to be weighted; None is 0 for all nodes."""


Normalizing = TypeVar("Normalizing", bound=Callable[..., Int64Array | None])


def depends_on_min_max(normalize: Normalizing) -> Normalizing:
    """Promise of a `normalize`: a normalized score depends on the raw one, the lowest and highest.

    On nothing else. Then normalized scores are cached as long as these two stay the same. The
    promise is the function's: one that overrides it has to promise for itself.
    """
    normalize.depends_on_min_max = True  # type: ignore[attr-defined]
    return normalize


def is_by_min_max(plugin: Normalize) -> bool:
    """Tell whether a plugin's `normalize` makes that promise."""
    return getattr(type(plugin).normalize, "depends_on_min_max", False)


class SignaturePreScore(RowLocal):
    """PreScore of a row-local plugin: asked once for each signature."""

    @abstractmethod
    def pre_score(self, signature: PodSignature) -> Status:
        """Say Skip if there is nothing to score."""


class PreScore(Plugin):
    """PreScore of a cluster-wide plugin."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:
        """Prepare scoring of the feasible nodes, or say Skip."""


class RowScore(RowLocal):
    """A score that depends on the row and the signature, and on what `epoch` names."""

    #: in the tree: tests prove that the scores to be weighted are within 0 and 100
    proven_range: ClassVar[bool] = False

    @abstractmethod
    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Return a score for each row."""

    def row_scorer(
        self,
        signature: PodSignature,  # noqa: ARG002
        table: NodeTable,  # noqa: ARG002
    ) -> Callable[[int], int | None] | None:
        """Return a function that scores one row, if it can do so for less.

        In the tree. It must agree with `score`, and may return None to have that asked instead.
        """
        return None

    def epoch(self, signature: PodSignature, table: NodeTable) -> Hashable:  # noqa: ARG002 (for those who need it)
        """Return what the scores of all rows have in common; a change invalidates all rows."""
        return None


class Score(Plugin):
    """A score that may look at everything."""

    #: in the tree, as above
    proven_range: ClassVar[bool] = False

    @abstractmethod
    def score(
        self, state: CycleState, pod: PodInfo, nodes: NodeRows
    ) -> Int64Array | DomainScores | None:
        """Return a score for each of the rows, which are feasible; None is 0 for all of them.

        Scores of domains are normalized and weighted domain by domain, of which there are few.
        """


class Reserve(Plugin):
    """Takes what a pod was promised, and gives it back when something fails later."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Take it."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give it back; may be called without, or after, a reserve that failed."""


class Permit(Plugin):
    """Allows, refuses or delays the binding."""

    @abstractmethod
    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Return Success, a rejection, or Wait with the seconds to wait at most."""


class PreBind(Plugin):
    """Work that must be done before a pod is bound."""

    #: whether it may run at the same time as its neighbours
    parallel: ClassVar[bool] = False

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:  # noqa: ARG002
        """Say Skip if there is nothing to be done for this pod."""
        return SUCCESS

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Do the work."""


class Bind(Plugin):
    """Binds a pod to its node."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Bind, or say Skip to leave it to the next plugin."""


class PostBind(Plugin):
    """Hears of pods that were bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Take note."""


class PlacementGenerate(Plugin):
    """Says on which sets of nodes a group is to be tried."""

    @abstractmethod
    def generate_placements(
        self, state: CycleState, group: GroupInfo, within: Placement
    ) -> tuple[Sequence[Placement], Status]:
        """Return sets of nodes, each part of `within`."""


class PlacementFeasible(Plugin):
    """Says whether what was placed of a group is enough.

    There is no configuration key: GangScheduling is asked wherever groups are scheduled.
    """

    @abstractmethod
    def placement_feasible(self, state: CycleState, group: GroupInfo, progress: Progress) -> Status:
        """Return Success, Wait if the rest may make it enough, or Unschedulable if it cannot."""


class PlacementScore(Plugin):
    """Scores placements that a group fits into."""

    @abstractmethod
    def score_placement(self, group: GroupInfo, placed: Assignments) -> tuple[int, Status]:
        """Return a score."""

    def normalize_placements(
        self,
        state: CycleState,  # noqa: ARG002 (for those who need it)
        scores: Sequence[int],
    ) -> tuple[Sequence[int], Status]:
        """Bring the scores of all placements into the range 0 to 100."""
        return scores, SUCCESS


class PodGroupPostFilter(Plugin):
    """Tries to make room for a group that could not be placed."""

    @abstractmethod
    def pod_group_post_filter(
        self, state: CycleState, group: GroupInfo, trial: GroupTrial
    ) -> PodGroupPostFilterResult:
        """Make room, or say why that is not possible."""


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
