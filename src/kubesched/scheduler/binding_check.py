"""Checks directly before a binding whether the node still has room for the pod.

    assumed ──> permit, PreBind, a free connection: milliseconds to minutes ──> check ──> bind
                     others bind pods to the node, cordon it, taint it ─────────^

The decision counted on what the watch had shown. Other schedulers may have bound pods to the node
since, and the API server binds to a full node as well. The check runs the row-local filters again,
which read the node and its pods: on the cluster as it is known now (`CACHE`), or together with the
node's pods as the API server has them (`LIVE`). It makes a race less likely and cannot exclude it:
others may bind between the check and the binding.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.transaction import Transaction
from kubesched.errors import ClientError, ObjectError
from kubesched.framework.runtime import Framework
from kubesched.framework.status import SUCCESS, Status, error
from kubesched.metrics.label_values import CHECK_FAILED, FITS, REJECTED
from kubesched.metrics.recorder import Metrics
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.checked_state import CheckedState


class BindingCheck:
    """Evaluates the node of an assumed pod again."""

    def __init__(
        self, state: CheckedState, *, cluster: Cluster, api_calls: ApiCalls, metrics: Metrics
    ) -> None:
        self._state = state
        self._cluster = cluster
        self._api_calls = api_calls
        self._results = metrics.binding_checks

    async def check(self, framework: Framework, pod: PodInfo, node_name: str) -> Status:
        """Return success, or an error: what was assumed for the pod is then rolled back."""
        if self._state is CheckedState.NONE:
            return SUCCESS
        there: Sequence[Pod] = ()
        if self._state is CheckedState.LIVE:
            try:
                there = await self._api_calls.pods_on(node_name)
            except ClientError as failed:
                self._results.labels(CHECK_FAILED).inc()
                return error(f'reading the pods of node "{node_name}" before binding: {failed}')
        status = self._evaluate(framework, pod, node_name, there)
        self._results.labels(FITS if status.ok else REJECTED).inc()
        return status

    def _evaluate(
        self, framework: Framework, pod: PodInfo, node_name: str, there: Sequence[Pod]
    ) -> Status:
        row = self._cluster.table.row_of(node_name)
        if row is None:
            return error(f'node "{node_name}" was deleted before the pod was bound to it')
        with self._cluster.transaction() as tx:
            tx.remove(pod.uid)
            for other in there:
                if other.metadata.uid != pod.uid:
                    self._place(tx, other)
            rejection = framework.evaluator.row_local_status_on(pod, row)
        if rejection is None:
            return SUCCESS
        # An error, as if the binding had failed: other nodes may have room, and no event tells.
        return error(f'node "{node_name}" changed before the pod was bound: {rejection.message}')

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
