"""An approximation for overloaded clusters: of equivalent pods only the first is retried.

    rejected ──> first of its class: stays in the queue
       └──────> others: removed from the queue ──> added again when the previous one has moved on

When a pod ends, every pod that would fit in its place is woken and tried; with thousands of pending
pods, a day takes millions of attempts. Where one pod finds no node, an equivalent one does not
either, so it need not be tried before the first has found one.

The scheduler does not do this: there, pods that were tried more often back off for longer, and
later pods often go first. Here, the longest waiting goes first, so waits differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from msgspec import Struct, field

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster


class _Line(Struct):
    #: uid of the pod in the queue that stands for all
    first: str
    #: uid → pod, in order of rejection
    others: dict[str, Pod] = field(default_factory=dict)


class WaitingLines:
    """The waiting lines of all equivalence classes."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        withdraw: Callable[[str], None],
        admit: Callable[[Pod], None],
    ) -> None:
        self._cluster = cluster
        #: removes a pod from the queue, by uid
        self._withdraw = withdraw
        #: adds a pod to the queue
        self._admit = admit
        self._lines: dict[Hashable, _Line] = {}
        #: uid → class, for every pod in a line
        self._kinds: dict[str, Hashable] = {}

    def refused(self, pod: Pod) -> None:
        """Handle an unschedulable pod that did not preempt."""
        uid = pod.metadata.uid
        if uid in self._kinds or self._cluster.nominator.node_of(uid) is not None:
            return
        kind = self._kind(pod)
        if kind is None:
            return
        self._kinds[uid] = kind
        line = self._lines.get(kind)
        if line is None:
            self._lines[kind] = _Line(uid)
            return
        line.others[uid] = pod
        self._withdraw(uid)

    def moved_on(self, uid: str) -> None:
        """Handle a pod that was placed, nominated or deleted."""
        kind = self._kinds.pop(uid, None)
        if kind is None:
            return
        line = self._lines[kind]
        if line.first != uid:
            line.others.pop(uid, None)
            return
        del self._lines[kind]
        if line.others:
            following = next(iter(line.others))
            pod = line.others.pop(following)
            self._lines[kind] = _Line(following, line.others)
            self._admit(pod)

    def _kind(self, pod: Pod) -> Hashable:
        """Return the equivalence class of a pod; None if it is alone in it.

        Out-of-tree plugins may read any field of a pod, so those matter, too.
        """
        if pod.spec.volumes or pod.spec.resource_claims:
            return None
        info = self._cluster.compiler.pending(pod)
        annotations = tuple(sorted((pod.metadata.annotations or {}).items()))
        spec = pod.spec
        return (
            spec.scheduler_name,
            spec.preemption_policy,
            info.signature,
            info.labels,
            info.priority,
            annotations,
        )
