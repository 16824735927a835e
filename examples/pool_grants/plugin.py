"""PoolGrants: nodes of a pool are for namespaces that were granted the pool.

A node's pool is its label ``example.com/pool``. Grants are objects of a kind of their own, which
the cluster's administrators create (crd.yaml beside this file defines it):

    apiVersion: example.com/v1
    kind: PoolGrant
    metadata: {name: training}
    spec: {pool: gpu, namespaces: [team-a, team-b]}

Naming the kind in `watches` starts an informer for it. What it knows is read through a lister; a
change wakes the pods that this plugin rejected. The account of the scheduler needs the right to
list and watch ``poolgrants``.
"""

from __future__ import annotations

from typing import Self

from kubesched.api.meta import ApiStruct, ObjectMeta
from kubesched.cluster.plugin_objects import Lister
from kubesched.framework.detail import Detail
from kubesched.framework.node_by_node import NodeFilter, NodeWithPods, PodView
from kubesched.framework.registry import PluginContext
from kubesched.kinds import Watched

LABEL = "example.com/pool"


class PoolGrantSpec(ApiStruct, frozen=True):
    """Which namespaces may use a pool."""

    pool: str = ""
    namespaces: tuple[str, ...] = ()


class PoolGrant(ApiStruct, frozen=True):
    """The fields that the plugin reads; others are skipped."""

    metadata: ObjectMeta
    spec: PoolGrantSpec = PoolGrantSpec()


class PoolGrants(NodeFilter):
    """Filters by the pool of the node and the namespace of the pod."""

    name = "PoolGrants"
    watches = (Watched(PoolGrant, "example.com/v1", "poolgrants", namespaced=False),)

    def __init__(self, grants: Lister[PoolGrant]) -> None:
        self._grants = grants

    @classmethod
    def create(cls, context: PluginContext) -> Self:
        """Make the plugin, which needs a lister and has no arguments."""
        return cls(context.objects(PoolGrant))

    def filter_node(self, pod: PodView, node: NodeWithPods) -> str | None:
        """Reject nodes of pools that the pod's namespace was not granted."""
        pool = node.labels.get(LABEL)
        if pool is None:
            return None
        granted = any(
            grant.spec.pool == pool and pod.namespace in grant.spec.namespaces
            for grant in self._grants
        )
        return None if granted else f"node(s) of pool {pool} were not granted to {pod.namespace}"

    def node_detail(self, pod: PodView, node: NodeWithPods) -> Detail:
        """Say to which namespaces the pool was granted, for kubesched explain."""
        pool = node.labels[LABEL]
        spaces = {
            name
            for grant in self._grants
            if grant.spec.pool == pool
            for name in grant.spec.namespaces
        }
        text = f"pool {pool} is granted to {', '.join(sorted(spaces)) or 'no namespace'}"
        return Detail(text, {"pool": pool, "grantedTo": sorted(spaces)})
