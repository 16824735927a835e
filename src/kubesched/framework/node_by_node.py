"""Plugins written for one node at a time, adapted to the framework's arrays.

    filter_node(pod, node) ─┐                          ┌─> Verdict   one answer per row
    score_node(pod, node) ──┴─> called for each row ───┴─> int64[row]

As with plugins that return arrays, there are two forms, distinguished by type:

* `CachedNodeFilter` and `CachedNodeScore` get a `SignatureView` and a `NodeView`: what the pod
  requires of a node, and the node with the sums over its pods. Answers are cached, and computed
  again only where the node changed, so a plugin costs about one call per placed pod.
* `NodeFilter` and `NodeScore` get the whole pod and the node with its pods. They are called for
  every node in every cycle.

Both kinds of filters may also give details of a node that they reject, for explanations.

Views read the columns on access, and are valid only during the call.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Container, Node, Pod, Taint, Toleration
from kubesched.cluster.arrays import Int32Array, Int64Array
from kubesched.cluster.node_rows import NodeRows, SupposedRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.errors import PluginError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.plugin import (
    MAX_NODE_SCORE,
    Filter,
    Normalize,
    Plugin,
    RowFilter,
    RowScore,
    Score,
    depends_on_min_max,
)
from kubesched.framework.status import Status, unschedulable
from kubesched.framework.verdict import ALL_PASS, Verdict

#: The answer of a filter for one node: None if the pod may go there, or why not.
NodeAnswer = str | Status | None


# --- what a plugin sees -----------------------------------------------------------------------


class SignatureView:
    """What a pod requires of a node; the same for all pods of a signature."""

    __slots__ = ("_signature",)

    def __init__(self, signature: PodSignature) -> None:
        self._signature = signature

    def requested(self, resource: str) -> int:
        """The pod's request of a resource: cpu in millicores, memory in bytes."""
        return self._signature.requests.amounts.get(resource, 0)

    @property
    def requests(self) -> Mapping[str, int]:
        """All requests, by resource."""
        return self._signature.requests.amounts

    @property
    def node_selector(self) -> Mapping[str, str]:
        """The labels that the pod requires of its node."""
        return self._signature.spec.node_selector or {}

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """The pod's tolerations."""
        return self._signature.spec.tolerations

    def tolerates(self, taint: Taint) -> bool:
        """Return whether the pod tolerates a taint."""
        return self._signature.tolerates(taint)

    @property
    def containers(self) -> tuple[Container, ...]:
        """The pod's containers, without init containers."""
        return self._signature.spec.containers

    @property
    def images(self) -> tuple[str, ...]:
        """Every image that a node would have to pull, with its tag."""
        return self._signature.images


class PodView(SignatureView):
    """A pod."""

    __slots__ = ("_info",)

    def __init__(self, info: PodInfo) -> None:
        super().__init__(info.signature)
        self._info = info

    @property
    def object(self) -> Pod:
        """The API object."""
        return self._info.pod

    @property
    def name(self) -> str:
        """The pod's name."""
        return self._info.pod.metadata.name

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self._info.pod.metadata.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels."""
        return self._info.pod.metadata.labels or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """The pod's annotations."""
        return self._info.pod.metadata.annotations or {}

    @property
    def priority(self) -> int:
        """The pod's priority; 0 if it has none."""
        return self._info.priority


class NodeView:
    """A node, and the sums of its pods' requests."""

    __slots__ = ("_row", "_table")

    def __init__(self, table: NodeTable, row: int) -> None:
        self._table = table
        self._row = row

    def __repr__(self) -> str:
        return f"<node {self.name}>"

    @property
    def object(self) -> Node:
        """The API object."""
        return self._table.node_at(self._row)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.object.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.object.metadata.labels or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """The node's annotations."""
        return self.object.metadata.annotations or {}

    @property
    def zone(self) -> str:
        """The node's zone, "" if it has none."""
        return self.labels.get(names.LABEL_ZONE, "")

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The node's taints."""
        return self.object.spec.taints

    @property
    def conditions(self) -> Mapping[str, str]:
        """The status of each of the node's conditions: ``{"Ready": "True"}``."""
        return {each.type: each.status for each in self.object.status.conditions}

    def allocatable(self, resource: str) -> int:
        """Allocatable of a resource: cpu in millicores, memory in bytes."""
        number = self._table.resources.find(resource)
        return 0 if number is None else int(self._table.allocatable[number, self._row])

    def requested(self, resource: str) -> int:
        """The requests of the node's pods."""
        number = self._table.resources.find(resource)
        return 0 if number is None else self._requested(number)

    def free(self, resource: str) -> int:
        """Allocatable minus requested."""
        return self.allocatable(resource) - self.requested(resource)

    @property
    def pod_count(self) -> int:
        """How many pods the node has."""
        return int(self._table.pod_count[self._row])

    def _requested(self, number: int) -> int:
        return int(self._table.requested[number, self._row])


class SupposedNodeView(NodeView):
    """A node as it would be with other pods on it; only the sums are available."""

    __slots__ = ("_element", "_nodes")

    def __init__(self, nodes: SupposedRows, row: int, element: int) -> None:
        super().__init__(nodes.table, row)
        self._nodes = nodes
        self._element = element

    @property
    def pod_count(self) -> int:
        """How many pods the node would have."""
        return int(self._nodes.pod_count[self._element])

    def _requested(self, number: int) -> int:
        return int(self._nodes.requested(number)[self._element])


class NodeWithPods(NodeView):
    """A node and its pods."""

    __slots__ = ()

    @property
    def pods(self) -> Sequence[Pod]:
        """The pods on the node, assumed ones included."""
        return [info.pod for info in self._table.pods[self._row].values()]


V = TypeVar("V", bound=NodeView)


class _Views(Generic[V]):
    """One view per row; it reads the row on access, regardless of which node has it then."""

    def __init__(self, make: Callable[[NodeTable, int], V]) -> None:
        self._make = make
        self._table: NodeTable | None = None
        self._views: list[V] = []

    def of(self, table: NodeTable) -> list[V]:
        if table is not self._table:
            self._table, self._views = table, []
        for row in range(len(self._views), table.size):
            self._views.append(self._make(table, row))
        return self._views


#: The elements to evaluate, with their views; rows without a node are left out.
_Asked = list[tuple[int, V]]


def _asked(views: _Views[V], nodes: NodeRows) -> _Asked[V]:
    of_rows, in_use = views.of(nodes.table), nodes.table.nodes
    return [
        (element, of_rows[row])
        for element, row in enumerate(nodes.row_numbers().tolist())
        if in_use[row] is not None
    ]


def _asked_sums(views: _Views[NodeView], nodes: NodeRows) -> _Asked[NodeView]:
    if not isinstance(nodes, SupposedRows):
        return _asked(views, nodes)
    return [
        (element, SupposedNodeView(nodes, row, element))
        for element, row in enumerate(nodes.row_numbers().tolist())
    ]


# --- what a plugin derives from ---------------------------------------------------------------


class _LooksAtSums(Plugin):
    """Provides a view per row, without an __init__ that plugins would have to call."""

    @cached_property
    def _views(self) -> _Views[NodeView]:
        return _Views(NodeView)


class _LooksAtPods(Plugin):
    """The same, with pods."""

    @cached_property
    def _views(self) -> _Views[NodeWithPods]:
        return _Views(NodeWithPods)


class NodeDetails(Plugin):
    """Gives details of rejected nodes, one node at a time."""

    def node_detail(self, pod: PodView, node: NodeWithPods) -> Detail | str | None:  # noqa: ARG002
        """Return the numbers and names behind the rejection of a node, for explanations only."""
        return None

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterable[Detail]:  # noqa: ARG002
        """Call `node_detail` for each row; rows with the same detail share one."""
        view, table = PodView(pod), nodes.table
        found: dict[tuple[str, str], tuple[Detail, list[int]]] = {}
        for row in nodes.row_numbers().tolist():
            detail = self.node_detail(view, NodeWithPods(table, row))
            if detail is None:
                continue
            if isinstance(detail, str):
                detail = Detail(detail)
            found.setdefault((detail.text, detail.reason), (detail, []))[1].append(row)
        return [replace(detail, rows=tuple(rows)) for detail, rows in found.values()]


class CachedNodeFilter(_LooksAtSums, NodeDetails, RowFilter):
    """A filter that depends on one node and on what the pod requires of it; answers are cached.

    Set `reads = NODE` if neither `requested`, `free` nor `pod_count` matters, nor the pod's
    requests; the plugin is then not called again because of a pod that came or went.
    """

    @abstractmethod
    def filter_node(self, pod: SignatureView, node: NodeView) -> NodeAnswer:
        """Return None if the pod may go to the node, or why it may not."""

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Call `filter_node` for each row."""
        pod, ask = SignatureView(signature), self.filter_node
        return _verdict(
            self.name,
            len(nodes),
            [(i, ask(pod, node)) for i, node in _asked_sums(self._views, nodes)],
        )

    def row_filter(
        self, signature: PodSignature, table: NodeTable
    ) -> Callable[[int], Status | None]:
        """Call `filter_node` for one row."""
        pod, views, ask = SignatureView(signature), self._views, self.filter_node

        def refuse(row: int) -> Status | None:
            if table.nodes[row] is None:
                return None
            answer = ask(pod, views.of(table)[row])
            return None if answer is None else _status(_checked(self.name, answer))

        return refuse


class NodeFilter(_LooksAtPods, NodeDetails, Filter):
    """A filter that depends on one node with its pods and the whole pod; called in each cycle."""

    @abstractmethod
    def filter_node(self, pod: PodView, node: NodeWithPods) -> NodeAnswer:
        """Return None if the pod may go to the node, or why it may not."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:  # noqa: ARG002
        """Call `filter_node` for each row."""
        view, ask = PodView(pod), self.filter_node
        return _verdict(
            self.name, len(nodes), [(i, ask(view, node)) for i, node in _asked(self._views, nodes)]
        )


class CachedNodeScore(_LooksAtSums, RowScore):
    """A score that depends on one node and on what the pod requires of it; scores are cached.

    For `reads`, see `CachedNodeFilter`.
    """

    @abstractmethod
    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        """Return the node's score: 0 to 100, unless it is normalized."""

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Call `score_node` for each row."""
        pod, ask = SignatureView(signature), self.score_node
        return _scores(
            self.name,
            len(nodes),
            [(i, ask(pod, node)) for i, node in _asked_sums(self._views, nodes)],
        )

    def row_scorer(self, signature: PodSignature, table: NodeTable) -> Callable[[int], int]:
        """Call `score_node` for one row."""
        pod, views, ask = SignatureView(signature), self._views, self.score_node

        def scored(row: int) -> int:
            if table.nodes[row] is None:
                return 0
            return _whole(self.name, ask(pod, views.of(table)[row]))

        return scored


class NodeScore(_LooksAtPods, Score):
    """A score that depends on one node with its pods and the whole pod; called in each cycle."""

    @abstractmethod
    def score_node(self, pod: PodView, node: NodeWithPods) -> int:
        """Return the node's score: 0 to 100, unless it is normalized."""

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array:  # noqa: ARG002
        """Call `score_node` for each row."""
        view, ask = PodView(pod), self.score_node
        return _scores(
            self.name, len(nodes), [(i, ask(view, node)) for i, node in _asked(self._views, nodes)]
        )


class HighestWins(Normalize):
    """Normalizes scores: of the feasible nodes, the highest gets 100 and the lowest 0."""

    @depends_on_min_max
    def normalize(self, scores: Int64Array) -> Int64Array:
        """Normalize; equal scores become 100."""
        return _scaled(scores, best=int(scores.max(initial=_LEAST)))


class LowestWins(Normalize):
    """Normalizes scores: of the feasible nodes, the lowest gets 100 and the highest 0."""

    @depends_on_min_max
    def normalize(self, scores: Int64Array) -> Int64Array:
        """Normalize; equal scores become 100."""
        return _scaled(scores, best=int(scores.min(initial=_MOST)))


_LEAST = int(np.iinfo(np.int64).min)
_MOST = int(np.iinfo(np.int64).max)


def _scaled(scores: Int64Array, *, best: int) -> Int64Array:
    # In floats: the difference of two int64 may overflow, and a score needs no precision.
    distance = np.abs(scores.astype(np.float64) - float(best))
    span = distance.max(initial=0.0)
    if span == 0.0:
        return np.full(len(scores), MAX_NODE_SCORE, dtype=np.int64)
    return np.rint(MAX_NODE_SCORE * (1.0 - distance / span)).astype(np.int64)


# --- lifting ----------------------------------------------------------------------------------


def _verdict(plugin: str, count: int, said: Sequence[tuple[int, NodeAnswer]]) -> Verdict:
    numbers: dict[str | Status, int] = {}
    answers = np.zeros(count, dtype=np.int32)
    for element, answer in said:
        if answer is not None:
            answers[element] = numbers.setdefault(_checked(plugin, answer), len(numbers) + 1)
    return _without_success(answers, [*map(_status, numbers)]) if numbers else ALL_PASS


def _checked(plugin: str, answer: str | Status) -> str | Status:
    if not isinstance(answer, str | Status):
        raise PluginError(
            f"filter_node of {plugin} returned {type(answer).__name__}: "
            "return None, the reason as text, or a Status"
        )
    return answer


def _status(answer: str | Status) -> Status:
    return unschedulable(answer) if isinstance(answer, str) else answer


def _without_success(answers: Int32Array, statuses: list[Status]) -> Verdict:
    """Let nodes pass whose answer was a Status of Success."""
    for number, status in enumerate(statuses, start=1):
        if status.ok:
            answers[answers == number] = 0
    return Verdict(answers, tuple(statuses))


def _scores(plugin: str, count: int, said: Sequence[tuple[int, int]]) -> Int64Array:
    scores = np.zeros(count, dtype=np.int64)
    for element, score in said:
        scores[element] = _whole(plugin, score)
    return scores


def _whole(plugin: str, score: int) -> int:
    """Return a score as an int; NumPy integers are accepted."""
    try:
        whole = operator.index(score)
    except TypeError:
        whole = _MOST + 1
    if not _LEAST <= whole <= _MOST:
        raise PluginError(
            f"score_node of {plugin} returned {score!r}: return an int of 64 bits at most"
        )
    return whole
