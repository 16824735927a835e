"""The scheduling cycle on any cluster, without binding and eviction.

    Cluster ──> Framework of each profile ──> SchedulingCycle ──> Decision, and its victims

Explain, simulate, replay, shadow, the page, the test workbench and the benchmark of decisions build
on this. The caller assumes the pod on its node, if it wants to. Groups of pods are decided about in
`group_dry_run`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.building import build_framework
from kubesched.framework.group import GroupInfo
from kubesched.framework.null_writers import NullEvictor
from kubesched.framework.registry import Registry
from kubesched.framework.runtime import Framework
from kubesched.metrics.recorder import Metrics
from kubesched.plugins.in_tree import IN_TREE
from kubesched.scheduler.cycle import Decision, SchedulingCycle
from kubesched.scheduler.group_dry_run import GroupDryRun


class DryRunEvictor(NullEvictor):
    """Records victims instead of evicting them."""

    def __init__(self, preemptors: Callable[[], Container[str]] = tuple) -> None:
        self._preemptors = preemptors
        self._last: tuple[str, tuple[PodInfo, ...]] | None = None

    def evict(self, preemptor: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:  # noqa: ARG002
        """Record node and victims."""
        self._last = node_name, tuple(victims)

    def evict_for_group(self, group: GroupInfo, victims: Sequence[PodInfo]) -> None:  # noqa: ARG002
        """Record the victims of a group, which may be on several nodes."""
        self._last = "", tuple(victims)

    def preemptors(self) -> Container[str]:
        """Return the uids of pods whose victims are not gone yet."""
        return self._preemptors()

    def taken(self) -> tuple[str, tuple[PodInfo, ...]] | None:
        """Return node and victims of the last preemption, and clear them."""
        last, self._last = self._last, None
        return last


class DryRun:
    """The profiles of a configuration, on a cluster that the caller populates and changes."""

    def __init__(
        self,
        cluster: Cluster,
        config: SchedulerConfiguration,
        gates: FeatureGates,
        *,
        registry: Registry = IN_TREE,
        seed: int = 0,
        preemptors: Callable[[], Container[str]] = tuple,
        metrics: Metrics | None = None,
    ) -> None:
        """Create the profiles; the same `seed` gives the same placements.

        `preemptors` returns the uids of pods whose victims are not gone yet. Raises ConfigError if
        the configuration cannot be used.
        """
        self.cluster = cluster
        self.evictor = DryRunEvictor(preemptors)
        self.gates = gates
        self._metrics = metrics
        #: by scheduler name; the same mapping for good, updated with the profiles in use
        self.frameworks: dict[str, Framework] = {}
        #: decides about groups of pods, if the feature gate for them is on
        self.groups = GroupDryRun(self, gates) if gates.enabled("GenericWorkload") else None
        self.restart(seed)
        self.configure(config, registry)

    def configure(self, config: SchedulerConfiguration, registry: Registry) -> None:
        """Replace the configuration and the plugin registry."""
        self.config, self.registry = config, registry
        frameworks = {
            profile.scheduler_name: build_framework(
                profile,
                registry=registry,
                gates=self.gates,
                cluster=self.cluster,
                evictor=self.evictor,
                percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
                metrics=self._metrics,
            )
            for profile in config.profiles
        }
        self.frameworks.clear()
        self.frameworks.update(frameworks)
        count = len(config.extenders)
        #: the parts of the configuration that are ignored, one line each
        self.notes = [f"{count} extenders of the configuration are not asked"] if count else []

    def restart(self, seed: int) -> None:
        """Reset the random generator that breaks ties to a seed."""
        self.cycle = SchedulingCycle(self.cluster, seed=seed)

    def framework_of(self, scheduler_name: str) -> Framework:
        """Return the profile of a scheduler name, the first profile if there is none."""
        found = self.frameworks.get(scheduler_name)
        return next(iter(self.frameworks.values())) if found is None else found

    def decide(self, framework: Framework, pod: PodInfo) -> tuple[Decision, tuple[PodInfo, ...]]:
        """Return the decision about a pod, and the pods that it would evict."""
        self.evictor.taken()
        decision = self.cycle.schedule(framework, pod)
        return decision, self.victims()

    def victims(self) -> tuple[PodInfo, ...]:
        """Return the victims of the last preemption, and clear them."""
        evicted = self.evictor.taken()
        return () if evicted is None else evicted[1]
