"""A snapshot with the scheduler's own state and frameworks, disconnected from any server.

    Snapshot ──> Cluster (columns) <── DryRun
                     └── what-if: pods and nodes removed or added; undone at the end

A dry run binds and evicts nothing, so a world has no side effects.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from msgspec.structs import replace

from kubesched.api.claim_templates import with_claims
from kubesched.api.core import Pod
from kubesched.api.scheduling import PriorityClass
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.cluster.transaction import Transaction
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ObjectError
from kubesched.framework.detail import listed
from kubesched.framework.registry import Registry
from kubesched.kinds import KINDS
from kubesched.plugins.in_tree import IN_TREE
from kubesched.scheduler.dry_run import DryRun
from kubesched.snapshot.contents import Snapshot
from kubesched.snapshot.filling import Filled, fill

_SIMILAR: Final = 3


class World:
    """A cluster for questions and hypothetical changes, without side effects."""

    def __init__(self, engine: DryRun, contents: Filled) -> None:
        #: makes decisions
        self.engine = engine
        self.cluster = engine.cluster
        self.table = engine.cluster.table
        self.frameworks = engine.frameworks
        self.notes = [*contents.notes, *engine.notes]
        #: pending pods
        self.pending = contents.pending
        #: placed pods
        self.placed = contents.placed
        self._find_template = contents.find_template
        self._claim_templates = contents.claim_templates

    @classmethod
    def of_snapshot(
        cls,
        snapshot: Snapshot,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        *,
        registry: Registry = IN_TREE,
    ) -> World:
        """Return a world with all objects of a snapshot."""
        cluster = Cluster(RequestRules.of(gates))
        contents = fill(cluster, snapshot)
        return cls(DryRun(cluster, config, gates, registry=registry), contents)

    # --- asking -----------------------------------------------------------------------------

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod, pending or placed."""
        key = namespace, name
        return self.pending.get(key) or self.placed.get(key)

    def node_row(self, name: str) -> int:
        """Return the row of a node; raises ObjectError that names similar ones if there is none."""
        row = self.table.row_of(name)
        if row is not None:
            return row
        known = list(self.table.names())
        similar = get_close_matches(name, known, n=_SIMILAR) or known
        hint = f"; there is {listed(similar)}" if similar else ""
        raise ObjectError(f"node {name} not found{hint}")

    def compile(self, pod: Pod) -> PodInfo:
        """Compile a pod as pending, even if it has a node; raises ObjectError."""
        if pod.spec.node_name:
            pod = replace(pod, spec=replace(pod.spec, node_name=""))
        return self.cluster.compiler.pending(pod)

    def created(self, pod: Pod, tx: Transaction) -> Pod:
        """Return a pod that is not there yet with its claims, which are there for a while.

        So is the pod as a member of its group. Raises ObjectError if it cannot be compiled.
        """
        pod, claims = with_claims(pod, self._find_template)
        for each in claims:
            tx.put_object(self.cluster.devices.claims, each)
        if pod.spec.scheduling_group is not None:
            groups = self.cluster.groups
            groups.put_pending(self.compile(pod))
            tx.on_undo(lambda: groups.remove_pending(pod))
        return pod

    def has_claim_template(self, namespace: str, name: str) -> bool:
        """Tell whether a ResourceClaimTemplate is there."""
        return self._find_template(namespace, name) is not None

    def snapshot(self, classes: Iterable[PriorityClass] = ()) -> Snapshot:
        """Return all objects; priority classes are no part of a world, and are given."""
        taken = Snapshot(source="a world")
        for name, kind in KINDS.items():
            if kind.store is not None:
                taken.objects[name] = list(kind.store(self.cluster))
        taken.objects["Node"] = [each for each in self.table.nodes if each is not None]
        taken.objects["Pod"] = [*self.placed.values(), *self.pending.values()]
        taken.objects["PriorityClass"] = list(classes)
        taken.objects["ResourceClaimTemplate"] = list(self._claim_templates)
        return taken

    def pods_on(self, node_name: str) -> list[PodInfo]:
        """Return the pods on a node."""
        row = self.table.row_of(node_name)
        return [] if row is None else list(self.table.pods[row].values())


def is_bound_to_its_node(pod: Pod) -> bool:
    """Tell whether a pod is tied to its node: a DaemonSet pod, or a static pod."""
    return any(owner.kind in ("DaemonSet", "Node") for owner in pod.metadata.owner_references)
