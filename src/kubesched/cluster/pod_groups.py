"""Pod groups: their objects, and which pods are members of them.

    informer: PodGroup, CompositePodGroup ──> objects, composites
    informer: pods without a node ──────────> pending ──┐
    cluster: pods on nodes, assumed too ────> placed ───┴──> GroupMembers

A member is *pending* as long as the API server shows it without a node, and *placed* as long as the
cluster counts it on one; a pod that is assumed is both. So nothing has to move from one to the
other when an assumption is taken back, and a pod that is deleted meanwhile is gone from both.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, TypeVar

from kubesched.api.core import Pod
from kubesched.api.scheduling import CompositePodGroup, PodGroup
from kubesched.cluster.object_store import NamespacedStore
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import require


class GroupKind(StrEnum):
    """The two kinds of groups; values are part of keys, metrics and messages."""

    POD_GROUP = "podgroup"
    COMPOSITE = "compositepodgroup"


class GroupKey(NamedTuple):
    """The identity of a group."""

    kind: GroupKind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"

    @property
    def full_name(self) -> str:
        """Namespace and name, as messages show them."""
        return f"{self.namespace}/{self.name}"


def group_of(pod: Pod) -> GroupKey | None:
    """Return the group that a pod names, None if it names none."""
    group = pod.spec.scheduling_group
    if group is None or group.pod_group_name is None:
        return None
    return GroupKey(GroupKind.POD_GROUP, pod.metadata.namespace, group.pod_group_name)


def key_of_group(group: PodGroup | CompositePodGroup) -> GroupKey:
    """Return the key of a group."""
    composite = isinstance(group, CompositePodGroup)
    kind = GroupKind.COMPOSITE if composite else GroupKind.POD_GROUP
    return GroupKey(kind, group.metadata.namespace, group.metadata.name)


class GroupMembers:
    """The pods of one group, each by its uid."""

    __slots__ = ("pending", "placed")

    def __init__(self) -> None:
        #: without a node, as far as the API server shows
        self.pending: dict[str, PodInfo] = {}
        #: on a node, or assumed to be
        self.placed: dict[str, PodInfo] = {}

    @property
    def count(self) -> int:
        """How many pods the group has."""
        both = sum(uid in self.placed for uid in self.pending) if self.placed else 0
        return len(self.pending) + len(self.placed) - both

    @property
    def placed_count(self) -> int:
        """How many of them are on a node, or assumed to be."""
        return len(self.placed)

    def unplaced(self) -> list[PodInfo]:
        """Return the pods that are on no node."""
        return [pod for uid, pod in self.pending.items() if uid not in self.placed]


#: What a group without any pod has.
NO_MEMBERS = GroupMembers()


G = TypeVar("G", bound=PodGroup | CompositePodGroup)


class GroupStore(NamespacedStore[G]):
    """Groups of one kind, also by the composite group that they are part of."""

    def __init__(self) -> None:
        super().__init__()
        self._by_parent = self._indexed(_parent)

    def parts_of(self, namespace: str, name: str) -> list[G]:
        """Return the groups that name a composite group as their parent."""
        return [self._objects[key] for key in self._by_parent.keys(f"{namespace}/{name}")]


def _parent(group: PodGroup | CompositePodGroup) -> str:
    name = group.spec.parent_composite_pod_group_name
    return "" if name is None else f"{group.metadata.namespace}/{name}"


class PodGroups:
    """All groups, and the members of each."""

    def __init__(self) -> None:
        self.objects: GroupStore[PodGroup] = GroupStore()
        self.composites: GroupStore[CompositePodGroup] = GroupStore()
        self._members: dict[GroupKey, GroupMembers] = {}

    @property
    def version(self) -> tuple[int, ...]:
        """Another one for each state of the objects."""
        return self.objects.changes.position, self.composites.changes.position

    @property
    def any_placed(self) -> bool:
        """Whether some group has a pod on a node."""
        return any(members.placed for members in self._members.values())

    def members(self, key: GroupKey) -> GroupMembers:
        """Return the members of a group, to be looked at only."""
        return self._members.get(key, NO_MEMBERS)

    def groups_with_members(self) -> Iterable[GroupKey]:
        """Return the groups that have pods, whether the group itself is known or not."""
        return list(self._members)

    # --- members come and go ----------------------------------------------------------------

    def put_pending(self, pod: PodInfo) -> None:
        """Note a pod without a node, or its new version."""
        key = group_of(pod.pod)
        if key is not None:
            self._of(key).pending[pod.uid] = pod

    def remove_pending(self, pod: Pod) -> None:
        """Note that a pod is gone, or has a node now."""
        key = group_of(pod)
        if key is not None and key in self._members:
            self._members[key].pending.pop(pod.metadata.uid, None)
            self._drop_if_empty(key)

    def put_placed(self, pod: PodInfo) -> None:
        """Note a pod on a node, or its new version."""
        key = group_of(pod.pod)
        if key is not None:
            self._of(key).placed[pod.uid] = pod

    def remove_placed(self, pod: PodInfo) -> None:
        """Note that a pod is on its node no more."""
        key = group_of(pod.pod)
        if key is not None:
            del self._members[key].placed[pod.uid]
            self._drop_if_empty(key)

    def _of(self, key: GroupKey) -> GroupMembers:
        return self._members.setdefault(key, GroupMembers())

    def _drop_if_empty(self, key: GroupKey) -> None:
        members = self._members[key]
        if not members.pending and not members.placed:
            del self._members[key]

    def validate(self, placed: Iterable[PodInfo]) -> None:
        """Check the stores, and that the members on nodes are those of all `placed` pods."""
        self.objects.validate()
        self.composites.validate()
        expected: dict[GroupKey, dict[str, PodInfo]] = {}
        for pod in placed:
            key = group_of(pod.pod)
            if key is not None:
                expected.setdefault(key, {})[pod.uid] = pod
        found = {key: each.placed for key, each in self._members.items() if each.placed}
        require(found == expected, "members on nodes are the placed pods that name their group")
        for key, members in self._members.items():
            require(members.pending or members.placed, f"{key} is kept although it has no member")
            for uid, pod in members.pending.items():
                require(pod.uid == uid and group_of(pod.pod) == key, f"{pod} is a member of {key}")
