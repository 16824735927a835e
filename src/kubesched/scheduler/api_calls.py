"""What the scheduler writes to the API server about pods: bindings and status."""

from __future__ import annotations

import asyncio

from kubesched.api import names
from kubesched.api.core import Pod, PodCondition
from kubesched.api.meta import ApiStruct, ObjectMeta
from kubesched.client import resources
from kubesched.client.rest import STRATEGIC_MERGE_PATCH, ApiClient
from kubesched.clock import Clock
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ApiError, ClientError, ConflictError, ConnectionFailedError
from kubesched.scheduler.timestamps import rfc3339

#: Pauses between the tries of a status patch.
RETRY_PAUSES_S = (0.01, 0.05, 0.25)


class BindingTarget(ApiStruct, frozen=True):
    """The node of a binding."""

    kind: str
    name: str


class Binding(ApiStruct, frozen=True):
    """What is posted to bind a pod."""

    kind: str
    api_version: str
    metadata: ObjectMeta
    target: BindingTarget


class ApiCalls:
    """The scheduler's writes."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Bind a pod to a node; the uid makes sure that it is this pod."""
        meta = pod.pod.metadata
        binding = Binding(
            kind="Binding",
            api_version="v1",
            metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid),
            target=BindingTarget(kind="Node", name=node_name),
        )
        path = resources.PODS.item(meta.name, namespace=meta.namespace, subresource="binding")
        await self._client.post(path, binding)

    async def nominate(self, pod: Pod, node_name: str) -> None:
        """Say where a pod is about to go."""
        if pod.status.nominated_node_name != node_name:
            await self._patch_status(pod, {"nominatedNodeName": node_name})

    async def report_unschedulable(
        self, pod: Pod, *, reason: str, message: str, nominated_node: str | None
    ) -> None:
        """Set the pod's PodScheduled condition to False, and its nomination, where they differ."""
        status: dict[str, object] = {}
        condition = self._changed_condition(pod, reason=reason, message=message)
        if condition is not None:
            status["conditions"] = [condition]
        if nominated_node is not None and nominated_node != pod.status.nominated_node_name:
            status["nominatedNodeName"] = nominated_node or None
        if status:
            await self._patch_status(pod, status)

    def _changed_condition(
        self, pod: Pod, *, reason: str, message: str
    ) -> dict[str, object] | None:
        known = next((c for c in pod.status.conditions if c.type == names.POD_SCHEDULED), None)
        wanted = PodCondition(
            type=names.POD_SCHEDULED,
            status="False",
            reason=reason,
            message=message,
            observed_generation=pod.metadata.generation,
            last_probe_time=known.last_probe_time if known else None,
            last_transition_time=(
                known.last_transition_time
                if known and known.status == "False"
                else rfc3339(self._clock.time())
            ),
        )
        if wanted == known:
            return None
        return {
            "type": wanted.type,
            "status": wanted.status,
            "reason": reason,
            "message": message,
            "observedGeneration": wanted.observed_generation,
            "lastProbeTime": wanted.last_probe_time,
            "lastTransitionTime": wanted.last_transition_time,
        }

    async def _patch_status(self, pod: Pod, status: dict[str, object]) -> None:
        meta = pod.metadata
        path = resources.PODS.item(meta.name, namespace=meta.namespace, subresource="status")
        body = {"metadata": {"uid": meta.uid}, "status": status}
        for pause_s in (*RETRY_PAUSES_S, None):
            try:
                await self._client.patch(path, body, content_type=STRATEGIC_MERGE_PATCH)
            except ClientError as failed:
                if pause_s is None or not _may_pass(failed):
                    raise
                await asyncio.sleep(pause_s)
            else:
                return


def _may_pass(failed: ClientError) -> bool:
    """Tell whether trying again soon may help."""
    if isinstance(failed, ApiError):
        return failed.code in (500, 503) or isinstance(failed, ConflictError)
    return isinstance(failed, ConnectionFailedError)
