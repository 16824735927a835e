"""Evaluates parked pods again in the background, to find those that no event woke.

A pod is parked until an event arrives that may help it, as decided by hints. A hint may be wrong or
missing: no plugin registers for labels of namespaces, for example. In kube-scheduler such a pod
waits for minutes. Here, filtering all nodes at once is cheap, so it is done within a small share of
the time. A pod that fits although no event woke it is made active, counted for the plugins that
had rejected it, and logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping

from kubesched import logs
from kubesched.cluster.cluster import Cluster
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.plugin_loading.watching import watches_of
from kubesched.queue.queued_pod import QueuedPod
from kubesched.queue.scheduling_queue import SchedulingQueue

_log, _bugs = logs.get_logger(__name__), logging.getLogger(__name__)

#: Period of the check. The budget is spent in short slices, so that decisions are not delayed.
PERIOD_S = 0.25
#: Period while no pod is parked: to wake an idle process up is what costs most.
IDLE_PERIOD_S = 1.0
#: A pod that was woken and then did not fit is not checked again for so long.
PAUSE_S = 60.0


class QueueCheck:
    """Finds parked pods that fit although no event woke them."""

    def __init__(
        self,
        queue: SchedulingQueue,
        cluster: Cluster,
        frameworks: Mapping[str, Framework],
        *,
        timer: Callable[[], float],
        share: float,
    ) -> None:
        self._queue = queue
        self._cluster = cluster
        self._timer = timer
        #: share of the time that the check may use; 0 disables it
        self._share = share
        self._frameworks = frameworks
        #: uids of the pods that this round has yet to check
        self._round: deque[str] = deque()
        #: the state of the cluster when the round began
        self._version: tuple[int, ...] = ()
        #: by how much the last step exceeded its budget
        self._debt_s = 0.0
        #: uid → when the check woke the pod
        self._woken: dict[str, float] = {}
        #: number of evaluations
        self.checked = 0
        #: plugin → pods that it had rejected and that fit although no event woke them
        self.missed: Counter[str] = Counter()

    async def run(self) -> None:
        """Check parked pods until cancelled, within the budget."""
        if self._share == 0.0:
            return
        while True:
            await asyncio.sleep(PERIOD_S if self._queue.unschedulable_count else IDLE_PERIOD_S)
            try:
                self.step(PERIOD_S * self._share)
            except Exception:  # noqa: BLE001 (a bug here must not end the scheduler)
                _bugs.exception("checking the queue failed unexpectedly")

    def step(self, budget_s: float) -> None:
        """Check parked pods until the budget is spent, or each was checked once."""
        if not self._round and self._version != self._cluster.version:
            # Without changes in the cluster, results stay the same.
            self._version = self._cluster.version
            self._begin_round()
        started = self._timer()
        deadline = started + budget_s - self._debt_s
        # Nothing changes during a step, so one evaluation serves all pods of the same kind. If
        # they fit, only one is woken: the next may not fit any more.
        asked: set[Hashable] = set()
        while self._round and self._timer() < deadline:
            pod = self._queue.unschedulable_pod(self._round.popleft())
            if pod is None or not self._is_repeatable(pod):
                continue
            kind = _kind(pod)
            if kind is None or kind not in asked:
                asked.add(kind)
                self._check(pod)
        self._debt_s = max(self._timer() - deadline, 0.0)

    def _begin_round(self) -> None:
        now = self._timer()
        self._woken = {uid: at for uid, at in self._woken.items() if now - at < PAUSE_S}
        waiting = (pod.info.uid for pod in self._queue.unschedulable_pods())
        self._round.extend(uid for uid in waiting if uid not in self._woken)

    def _is_repeatable(self, pod: QueuedPod) -> bool:
        """Return whether filters rejected the pod: only these are evaluated here."""
        return pod.filtered and pod.info.pod.spec.scheduler_name in self._frameworks

    def _check(self, pod: QueuedPod) -> None:
        framework = self._frameworks[pod.info.pod.spec.scheduler_name]
        self.checked += 1
        watches = watches_of(framework.plugins.instances.values())
        for watch in watches:
            watch.begin(pod.info)
        try:
            found = framework.evaluator.look(CycleState(), pod.info)
        except AttemptError:
            return
        finally:
            for watch in watches:
                watch.end()
        if isinstance(found, Diagnosis):
            return
        rejectors = sorted(pod.rejectors)
        self.missed.update(rejectors)
        _log.warning(
            "Pod fits but no event woke it, trying it now",
            pod=pod.info.full_name,
            rejectedBy=rejectors,
            feasibleNodes=len(found),
        )
        self._woken[pod.info.uid] = self._timer()
        self._queue.activate([pod.info.uid])


def _kind(pod: QueuedPod) -> Hashable:
    """Return a key that pods with the same result share; None if there is none."""
    info = pod.info
    spec, status = info.pod.spec, info.pod.status
    if spec.volumes or status.nominated_node_name:
        return None
    return spec.scheduler_name, info.signature, info.labels, info.priority
