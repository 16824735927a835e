"""NodeDeclaredFeatures: a pod that needs a kubelet feature needs a node that declares it."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from kubesched.api.core import Node, Pod, PodSpec
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.cluster.vocabulary import Lookup
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.plugin import (
    NODE,
    NOTHING_AGAINST,
    NOTHING_TO_FILTER,
    PreFilterResult,
    RowFilter,
    SignaturePreFilter,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import unresolvable
from kubesched.framework.verdict import Verdict, reject
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

UNSATISFIED = unresolvable("node(s) didn't match Pod's required features")

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_ON_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
BIND_MOUNT_OPTIONS = "VolumeBindMountOptions"


class NodeDeclaredFeatures(SignaturePreFilter, RowFilter):
    """Compares the features a pod needs with those its node declares."""

    name = "NodeDeclaredFeatures"
    reads = NODE
    skips_resizes = True

    def __init__(self, table: NodeTable, *, enabled: bool) -> None:
        self._table = table
        self._enabled = enabled
        self._lacking: WeakKeyDictionary[PodSignature, Lookup[frozenset[str], np.bool_]]
        self._lacking = WeakKeyDictionary()

    @classmethod
    def create(cls, context: PluginContext) -> NodeDeclaredFeatures:
        """Create the plugin."""
        return cls(context.cluster.table, enabled=context.gates.enabled("NodeDeclaredFeatures"))

    def events_to_register(self) -> Registrations:
        """An added node, other declared features, or an update of the pod's own needs."""
        if not self._enabled:
            return []
        return [
            Registration(
                ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE),
                signature_hint=_after_node_change,
            ),
            Registration(ClusterEvent(Resource.TARGET_POD, Action.UPDATE), hint=_after_own_update),
        ]

    def pre_filter(self, signature: PodSignature) -> PreFilterResult:
        """Skip pods that need no feature."""
        needed = self._enabled and required_features(signature.spec)
        return NOTHING_AGAINST if needed else NOTHING_TO_FILTER

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Reject nodes that lack a feature."""
        lookup = self._lacking.get(signature)
        if lookup is None:
            needed = required_features(signature.spec)
            lookup = self._lacking[signature] = Lookup(
                self._table.features, lambda declared: not needed <= declared, np.bool_
            )
        return reject(lookup(nodes.rows), UNSATISFIED)

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterator[Detail]:  # noqa: ARG002
        """Name the features that nodes do not declare."""
        needed = required_features(pod.signature.spec)
        rows_lacking: dict[frozenset[str], list[int]] = {}
        for row in nodes.row_numbers().tolist():
            declared = self._table.features.at(row)
            rows_lacking.setdefault(needed - declared, []).append(row)
        for lacking, rows in rows_lacking.items():
            names = sorted(lacking)
            yield Detail(
                f"the node does not declare {', '.join(names)}",
                {"features": names},
                rows=tuple(rows),
            )


def required_features(spec: PodSpec) -> frozenset[str]:
    """Infer from a pod's spec which features its node must have."""
    needed = set()
    rules = (
        rule
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    )
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        needed.add(USER_NAMESPACES_ON_HOST_NETWORK)
    containers = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    if any(each.volume_mounts for each in containers):
        needed.add(BIND_MOUNT_OPTIONS)
    return frozenset(needed)


def _after_node_change(signature: PodSignature, change: Change[Node]) -> bool:  # noqa: ARG001 (for any pod)
    """Return whether a node was added, or declares other features; which ones is not compared."""
    if change.old is None or change.new is None:
        return change.new is not None
    return change.old.status.declared_features != change.new.status.declared_features


def _after_own_update(pod: PodInfo, change: Change[Pod]) -> bool:  # noqa: ARG001 (it is the one that changed)
    """Return whether the pod itself needs other features now."""
    if change.old is None or change.new is None:
        return False
    return required_features(change.old.spec) != required_features(change.new.spec)
