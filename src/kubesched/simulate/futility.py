"""Attempts that would be in vain, which a simulation does without.

Whenever a pod ends, every pod that it may have made room for is tried again, and a gang that does
not fit is tried again and again. In a day that is thousands of attempts of which nothing comes: no
node fits, and no pod of lower priority could make way. They are skipped; the backoff goes on as if
they had been made. For a group that might preempt, this is not found out in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Code
from kubesched.plugins.default_preemption import DefaultPreemption
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.victims import VictimSearch
from kubesched.queue.queued_group import QueuedGroup
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod
from kubesched.scheduler.engine import Engine
from kubesched.scheduler.group_checks import build_info
from kubesched.scheduler.group_cycle import GroupCycle

#: Plugins whose PostFilter is known to come to nothing if there are no victims.
_UNDERSTOOD: Final = frozenset({DefaultPreemption.name, DynamicResources.name})


class Futility:
    """Tells whether another attempt at a pod or group would be in vain."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cluster = engine.cluster
        #: of all pods that ever were on a node
        self._lowest = min(
            (pod.priority for pods in engine.cluster.table.pods for pod in pods.values()), default=0
        )
        self._victims = VictimSearch(engine.cluster)
        #: what was found for pods alike, while the cluster is as it was
        self._known: dict[Hashable, bool] = {}
        self._version: Hashable = None
        #: called when an attempt is skipped, which leaves something in the queue
        self.on_skip: Callable[[], None] = lambda: None

    def placed(self, priority: int) -> None:
        """Note the priority of a pod that gets a node."""
        self._lowest = min(self._lowest, priority)

    def __call__(self, entity: QueuedEntity) -> bool:
        """Tell whether an attempt would be in vain; in doubt it would not."""
        framework = self._engine.frameworks.get(entity.scheduler_name)
        if framework is None:
            return False
        if isinstance(entity, QueuedGroup):
            may_preempt = entity.priority > self._lowest
            is_futile = not may_preempt and self._is_futile_for_group(framework, entity)
        elif isinstance(entity, QueuedPod) and self._may_be_futile(entity):
            is_futile = self._is_futile_for_pod(framework, entity.info)
        else:
            return False
        if is_futile:
            self.on_skip()
        return is_futile

    def _may_be_futile(self, pod: QueuedPod) -> bool:
        """Tell whether nothing but the filters decides about a pod."""
        claims = self._cluster.devices.claims.of_pod(pod.info.pod)
        is_settled = any(claim.status.allocation is not None for claim in claims)
        return pod.was_rejected and not pod.awaits_victims and not is_settled

    def _is_futile_for_pod(self, framework: Framework, pod: PodInfo) -> bool:
        if pod.pod.spec.volumes or pod.pod.spec.resource_claims:
            return self._fits_nowhere(framework, pod)
        version = self._cluster.version
        if version != self._version:
            self._version, self._known = version, {}
        alike = framework.scheduler_name, pod.signature, pod.labels, pod.priority
        known = self._known.get(alike)
        if known is None:
            known = self._known[alike] = self._fits_nowhere(framework, pod)
        return known

    def _fits_nowhere(self, framework: Framework, pod: PodInfo) -> bool:
        """Tell whether no node fits, and none would if pods of lower priority made way."""
        evaluator, state = framework.evaluator, CycleState()
        try:
            found = evaluator.look(state, pod)
            return isinstance(found, Diagnosis) and not self._may_preempt(
                framework, state, pod, found
            )
        except AttemptError:
            return False

    def _may_preempt(
        self, framework: Framework, state: CycleState, pod: PodInfo, found: Diagnosis
    ) -> bool:
        """Tell whether an attempt might find victims; in doubt it might."""
        if pod.priority <= self._lowest or pod.pod.spec.preemption_policy == "Never":
            return False
        if {each.name for each in framework.plugins.post_filter} - _UNDERSTOOD:
            return True
        rows = found.rows_with(Code.UNSCHEDULABLE)
        if not len(rows) or found.pre_filter is not None:
            return bool(len(rows))
        search = self._victims.search(framework.evaluator, state, pod, rows, enough=1)
        return bool(search.candidates)

    def _is_futile_for_group(self, framework: Framework, group: QueuedGroup) -> bool:
        forest, gates = self._engine.forest, self._engine.gates
        root = build_info(forest, group)
        if root is None or not root.pods:
            return False
        cycle = GroupCycle(
            self._cluster,
            self._engine.cycle,
            with_placements=gates.enabled("TopologyAwareWorkloadScheduling"),
            with_composites=gates.enabled("CompositePodGroup"),
        )
        chooser = self._engine.cycle
        before, start = chooser.rng.getstate(), chooser.sampler.start
        results = cycle.run(framework, root, CycleState())
        chooser.rng.setstate(before)
        chooser.sampler.start = start
        return results[root.key].status.rejected
