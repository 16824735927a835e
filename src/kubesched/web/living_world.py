"""A world on top of the live state: for a forked child, which has its own copy."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.scheduler.dry_run import DryRun
from kubesched.snapshot.filling import Filled
from kubesched.snapshot.world import World


class Rules(Struct, frozen=True):
    """The configuration that pods are placed with."""

    config: SchedulerConfiguration
    gates: FeatureGates
    registry: Registry


class LivingWorld(World):
    """The live columns, with separate frameworks that bind and evict nothing."""

    def __init__(
        self,
        cluster: Cluster,
        pods: Iterable[Pod],
        rules: Rules,
        *,
        notes: Sequence[str] = (),
        preemptors: Callable[[], Container[str]] = tuple,
    ) -> None:
        """Wrap a cluster, with all pods that are not terminated."""
        engine = DryRun(
            cluster, rules.config, rules.gates, registry=rules.registry, preemptors=preemptors
        )
        contents = Filled(notes=list(notes))
        for pod in pods:
            _sort_in(pod, cluster, contents)
        super().__init__(engine, contents)
        for pod in contents.pending.values():
            # Of another scheduler's cluster, only placed members are known.
            if pod.spec.scheduling_group is not None:
                cluster.groups.put_pending(self.compile(pod))


def _sort_in(pod: Pod, cluster: Cluster, contents: Filled) -> None:
    key = pod.metadata.namespace, pod.metadata.name
    if pod.spec.node_name:
        contents.placed[key] = pod
        return
    node_name = cluster.node_of(pod.metadata.uid)
    assumed = None if node_name is None else cluster.pod(pod.metadata.uid)
    if assumed is None or node_name is None:
        contents.pending[key] = pod
    else:
        contents.placed[key] = assumed.object_on(node_name)
