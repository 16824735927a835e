"""The extension points: what a plugin may be asked, and in which form.

A plugin is a class that derives from one or more of the classes below. Those that decide about
nodes come in two forms:

* *Row-local* (`RowFilter`, `RowScore`): the answer for a node depends on nothing but that node,
  its pods, and the pod's signature. The runtime keeps the answers and asks again only for rows that
  changed. The signature makes the promise hold: a row-local plugin never gets to see the pod.
* *Cluster-wide* (`Filter`, `Score`): everything else, asked anew in each cycle.

Both answer for all rows they are given at once, in arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Hashable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeVar

from msgspec import Struct

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import SKIP, SUCCESS, Status
from kubesched.framework.verdict import Verdict
from kubesched.queue.hints import Registrations
from kubesched.queue.queued_pod import QueuedPod

if TYPE_CHECKING:
    from kubesched.framework.diagnosis import Diagnosis
    from kubesched.framework.registry import PluginContext

MAX_NODE_SCORE = 100


class Plugin(ABC):
    """Base of all plugins."""

    #: as it stands in the configuration
    name: ClassVar[str]
    #: whether it rejects no pod without volumes and has nothing to reserve or bind for it: it is
    #: not asked about such pods but for scores, if it is enabled at PreFilter; that counts as Skip
    only_with_volumes: ClassVar[bool] = False

    @classmethod
    def create(cls, context: PluginContext) -> Self:  # noqa: ARG003 (for those who need it)
        """Make the plugin for a profile; raises ConfigError if its arguments make no sense."""
        return cls()

    def events_to_register(self) -> Registrations:
        """Return what may make a pod fit that this plugin turned away; None means anything."""
        return None


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

        With many pods waiting, that is far quicker than asking about each of them at each event.
        """
        return None


class QueueSort(Plugin):
    """Orders the queue."""

    @abstractmethod
    def sort_key(self, pod: QueuedPod) -> tuple[float, ...]:
        """Return the pod's place: smaller keys are scheduled earlier."""


class SignaturePreFilter(Plugin):
    """PreFilter of a row-local plugin: asked once for each signature."""

    @abstractmethod
    def pre_filter(self, signature: PodSignature) -> PreFilterResult:
        """Turn the signature away, say that there is nothing to filter, or restrict the nodes."""


class PreFilter(Plugin):
    """PreFilter of a cluster-wide plugin: asked in each cycle."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
        """Turn the pod away, prepare the filter, say that there is nothing to filter…"""


class RowFilter(Plugin):
    """A filter whose answer depends on the row and the signature alone."""

    #: whether the answer depends on the pods of the row, or only on the node object
    reads_pods: ClassVar[bool]
    #: whether an answer that only depends on the node object depends on what the pod requests, too
    reads_requests: ClassVar[bool] = True

    @abstractmethod
    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Say which rows cannot take a pod of this signature."""

    def row_filter(
        self,
        signature: PodSignature,  # noqa: ARG002
        table: NodeTable,  # noqa: ARG002
    ) -> Callable[[int], Status | None] | None:
        """Return a function that says why one row cannot take the pod, None if it can.

        After a placement one row has to be looked at again, for which arrays are slow. It must
        agree with `filter`, which is asked if this returns None.
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
    def normalize(self, state: CycleState, scores: Int64Array) -> Int64Array | None:
        """Return the scores to be weighted; None is 0 for all nodes."""


Normalizing = TypeVar("Normalizing", bound=Callable[..., Int64Array | None])


def by_extremes(normalize: Normalizing) -> Normalizing:
    """Promise of a `normalize`: what becomes of a score depends on it, the highest and the lowest.

    On nothing else, the state included. Then what became of it is kept as long as these are the
    same. The promise is the function's: whoever writes another has to promise anew.
    """
    normalize.by_extremes = True  # type: ignore[attr-defined]
    return normalize


def is_by_extremes(plugin: Normalize) -> bool:
    """Tell whether a plugin's `normalize` makes that promise."""
    return getattr(type(plugin).normalize, "by_extremes", False)


class SignaturePreScore(Plugin):
    """PreScore of a row-local plugin: asked once for each signature."""

    @abstractmethod
    def pre_score(self, signature: PodSignature) -> Status:
        """Say Skip if there is nothing to score."""


class PreScore(Plugin):
    """PreScore of a cluster-wide plugin."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:
        """Prepare scoring of the feasible nodes, or say Skip."""


class RowScore(Plugin):
    """A score that depends on the row and the signature, and on what `epoch` names."""

    #: whether the score depends on the pods of the row, or only on the node object
    reads_pods: ClassVar[bool]
    #: whether a score that only depends on the node object depends on what the pod requests, too
    reads_requests: ClassVar[bool] = True
    #: tests prove that the scores to be weighted are within 0 and 100: no need to look
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

        It must agree with `score`, and may return None to have that asked instead.
        """
        return None

    def epoch(self, signature: PodSignature, table: NodeTable) -> Hashable:  # noqa: ARG002 (for those who need it)
        """Return what all rows' scores depend on in common; a change makes all rows stale."""
        return None


class Score(Plugin):
    """A score that may look at everything."""

    proven_range: ClassVar[bool] = False

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array | None:
        """Return a score for each of the rows, which are feasible; None is 0 for all of them."""

    def weighted(
        self, state: CycleState, pod: PodInfo, nodes: NodeRows, weight: int
    ) -> Int64Array | None:
        """Return what is to be added to the total of each of the rows; None is 0 for all of them.

        For plugins of the tree that need not score row by row first. Others are asked for scores,
        which are normalized and weighted then; it must agree with that.
        """
        raise NotImplementedError


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
}


def extension_points(plugin: type[Plugin]) -> frozenset[str]:
    """Return the configuration keys of the points that a plugin class implements."""
    return frozenset(
        point for point, classes in EXTENSION_POINTS.items() if issubclass(plugin, classes)
    )
