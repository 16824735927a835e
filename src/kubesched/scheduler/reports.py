"""Writes the PodScheduled condition of failed pods, without delaying bindings.

A status patch is a request, and requests are rate-limited. Only a few reports are sent at a time,
so that bindings get their share; of several reports about one pod only the newest is sent; and a
report is compared with the pod as it is when it is sent, not when it failed.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kubesched import logs
from kubesched.api import names
from kubesched.api.core import Pod
from kubesched.errors import ClientError, NotFoundError
from kubesched.framework.status import Status
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.tasks import Tasks

_log = logs.get_logger(__name__)

#: Concurrent reports.
AT_ONCE = 4


class PodReport(Struct, frozen=True):
    """The condition to write to a pod."""

    namespace: str
    name: str
    status: Status
    #: node to nominate, "" to clear the nomination, None to keep it
    nominated_node: str | None


class StatusReports:
    """Queues and sends reports."""

    def __init__(self, api_calls: ApiCalls, find_pod: Callable[[str, str], Pod | None]) -> None:
        self._api_calls = api_calls
        #: returns the newest version of a pod, by namespace and name
        self._find_pod = find_pod
        #: uid → the newest report about a pod, oldest first
        self._waiting: dict[str, PodReport] = {}
        #: uids of pods that a report is being sent about
        self._sending: set[str] = set()
        self._tasks = Tasks()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._sending)

    def submit(self, pod: Pod, status: Status, nominated_node: str | None) -> None:
        """Queue a report."""
        meta = pod.metadata
        replaced = self._waiting.pop(meta.uid, None)
        if replaced is not None and nominated_node is None:
            nominated_node = replaced.nominated_node
        self._waiting[meta.uid] = PodReport(meta.namespace, meta.name, status, nominated_node)
        if len(self._tasks) < AT_ONCE:
            self._tasks.start(self._work())

    async def drain(self, timeout_s: float) -> None:
        """Send the queued reports for a limited time, then drop the rest."""
        await self._tasks.drain(timeout_s)

    async def _work(self) -> None:
        """Send reports until the queue is empty; never two about one pod concurrently."""
        while uid := next((each for each in self._waiting if each not in self._sending), None):
            report = self._waiting.pop(uid)
            self._sending.add(uid)
            try:
                await self._send(uid, report)
            finally:
                self._sending.discard(uid)

    async def _send(self, uid: str, report: PodReport) -> None:
        pod = self._find_pod(report.namespace, report.name)
        if pod is None or pod.metadata.uid != uid or pod.spec.node_name:
            return
        rejected = report.status.rejected
        reason = names.POD_REASON_UNSCHEDULABLE if rejected else names.POD_REASON_SCHEDULER_ERROR
        try:
            await self._api_calls.report_unschedulable(
                pod,
                reason=reason,
                message=report.status.message,
                nominated_node=report.nominated_node,
            )
        except NotFoundError:
            _log.v(3, "Pod is gone", pod=f"{report.namespace}/{report.name}")
        except ClientError as failed:
            where = f"{report.namespace}/{report.name}"
            _log.error("Error updating pod", failed, pod=where)
