"""A world made of a state that is in use: for a forked child, whose copy of it is its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import PluginError
from kubesched.framework.building import build_framework
from kubesched.framework.registry import Registry
from kubesched.snapshot.world import RememberingEvictor, World


class Rules(Struct, frozen=True):
    """By what pods are placed."""

    config: SchedulerConfiguration
    gates: FeatureGates
    registry: Registry


class _KnowingEvictor(RememberingEvictor):
    """Evicts nobody, and knows for whom others are being evicted."""

    def __init__(self, is_evicting_for: Callable[[str], bool]) -> None:
        super().__init__()
        self._is_evicting_for = is_evicting_for

    def is_evicting_for(self, uid: str) -> bool:
        """Say whether victims of a pod are still to go."""
        return self._is_evicting_for(uid)


class _NoBinder:
    async def bind(self, pod: PodInfo, node_name: str) -> None:
        raise PluginError(f"{pod.full_name} cannot be bound to {node_name}: this is only a copy")


def _nobody(_uid: str) -> bool:
    return False


class LivingWorld(World):
    """The columns as they are, with frameworks of their own, from which nothing gets out."""

    def __init__(
        self,
        cluster: Cluster,
        pods: Iterable[Pod],
        rules: Rules,
        *,
        notes: Sequence[str] = (),
        is_evicting_for: Callable[[str], bool] = _nobody,
    ) -> None:
        """Take a cluster over, with all pods that are not over, placed or not."""
        # Nothing is filled here: the columns are there.
        self.cluster = cluster
        self.table = cluster.table
        self.evictor = _KnowingEvictor(is_evicting_for)
        self.notes = list(notes)
        self.pending, self.placed = {}, {}
        for pod in pods:
            self._sort_in(pod)
        config = rules.config
        self.frameworks = {
            profile.scheduler_name: build_framework(
                profile,
                registry=rules.registry,
                gates=rules.gates,
                cluster=cluster,
                binder=_NoBinder(),
                evictor=self.evictor,
                percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
            )
            for profile in config.profiles
        }
        if config.extenders:
            count = len(config.extenders)
            self.notes.append(f"{count} extenders of the configuration are not asked")

    def _sort_in(self, pod: Pod) -> None:
        key = pod.metadata.namespace, pod.metadata.name
        if pod.spec.node_name:
            self.placed[key] = pod
            return
        node_name = self.cluster.node_of(pod.metadata.uid)
        assumed = None if node_name is None else self.cluster.pod(pod.metadata.uid)
        if assumed is None or node_name is None:
            self.pending[key] = pod
        else:
            self.placed[key] = assumed.object_on(node_name)
