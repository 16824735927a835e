"""Queueing hints of NodeResourcesFit: resources that a parked pod requests were freed.

For an updated node or pod, the difference is computed once per change, and then compared with the
requests of each parked pod. For a deleted pod, `freed_node` evaluates the node that it left:
hundreds of pods may be parked, and nearly all of them would be woken in vain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from kubesched.api import names
from kubesched.api.core import Node, Pod
from kubesched.api.requests import node_allocatable, pod_requests
from kubesched.api.resource import DeviceClass
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.extended_resources import IMPLICIT_PREFIX
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.cluster.pod_signature import PodSignature
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.errors import ObjectError
from kubesched.plugins.changes import Prepared
from kubesched.plugins.freed_node import Checked, FreedNode, IsRowLocal
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration


class NodeOffer(Struct, frozen=True):
    """The allocatable of an added or updated node, before and after."""

    now: Mapping[str, int]
    #: None if the node was added
    before: Mapping[str, int] | None

    def takes_empty(self, requests: Mapping[str, int]) -> bool:
        """Return whether requests fit on the empty node.

        Resources that the profile ignores count here nevertheless, as in kube-scheduler.
        """
        return self.now.get(names.PODS, 0) >= 1 and all(
            amount <= self.now.get(name, 0) for name, amount in requests.items()
        )

    def has_more(self, requests: Mapping[str, int]) -> bool:
        """Return whether a requested resource, or the number of allowed pods, has grown."""
        return self._has_more_of(names.PODS) or any(
            amount and self._has_more_of(name) for name, amount in requests.items()
        )

    def _has_more_of(self, name: str) -> bool:
        return self.before is None or self.now.get(name, 0) > self.before.get(name, 0)


class FitHints:
    """The hints of NodeResourcesFit."""

    def __init__(
        self,
        rules: RequestRules,
        cluster: Cluster,
        *,
        checked: Checked,
        is_row_local: IsRowLocal,
        resizes: bool = False,
    ) -> None:
        self._rules = rules
        #: whether pods with deferred resizes may be parked
        self._resizes = resizes
        self._cluster = cluster
        self._checked = checked
        self._is_row_local = is_row_local
        self._freed = Prepared(self._freed_by)
        self._offer = Prepared(_offer_of)
        self._shrunk = Prepared(self._shrunk_in)

    def registrations(self) -> list[Registration]:
        """Return the registrations."""
        grown = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        return [
            Registration(
                ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE),
                hint=self.after_deletion,
                screen=self.may_help_alike,
                apart=self.nominated_there,
            ),
            Registration(grown, signature_hint=self.after_node_change),
            Registration(
                ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN),
                hint=self.after_scale_down,
            ),
            Registration(ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN)),
            *(self._of_resizes() if self._resizes else ()),
            Registration(
                ClusterEvent(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
                signature_hint=after_class_change,
            ),
        ]

    def _of_resizes(self) -> Iterator[Registration]:
        """Return the registrations for pods with deferred resizes."""
        for resource in (Resource.ASSIGNED_POD, Resource.TARGET_POD):
            grown = ClusterEvent(resource, Action.UPDATE_POD_SCALE_UP)
            yield Registration(grown, hint=self.after_scale_up)

    def after_deletion(self, pod: PodInfo, change: Change[Pod]) -> bool:
        """Return whether the pod fits on the node of the deleted pod now, or can preempt there."""
        if pod.signature.is_resize:
            return _is_beside(pod, change.old)
        freed = self._freed(change)
        if freed is None:
            return False
        # Members of a group do not reserve resources against each other: each may get another node.
        return self._cluster.groups.of(pod.pod) is not None or freed.helps(pod)

    def may_help_alike(self, pod: PodInfo, change: Change[Pod]) -> bool:
        """Return whether a deletion may help a pod or one like it, nominated or not."""
        is_plain = pod.volumes is NO_VOLUMES and not pod.pod.spec.resource_claims
        is_single = self._cluster.groups.of(pod.pod) is None
        if pod.signature.is_resize or not is_plain or not is_single:
            return True
        freed = self._freed(change)
        return freed is not None and freed.may_help(pod)

    def nominated_there(self, change: Change[Pod]) -> list[str]:
        """Return the pods for which room is left on the node: for them it is free."""
        name = "" if change.old is None else _place_of(change.old)
        return [each.uid for each in self._cluster.nominator.pods_on(name)]

    def _freed_by(self, change: Change[Pod]) -> FreedNode | None:
        """Return the node that a pod was on, or was nominated to; None if there is none."""
        gone = change.old
        row = None if gone is None else self._cluster.table.row_of(_place_of(gone))
        if row is None:
            return None
        return FreedNode(self._cluster, row, checked=self._checked, is_row_local=self._is_row_local)

    def after_scale_down(self, pod: PodInfo, change: Change[Pod]) -> bool:
        """Return whether a pod on a node requests less of a resource of the parked pod."""
        # A nomination does not count here: requests are released only by pods on nodes.
        if change.new is None or not change.new.spec.node_name:
            return False
        if pod.signature.is_resize and not _is_beside(pod, change.new):
            return False
        shrunk = self._shrunk(change)
        return shrunk is None or any(map(pod.signature.requests.amounts.get, shrunk))

    def after_scale_up(self, pod: PodInfo, change: Change[Pod]) -> bool:
        """Return whether a pod on the same node, possibly the parked one, requests more."""
        return pod.signature.is_resize and _is_beside(pod, change.new)

    def after_node_change(self, signature: PodSignature, change: Change[Node]) -> bool:
        """Return whether the pod fits on the empty node, which has more for it than before."""
        node = change.newest
        if signature.is_resize and node is not None and node.metadata.name != signature.node_name:
            return False
        offer, requests = self._offer(change), signature.requests.amounts
        if offer is None:
            return True
        devices = self._cluster.table.device_resources
        # Resources that are not in the node's allocatable may be devices.
        delegated = {
            name
            for name, amount in requests.items()
            if amount and name in devices and not offer.now.get(name)
        }
        own = {name: amount for name, amount in requests.items() if name not in delegated}
        return offer.takes_empty(own) and (bool(delegated) or offer.has_more(own))

    def _shrunk_in(self, change: Change[Pod]) -> frozenset[str] | None:
        """Return the resources of which a pod requests less than before; None if unknown."""
        if change.old is None or change.new is None:
            return None
        try:
            before, now = self._taken_by(change.old), self._taken_by(change.new)
        except ObjectError:
            return None
        return frozenset(name for name, amount in before.items() if amount > now.get(name, 0))

    def _taken_by(self, pod: Pod) -> dict[str, int]:
        return pod_requests(
            pod,
            use_status=True,
            pod_level=self._rules.pod_level,
            pod_level_status=self._rules.pod_level_status,
        )


def _place_of(pod: Pod) -> str:
    """Return the node that a pod is on, or nominated to; "" if there is none."""
    return pod.spec.node_name or pod.status.nominated_node_name or ""


def _is_beside(pod: PodInfo, other: Pod | None) -> bool:
    """Return whether another pod is on the node that a pod is on."""
    return other is not None and other.spec.node_name == pod.pod.spec.node_name


def after_class_change(signature: PodSignature, change: Change[DeviceClass]) -> bool:
    """Return whether a class now backs a resource that the pod requests."""
    old, new = change.old, change.new
    if new is None:
        return False
    requests = signature.requests.amounts
    explicit = new.spec.extended_resource_name or ""
    if old is not None:
        return explicit != (old.spec.extended_resource_name or "") and explicit in requests
    return explicit in requests or IMPLICIT_PREFIX + new.metadata.name in requests


def _offer_of(change: Change[Node]) -> NodeOffer | None:
    """Return the allocatable of a node before and after; None if it cannot be read."""
    if change.new is None:
        return None
    try:
        before = None if change.old is None else node_allocatable(change.old)
        return NodeOffer(now=node_allocatable(change.new), before=before)
    except ObjectError:
        return None
