"""Handles failed attempts: requeues the pod, and reports why it has no node."""

from __future__ import annotations

from kubesched import logs
from kubesched.api.core import Pod
from kubesched.api.requests import is_resize_deferred
from kubesched.errors import ObjectError
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Status, error
from kubesched.queue.queued_pod import QueuedPod
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.reports import StatusReports
from kubesched.scheduler.state import SchedulerState

_log = logs.get_logger(__name__)


class FailureHandler:
    """Requeues pods, and reports failures as conditions and events."""

    def __init__(
        self,
        outside: Outside,
        state: SchedulerState,
        *,
        reports: StatusReports,
        attempts: Attempts,
    ) -> None:
        self._recorders = outside.recorders
        #: returns the newest version of a pod, by namespace and name
        self._find_pod = outside.find_pod
        self._cluster = state.cluster
        self._queue = state.queue
        self._nominations = state.nominations
        self._reports = reports
        self._attempts = attempts
        #: false while another replica is the leader: that one reports
        self._is_our_turn = False
        #: uid → pod and its problem, to be reported when this replica is elected
        self._refused_early: dict[str, tuple[Pod, ObjectError]] = {}

    def handle(
        self,
        framework: Framework,
        pod: QueuedPod,
        status: Status,
        *,
        diagnosis: Diagnosis | None = None,
        nominated_node: str | None,
    ) -> None:
        """Requeue the pod and report the failure."""
        self._attempts.failed(framework.scheduler_name, pod, status)
        self._note_rejectors(pod, status, diagnosis)
        if not status.rejected:
            _log.error("Error scheduling pod; retrying", status.message, pod=pod.info.full_name)
        else:
            what = "Unable to schedule pod; no fit; waiting"
            if not len(self._cluster.table):
                what = "Unable to schedule pod; no nodes are registered to the cluster; waiting"
            elif diagnosis is None and self._cluster.groups.of(pod.info.pod) is not None:
                what = "Unable to schedule pod belonging to a pod group; waiting"
            _log.v(2, what, pod=pod.info.full_name, err=status.message)
        if nominated_node is not None:
            pod.awaits_victims = bool(nominated_node)
        newest = self._requeue(pod)
        if newest is None or pod.info.signature.is_resize:
            return  # a pod that waits for its resize has a node, and the kubelet reports on it
        self._nominate(pod, nominated_node)
        note = status.message
        self._recorders.warning(newest, reason="FailedScheduling", action="Scheduling", note=note)
        self._reports.submit(newest, status, nominated_node)

    def begin(self) -> None:
        """Report from now on: this replica was elected."""
        self._is_our_turn = True
        early, self._refused_early = self._refused_early, {}
        for pod, unreadable in early.values():
            newest = self._find_pod(pod.metadata.namespace, pod.metadata.name)
            if newest is not None and newest.metadata.uid == pod.metadata.uid:
                self.refuse(pod, unreadable)

    def refuse(self, pod: Pod, unreadable: ObjectError) -> None:
        """Report that a pod cannot be scheduled until it is changed."""
        if not self._is_our_turn:
            self._refused_early[pod.metadata.uid] = pod, unreadable
            return
        _log.warning("Pod cannot be scheduled", err=unreadable)
        status = error(str(unreadable))
        note = status.message
        self._recorders.warning(pod, reason="FailedScheduling", action="Scheduling", note=note)
        self._reports.submit(pod, status, None)

    def _note_rejectors(self, pod: QueuedPod, status: Status, diagnosis: Diagnosis | None) -> None:
        pod.unschedulable_plugins, pod.pending_plugins = set(), set()
        pod.filtered = diagnosis is not None
        if diagnosis is not None:
            pod.unschedulable_plugins |= diagnosis.unschedulable_plugins
            pod.pending_plugins |= diagnosis.pending_plugins
        elif status.rejected and status.plugin:
            pod.unschedulable_plugins.add(status.plugin)

    def _requeue(self, pod: QueuedPod) -> Pod | None:
        """Requeue the newest version of the pod; None if it was deleted, bound or replaced."""
        meta, is_resize = pod.info.pod.metadata, pod.info.signature.is_resize
        newest = self._find_pod(meta.namespace, meta.name)
        if newest is None or newest.metadata.uid != meta.uid or not _waits(newest, is_resize):
            _log.info("Pod is gone or bound, not trying it again", pod=pod.info.full_name)
            self._queue.done(meta.uid)
            return None
        compiler = self._cluster.compiler
        try:
            pod.info = compiler.resizing(newest) if is_resize else compiler.pending(newest)
        except ObjectError as unreadable:
            _log.warning("Keeping the version of a pod that can be read", err=unreadable)
        self._queue.requeue(pod)
        return newest

    def _nominate(self, pod: QueuedPod, nominated_node: str | None) -> None:
        if nominated_node:
            self._nominations.nominate(pod.info, nominated_node)
        elif nominated_node is not None:
            self._nominations.withdraw(pod.info.uid)


def _waits(pod: Pod, is_resize: bool) -> bool:
    """Tell whether a pod is still pending, or waits on its node for a resize."""
    return is_resize_deferred(pod) if is_resize else not pod.spec.node_name
