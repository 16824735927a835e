"""What informers report about groups, applied: to the store, to the queue, and then as an event."""

from __future__ import annotations

from typing import TypeVar

from kubesched.cluster.object_store import NamespacedStore
from kubesched.cluster.pod_groups import AnyGroup, key_of_group
from kubesched.kinds import ObjectKind
from kubesched.queue.group_queue import GroupSchedulingQueue
from kubesched.queue.hints import Change
from kubesched.scheduler.store_handler import UNTIMED, Stopwatch, StoreHandler

G = TypeVar("G", bound=AnyGroup)


class GroupHandler(StoreHandler[G]):
    """Applies what happens to groups of one kind."""

    def __init__(
        self,
        kind: ObjectKind,
        store: NamespacedStore[G],
        queue: GroupSchedulingQueue,
        watch: Stopwatch = UNTIMED,
    ) -> None:
        super().__init__(kind, store, queue, watch)
        self._groups = queue

    def on_update(self, old: G, new: G) -> None:
        """A group changed; what a new list shows as it was is no change."""
        if old.metadata.resource_version != new.metadata.resource_version:
            super().on_update(old, new)

    def _tell(self, change: Change[G], started: float) -> None:
        if change.new is None and change.old is not None:
            self._groups.group_went(key_of_group(change.old))
        elif change.new is not None and change.old is None:
            self._groups.group_came(key_of_group(change.new))
        super()._tell(change, started)
