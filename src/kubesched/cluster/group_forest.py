"""Groups of groups: who is whose parent, seen from either end.

A PodGroup may name a CompositePodGroup as its parent, and that another one. What is scheduled at
once is the tree below the *root*. With the gate CompositePodGroup off parents are ignored, and each
PodGroup is a root.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.api.scheduling import CompositePodGroup, PodGroup
from kubesched.cluster.pod_groups import GroupKey, GroupKind, PodGroups
from kubesched.cluster.pod_info import PodInfo

#: How many levels a tree may have, the PodGroups included.
MAX_DEPTH = 4


class GroupForest:
    """The groups of a cluster as trees."""

    def __init__(self, groups: PodGroups, *, composite: bool = False) -> None:
        self.groups = groups
        #: whether parents count, as the gate CompositePodGroup decides
        self.composite = composite

    def get(self, key: GroupKey) -> PodGroup | CompositePodGroup | None:
        """Return a group; one of scheduler-plugins in the form that all others have."""
        if key.kind is GroupKind.COSCHEDULED:
            coscheduled = self.groups.coscheduled.get(key.namespace, key.name)
            if coscheduled is None:
                return None
            return coscheduled.as_pod_group(self.groups.members(key).highest_priority)
        store = self.groups.composites if key.kind is GroupKind.COMPOSITE else self.groups.objects
        found: PodGroup | CompositePodGroup | None = store.get(key.namespace, key.name)
        return found

    def parent_of(self, key: GroupKey) -> GroupKey | None:
        """Return the group that a group is part of, None if it is a root or does not exist."""
        group = self.get(key) if self.composite else None
        name = None if group is None else group.spec.parent_composite_pod_group_name
        return None if name is None else GroupKey(GroupKind.COMPOSITE, key.namespace, name)

    def chain(self, key: GroupKey) -> list[GroupKey]:
        """Return a group, its parent, and so on, as far as they exist."""
        found: list[GroupKey] = []
        at: GroupKey | None = key
        while at is not None and at not in found and self.get(at) is not None:
            found.append(at)
            at = self.parent_of(at)
        return found

    def root_of(self, key: GroupKey) -> GroupKey | None:
        """Return the root of a group's tree; None if an ancestor does not exist, or in a cycle.

        A group that is its own ancestor has no root.
        """
        chain = self.chain(key)
        return chain[-1] if chain and self.parent_of(chain[-1]) is None else None

    def root_of_pod(self, pod: PodInfo) -> GroupKey | None:
        """Return the root of the tree that a pod is part of."""
        key = self.groups.of(pod.pod)
        return None if key is None else self.root_of(key)

    def priority_of(self, pod: PodInfo) -> int:
        """Return the priority that counts for preempting a pod: that of the root, if it has one."""
        key = self.groups.of(pod.pod)
        if key is None or key.kind is GroupKind.COSCHEDULED:
            return pod.priority
        chain = self.chain(key)[:MAX_DEPTH]
        return self.priority(chain[-1]) if chain else pod.priority

    def priority(self, key: GroupKey) -> int:
        """Return the priority of a group, 0 if it has none."""
        group = self.get(key)
        return (group.spec.priority if group is not None else None) or 0

    def unit_of(self, pod: PodInfo) -> GroupKey | None:
        """Return the highest group above a pod of which all pods must be preempted together."""
        key = self.groups.of(pod.pod)
        found = None
        for each in self.chain(key)[:MAX_DEPTH] if key is not None else ():
            group = self.get(each)
            mode = None if group is None else group.spec.disruption_mode
            if mode is not None and mode.all is not None:
                found = each
        return found

    def children(self, key: GroupKey) -> list[GroupKey]:
        """Return the groups of a composite group, the oldest first."""
        if key.kind is not GroupKind.COMPOSITE or not self.composite:
            return []
        groups, of = self.groups, (key.namespace, key.name)
        parts = [
            *((GroupKind.POD_GROUP, each.metadata) for each in groups.objects.parts_of(*of)),
            *((GroupKind.COMPOSITE, each.metadata) for each in groups.composites.parts_of(*of)),
        ]
        parts.sort(key=lambda part: (part[1].creation_timestamp or "", part[1].name))
        return [GroupKey(kind, meta.namespace, meta.name) for kind, meta in parts]

    def leaves(self, key: GroupKey) -> Iterator[GroupKey]:
        """Return the PodGroups of a tree, in the order in which they are scheduled."""
        yield from self._leaves(key, set())

    def _leaves(self, key: GroupKey, seen: set[GroupKey]) -> Iterator[GroupKey]:
        if key in seen:
            return
        seen.add(key)
        if key.kind is not GroupKind.COMPOSITE:
            yield key
        for child in self.children(key):
            yield from self._leaves(child, seen)

    def is_interrupted(self, key: GroupKey) -> bool:
        """Return whether a gang of a tree has members on nodes, and fewer than it needs."""
        for leaf in self.leaves(key):
            group = self.get(leaf)
            if group is not None and 0 < self.groups.members(leaf).placed_count < group.min_count:
                return True
        return False

    def placed(self, key: GroupKey) -> list[PodInfo]:
        """Return the pods of a tree that are on nodes, or assumed to be."""
        leaves = self.leaves(key)
        return [pod for leaf in leaves for pod in self.groups.members(leaf).placed.values()]
