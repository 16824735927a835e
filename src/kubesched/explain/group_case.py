"""One group in a cluster, and the effect of hypothetical changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.resource import ResourceSlice
from kubesched.api.scheduling import PodGroup
from kubesched.cluster.pod_groups import GroupKey
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError
from kubesched.framework.group import Assignment, GroupInfo
from kubesched.framework.runtime import Framework
from kubesched.scheduler.group_dry_run import GroupDryRun
from kubesched.snapshot.world import World


class GroupProposal(Struct, frozen=True, kw_only=True):
    """A change that may help a group; the engine tells whether it does."""

    kind: str
    title: str
    cost: float
    #: the changed group
    group: PodGroup | None = None
    #: uid → the changed pod
    pods: dict[str, Pod] = {}
    #: members that are created beside those that are there
    more: tuple[Pod, ...] = ()
    evict: tuple[PodInfo, ...] = ()
    nodes: tuple[Node, ...] = ()
    arriving: tuple[Pod, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    commands: tuple[str, ...] = ()
    note: str = ""


class GroupCase:
    """A group to be placed, with the tree that it is part of."""

    def __init__(
        self, world: World, dry_run: GroupDryRun, framework: Framework, root: GroupInfo
    ) -> None:
        self.world = world
        self.dry_run = dry_run
        self.framework = framework
        self.root = root

    def outcome(self, proposal: GroupProposal, key: GroupKey) -> Sequence[Assignment]:
        """Return the nodes of members after a proposal about one group; none if too few fit."""
        cluster = self.world.cluster
        with cluster.transaction() as tx:
            for pod in proposal.evict:
                tx.remove(pod.uid)
                tx.release(pod.pod)
            for each in proposal.slices:
                tx.put_object(cluster.devices.slices, each)
            for node in proposal.nodes:
                tx.put_node(node)
            for daemon in proposal.arriving:
                tx.add(daemon)
            more = [self.world.created(each, tx) for each in proposal.more]
            try:
                root = self._changed(self.root, proposal, key, more)
            except ObjectError:
                return []
            return self.dry_run.fits(self.framework, root)

    def _changed(
        self, info: GroupInfo, proposal: GroupProposal, key: GroupKey, more: Iterable[Pod]
    ) -> GroupInfo:
        """Return a tree in which one group, or some pods of it, are others."""
        compiled = {
            uid: self.world.compile(pod)
            for uid, pod in proposal.pods.items()
            if any(each.uid == uid for each in info.pods)
        }
        pods = tuple(compiled.get(pod.uid, pod) for pod in info.pods)
        group = info.group
        if info.key == key:
            pods = (*pods, *(self.world.compile(each) for each in more))
            group = proposal.group or group
        children = tuple(self._changed(each, proposal, key, more) for each in info.children)
        return replace(info, group=group, pods=pods, children=children)
