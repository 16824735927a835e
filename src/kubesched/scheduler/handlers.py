"""Applies informer events of nodes and pods: first to the state, then to the queue.

The order matters: a pod that an event wakes must see the state that woke it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kubesched.api.core import Node, Pod
from kubesched.api.requests import is_resize_deferred
from kubesched.api.scheduling import CompositePodGroup, CoscheduledGroup, PodGroup
from kubesched.client.informer import Handler
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import is_preempted
from kubesched.errors import ObjectError
from kubesched.framework.waiting import WaitingPods
from kubesched.kinds import KINDS, stores
from kubesched.queue import events
from kubesched.queue.differences import node_events, pod_events
from kubesched.queue.group_queue import GroupSchedulingQueue
from kubesched.queue.hints import Change
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.group_handler import GroupHandler
from kubesched.scheduler.nominations import Nominations
from kubesched.scheduler.races import RaceDetector
from kubesched.scheduler.store_handler import UNTIMED, Stopwatch, StoreHandler
from kubesched.scheduler.unreadable import UnusableObjects

_log = logging.getLogger(__name__)


def state_handlers(
    cluster: Cluster,
    queue: SchedulingQueue,
    nominations: Nominations,
    *,
    unusable: UnusableObjects | None = None,
    watch: Stopwatch = UNTIMED,
) -> dict[str, Handler[Any]]:
    """Return the handlers of all kinds but pods, by kind."""
    handlers: dict[str, Handler[Any]] = {
        "Node": NodeHandler(cluster, queue, nominations, unusable),
        **{kind.name: StoreHandler(kind, store, queue, watch) for kind, store in stores(cluster)},
    }
    if isinstance(queue, GroupSchedulingQueue):
        for group in (PodGroup, CompositePodGroup, CoscheduledGroup):
            kind = KINDS[group.__name__]
            store: Any = kind.store and kind.store(cluster)
            handlers[kind.name] = GroupHandler(kind, store, queue, watch)
    return handlers


class NodeHandler:
    """Applies node events."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        nominations: Nominations,
        unusable: UnusableObjects | None = None,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._nominations = nominations
        self._unusable = unusable or UnusableObjects()

    def on_add(self, obj: Node, initial: bool) -> None:  # noqa: ARG002 (the protocol's)
        """A node was added."""
        if self._put(obj):
            self._queue.move(Change(events.NODE_ADD, new=obj))

    def on_update(self, old: Node, new: Node) -> None:
        """A node was updated; most updates are heartbeats, which change nothing here."""
        happened = node_events(old, new)
        if not happened and _same_to_us(old, new):
            return
        if self._put(new):
            for event in happened:
                self._queue.move(Change(event, old, new))

    def on_delete(self, obj: Node) -> None:
        """A node was deleted."""
        self._unusable.forget(obj)
        self._cluster.remove_node(obj.metadata.name)
        self._queue.move(Change(events.NODE_DELETE, old=obj))
        self._nominations.review(obj.metadata.name, events.NODE_DELETE)

    def _put(self, node: Node) -> bool:
        try:
            self._cluster.put_node(node)
        except ObjectError as unreadable:
            _log.warning("node left as it was known before: %s", unreadable)
            self._unusable.note(node, unreadable)
            return False
        self._unusable.forget(node)
        return True


def _same_to_us(old: Node, new: Node) -> bool:
    return old.spec == new.spec and old.status.images == new.status.images


class PodHandler:
    """Applies pod events."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        *,
        nominations: Nominations,
        waiting: WaitingPods,
        is_ours: Callable[[Pod], bool],
        on_unreadable: Callable[[Pod, ObjectError], None],
        unusable: UnusableObjects | None = None,
        races: RaceDetector | None = None,
        resizes: bool = False,
    ) -> None:
        #: whether pods with a deferred resize are queued, for preemption
        self._resizes = resizes
        self._cluster = cluster
        self._queue = queue
        self._nominations = nominations
        self._waiting = waiting
        #: returns whether a pod's `schedulerName` is one of our profiles
        self._is_ours = is_ours
        #: called for pending pods that cannot be read
        self._on_unreadable = on_unreadable
        self._unusable = unusable or UnusableObjects()
        #: is shown pods that other processes bind; None if the caller binds none itself
        self._races = races

    def on_add(self, obj: Pod, initial: bool) -> None:
        """A pod was added."""
        if obj.spec.node_name:
            self._assigned(obj, is_news=not initial)
            self._follow_resize(None, obj)
        elif self._is_ours(obj):
            self._enqueue(obj)

    def on_update(self, old: Pod, new: Pod) -> None:
        """A pod was updated."""
        if old.spec.node_name:
            self._put(new)
            self._follow_resize(old, new)
            for event in pod_events(old, new):
                self._queue.move(Change(event, old, new))
        elif new.spec.node_name:
            self._cluster.remove_pending(new)
            self._queue.delete(new.metadata.uid)
            self._assigned(new)
        elif self._is_ours(new):
            self._update_pending(old, new)

    def on_delete(self, obj: Pod) -> None:
        """A pod was deleted."""
        uid = obj.metadata.uid
        self._unusable.forget(obj)
        self._cluster.remove_pending(obj)
        self._queue.delete(uid)
        if obj.spec.node_name:
            self._cluster.remove_pod(uid)
            self._left(obj)
        elif self._cluster.is_assumed(uid):
            self._assumed_is_going(obj)
        self._nominations.withdraw(uid)

    # --- inside -----------------------------------------------------------------------------

    def _assigned(self, pod: Pod, *, is_news: bool = True) -> None:
        uid, node_name, races = pod.metadata.uid, pod.spec.node_name, self._races
        shows = races is not None and is_news and races.is_of_others(uid, node_name)
        is_known = self._put(pod)
        if shows and is_known and races is not None:
            races.arrived(uid)
        self._nominations.withdraw(pod.metadata.uid, placed_on=pod.spec.node_name)
        if is_known:
            self._queue.move(Change(events.ASSIGNED_POD_ADD, new=pod))

    def _follow_resize(self, old: Pod | None, new: Pod) -> None:
        """Queue a pod on a node while its resize is deferred: it may preempt other pods."""
        if not self._resizes or not self._is_ours(new):
            return
        was, is_now = old is not None and is_resize_deferred(old), is_resize_deferred(new)
        if not is_now:
            if was:
                self._queue.delete(new.metadata.uid)
            return
        try:
            info = self._cluster.compiler.resizing(new)
        except ObjectError:
            return  # the previous state stays, too, and that is recorded
        if old is not None and was:
            self._queue.update(old, info)
        else:
            self._queue.add(info)

    def _left(self, pod: Pod) -> None:
        """A pod left its node."""
        self._queue.move(Change(events.ASSIGNED_POD_DELETE, old=pod))
        self._nominations.review(pod.spec.node_name, is_victim=is_preempted(pod))

    def _put(self, pod: Pod) -> bool:
        try:
            self._cluster.put_pod(pod)
        except ObjectError as unreadable:
            _log.warning("pod left as it was known before: %s", unreadable)
            self._unusable.note(pod, unreadable)
            return False
        self._unusable.forget(pod)
        return True

    def _enqueue(self, pod: Pod) -> None:
        try:
            info = self._cluster.compiler.pending(pod)
        except ObjectError as unreadable:
            self._unusable.note(pod, unreadable)
            self._on_unreadable(pod, unreadable)
            return
        self._unusable.forget(pod)
        # Before the queue: a nomination counts even if the pod is gated.
        if pod.status.nominated_node_name:
            self._nominations.nominate(info, pod.status.nominated_node_name)
        self._cluster.put_pending(info)
        self._queue.add(info)
        if isinstance(self._queue, GroupSchedulingQueue):
            # Its group may wait for it.
            self._queue.move(Change(events.UNSCHEDULED_POD_ADD, new=pod))

    def _update_pending(self, old: Pod, new: Pod) -> None:
        uid = new.metadata.uid
        if self._cluster.is_assumed(uid):
            if new.metadata.deletion_timestamp and not old.metadata.deletion_timestamp:
                self._assumed_is_going(new)
            return
        try:
            info = self._cluster.compiler.pending(new)
        except ObjectError as unreadable:
            self._unusable.note(new, unreadable)
            if new.spec != old.spec:
                self._on_unreadable(new, unreadable)
            return
        self._unusable.forget(new)
        self._cluster.put_pending(info)
        self._queue.update(old, info)
        if new.status.nominated_node_name:
            self._nominations.nominate(info, new.status.nominated_node_name)
        elif old.status.nominated_node_name:
            self._nominations.withdraw(uid)
            # As if it had left the node. Its status names a node that it is no longer nominated
            # to, so it is retried even if the hints return Skip.
            if self._queue.waits_for(uid, events.ASSIGNED_POD_DELETE):
                self._queue.try_again(uid, events.ASSIGNED_POD_DELETE)

    def _assumed_is_going(self, pod: Pod) -> None:
        """A pod was deleted between assume and bind."""
        waiting = self._waiting.get(pod.metadata.uid)
        if waiting is not None and waiting.reject("", "removed"):
            return
        uid = pod.metadata.uid
        assumed, node_name = self._cluster.pod(uid), self._cluster.node_of(uid)
        self._cluster.forget(uid)
        if assumed is not None and node_name is not None:
            self._left(assumed.object_on(node_name))
