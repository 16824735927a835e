"""Checks directly before a binding whether the node still has room for the pod.

    assumed ──> permit, PreBind, the client's rate limit: milliseconds to minutes ──> check, send
                     others bind pods to the node, cordon it, taint it ──────────────────^

The decision counted on what the watch had shown. Other schedulers may have bound pods to the node
since, and the API server binds to a full node as well. The check runs the row-local filters again,
which read the node and its pods, right before the request is sent: on the cluster as it is known by
then (`CACHE`), or together with the node's pods as the API server has them (`LIVE`). It makes races
less likely and cannot exclude them: others may bind between the check and the binding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.transaction import Transaction
from kubesched.errors import ClientError, ObjectError, WithdrawnError
from kubesched.framework.runtime import Framework
from kubesched.metrics.label_values import CHECK_FAILED, FITS, REJECTED
from kubesched.metrics.recorder import Metrics
from kubesched.scheduler.api_calls import ApiCalls


class CheckedBinder:
    """Binds pods whose node still has room for them; takes the place of `ApiCalls` in profiles."""

    def __init__(
        self,
        cluster: Cluster,
        api_calls: ApiCalls,
        metrics: Metrics,
        *,
        framework_of: Callable[[Pod], Framework | None],
        reads_live: bool,
    ) -> None:
        self._cluster = cluster
        self._api_calls = api_calls
        self._results = metrics.binding_checks
        self._framework_of = framework_of
        #: whether the node's pods are read from the API server
        self._reads_live = reads_live

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Bind the pod; raises ClientError if that fails, or if it does not fit any more.

        What was assumed for it is then rolled back, and it is tried again after its backoff: other
        nodes may have room, and no event tells of them.
        """
        there: Sequence[Pod] = ()
        if self._reads_live:
            try:
                there = await self._api_calls.pods_on(node_name)
            except ClientError as failed:
                self._results.labels(CHECK_FAILED).inc()
                text = f'reading the pods of node "{node_name}" before binding: {failed}'
                raise WithdrawnError(text) from None
        reason = ""

        def still_fits() -> bool:
            nonlocal reason
            reason = self._why_not(pod, node_name, there)
            self._results.labels(REJECTED if reason else FITS).inc()
            return not reason

        try:
            await self._api_calls.bind(pod, node_name, still_wanted=still_fits)
        except WithdrawnError:
            raise WithdrawnError(reason) from None

    def _why_not(self, pod: PodInfo, node_name: str, there: Sequence[Pod]) -> str:
        """Return why the pod does not fit any more, "" if it does."""
        framework, row = self._framework_of(pod.pod), self._cluster.table.row_of(node_name)
        if framework is None:
            return f'the profile "{pod.pod.spec.scheduler_name}" was removed'
        if row is None:
            return f'node "{node_name}" was deleted before the pod was bound to it'
        with self._cluster.transaction() as tx:
            tx.remove(pod.uid)
            for other in there:
                if other.metadata.uid != pod.uid:
                    self._place(tx, other)
            rejection = framework.evaluator.row_local_status_on(pod, row)
        if rejection is None:
            return ""
        return f'node "{node_name}" changed before the pod was bound: {rejection.message}'

    def _place(self, tx: Transaction, pod: Pod) -> None:
        """Count a pod of the node as the API server has it.

        Pods are never taken off: what the list does not have is assumed, or newer than the list.
        """
        uid, node_name = pod.metadata.uid, pod.spec.node_name
        known = self._cluster.pod(uid)
        if known is not None and self._cluster.node_of(uid) == node_name:
            versions = known.pod.metadata.resource_version, pod.metadata.resource_version
            if self._cluster.is_assumed(uid) or versions[0] == versions[1]:
                return
        try:
            info = self._cluster.compiler.placed(pod)
        except ObjectError:
            return  # its informer reports it
        tx.remove(uid)
        tx.place(info, node_name)
