"""A world made of a state that is in use: for a forked child, whose copy of it is its own."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
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

    def __init__(self, preemptors: Callable[[], Container[str]]) -> None:
        super().__init__()
        self._preemptors = preemptors

    def preemptors(self) -> Container[str]:
        """Return the pods whose victims are still to go."""
        return self._preemptors()


def _nobody() -> Container[str]:
    return ()


class LivingWorld(World):
    """The columns as they are, with frameworks of their own, from which nothing gets out."""

    def __init__(
        self,
        cluster: Cluster,
        pods: Iterable[Pod],
        rules: Rules,
        *,
        notes: Sequence[str] = (),
        preemptors: Callable[[], Container[str]] = _nobody,
    ) -> None:
        """Take a cluster over, with all pods that are not over, placed or not."""
        # Nothing is filled here: the columns are there.
        self.cluster = cluster
        self.table = cluster.table
        self.evictor = _KnowingEvictor(preemptors)
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
