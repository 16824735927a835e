"""Pod groups: their objects, and which pods are members of them.

    informer: PodGroup, CompositePodGroup ──> objects, composites
    informer: pods without a node ──────────> pending ──┐
    cluster: pods on nodes, assumed too ────> placed ───┴──> GroupMembers

A member is *pending* as long as the API server shows it without a node, and *placed* as long as the
cluster counts it on one; a pod that is assumed is both. So nothing has to move from one to the
other when an assumption is reverted, and a pod that is deleted meanwhile leaves both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from kubesched.api.core import Pod
from kubesched.api.scheduling import CompositePodGroup, CoscheduledGroup, PodGroup
from kubesched.cluster.object_store import NamespacedStore
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import require

#: The label by which pods name their group of scheduler-plugins.
POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"

AnyGroup = PodGroup | CompositePodGroup | CoscheduledGroup


class GroupKind(StrEnum):
    """The kinds of groups; values are part of keys, metrics and messages."""

    POD_GROUP = "podgroup"
    COMPOSITE = "compositepodgroup"
    #: of scheduler-plugins, which pods name by a label
    COSCHEDULED = "podgroup.scheduling.x-k8s.io"


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


def named_group(pod: Pod) -> GroupKey | None:
    """Return the group that a pod's spec names, None if it names none."""
    group = pod.spec.scheduling_group
    if group is None or group.pod_group_name is None:
        return None
    return GroupKey(GroupKind.POD_GROUP, pod.metadata.namespace, group.pod_group_name)


def key_of_group(group: AnyGroup) -> GroupKey:
    """Return the key of a group."""
    return GroupKey(_KINDS[type(group)], group.metadata.namespace, group.metadata.name)


_KINDS: Final = {
    PodGroup: GroupKind.POD_GROUP,
    CompositePodGroup: GroupKind.COMPOSITE,
    CoscheduledGroup: GroupKind.COSCHEDULED,
}


#: Less than any pod's.
MIN_PRIORITY: Final = -(2**31)


class GroupMembers:
    """The pods of one group, each by its uid."""

    __slots__ = ("highest_priority", "pending", "placed")

    def __init__(self) -> None:
        #: of all pods that waited as members
        self.highest_priority = MIN_PRIORITY
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
        self.coscheduled: NamespacedStore[CoscheduledGroup] = NamespacedStore()
        #: whether the group that a pod's spec names counts, as the gate GenericWorkload decides
        self.by_spec = True
        #: the profiles in whose pods the group that a label names counts: those with Coscheduling
        self.by_label: frozenset[str] = frozenset()
        #: called with the group whenever a member comes, changes or goes
        self.listeners: list[Callable[[GroupKey], None]] = []
        self._members: dict[GroupKey, GroupMembers] = {}
        #: uid of a member → its group
        self._key_of: dict[str, GroupKey] = {}

    def of(self, pod: Pod) -> GroupKey | None:
        """Return the group that a pod is a member of, None if it is of none."""
        if self.by_spec and (named := named_group(pod)) is not None:
            return named
        if pod.spec.scheduler_name not in self.by_label:
            return None
        name = (pod.metadata.labels or {}).get(POD_GROUP_LABEL)
        return GroupKey(GroupKind.COSCHEDULED, pod.metadata.namespace, name) if name else None

    @property
    def version(self) -> tuple[int, ...]:
        """Another one for each state of the objects."""
        stores = self.objects, self.composites, self.coscheduled
        return tuple(each.changes.position for each in stores)

    @property
    def any_placed(self) -> bool:
        """Whether some group has a pod on a node."""
        return any(members.placed for members in self._members.values())

    def members(self, key: GroupKey) -> GroupMembers:
        """Return the members of a group, to be looked at only."""
        return self._members.get(key, NO_MEMBERS)

    def groups_with_members(self) -> Iterable[GroupKey]:
        """Return the groups that have pods, whether the group object exists or not."""
        return list(self._members)

    # --- members come and go ----------------------------------------------------------------

    def put_pending(self, pod: PodInfo) -> None:
        """Note a pod without a node, or its new version."""
        key = self._note(pod)
        if key is not None:
            members = self._of(key)
            members.pending[pod.uid] = pod
            members.highest_priority = max(members.highest_priority, pod.priority)
            self._changed(key)

    def remove_pending(self, pod: Pod) -> None:
        """Note that a pod is gone, or has a node now."""
        key = self._key_of.get(pod.metadata.uid)
        if key is not None:
            self._members[key].pending.pop(pod.metadata.uid, None)
            self._went(key, pod.metadata.uid)

    def put_placed(self, pod: PodInfo) -> None:
        """Note a pod on a node, or its new version."""
        key = self._note(pod)
        if key is not None:
            self._of(key).placed[pod.uid] = pod
            self._changed(key)

    def remove_placed(self, pod: PodInfo) -> None:
        """Note that a pod is on its node no more."""
        key = self._key_of.get(pod.uid)
        if key is not None:
            del self._members[key].placed[pod.uid]
            self._went(key, pod.uid)

    def _note(self, pod: PodInfo) -> GroupKey | None:
        """Return the group of a pod; one whose label named another before leaves that one."""
        key, before = self.of(pod.pod), self._key_of.get(pod.uid)
        if before is not None and before != key:
            self._members[before].pending.pop(pod.uid, None)
            self._members[before].placed.pop(pod.uid, None)
            self._went(before, pod.uid)
        if key is not None:
            self._key_of[pod.uid] = key
        return key

    def _went(self, key: GroupKey, uid: str) -> None:
        members = self._members[key]
        if uid not in members.pending and uid not in members.placed:
            del self._key_of[uid]
        if not members.pending and not members.placed:
            del self._members[key]
        self._changed(key)

    def _changed(self, key: GroupKey) -> None:
        for notify in self.listeners:
            notify(key)

    def _of(self, key: GroupKey) -> GroupMembers:
        return self._members.setdefault(key, GroupMembers())

    def validate(self, placed: Iterable[PodInfo]) -> None:
        """Check the stores, and that the members on nodes are those of all `placed` pods."""
        self.objects.validate()
        self.composites.validate()
        self.coscheduled.validate()
        expected: dict[GroupKey, dict[str, PodInfo]] = {}
        for pod in placed:
            key = self.of(pod.pod)
            if key is not None:
                expected.setdefault(key, {})[pod.uid] = pod
        found = {key: each.placed for key, each in self._members.items() if each.placed}
        require(found == expected, "members on nodes are the placed pods that name their group")
        for key, members in self._members.items():
            require(
                members.pending or members.placed, f"{key} has an entry although it has no member"
            )
            for uid, pod in members.pending.items():
                require(pod.uid == uid and self.of(pod.pod) == key, f"{pod} is a member of {key}")
        known = {uid: key for key, each in self._members.items() for uid in each.pending}
        known |= {uid: key for key, each in self._members.items() for uid in each.placed}
        require(known == self._key_of, "the group of each member")
