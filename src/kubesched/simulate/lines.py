"""For crowded clusters, if asked for: of pods that are alike only the first is tried again.

    refused ──> first of its kind: stays in the queue
       └──────> others: out of the queue, in line ──> in again when the one before has moved on

When a pod ends, every pod that would fit in its place is woken and tried, and where thousands wait
a day is millions of attempts. Where one pod finds no node, one that is like it does not either, so
it need not be asked before the first one has found one.

This is not what the scheduler does: there, pods that were tried more often back off for longer, and
those that came later often go first. In line, who waits longest goes first, so waits differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from msgspec import Struct, field

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster


class _Line(Struct):
    #: uid of the pod in the queue that stands for all
    first: str
    #: uid → pod, those that were refused first come first
    others: dict[str, Pod] = field(default_factory=dict)


class Lines:
    """The lines of all kinds of pods."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        withdraw: Callable[[str], None],
        admit: Callable[[Pod], None],
    ) -> None:
        self._cluster = cluster
        #: takes a pod out of the queue, by uid
        self._withdraw = withdraw
        #: puts a pod into the queue
        self._admit = admit
        self._lines: dict[Hashable, _Line] = {}
        #: uid → kind, for every pod that stands in a line
        self._kinds: dict[str, Hashable] = {}

    def refused(self, pod: Pod) -> None:
        """No node was found for a pod, and nobody makes room for it."""
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
        """A pod has a node, or is promised one, or is gone."""
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
        """Return what pods have in common that fit on the same nodes; None if only this one does.

        Plugins of others may read whatever is written on a pod, so that matters, too.
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
