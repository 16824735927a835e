"""What the scheduler writes to the API server about pods: bindings and status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubesched.api import names
from kubesched.api.core import Pod, PodCondition
from kubesched.api.meta import ApiStruct, ObjectMeta
from kubesched.api.scheduling import GroupCondition, PodGroup
from kubesched.client import resources
from kubesched.client.rest import STRATEGIC_MERGE_PATCH, ApiClient
from kubesched.clock import Clock
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import (
    ApiError,
    ClientError,
    ConflictError,
    ConnectionFailedError,
    NotFoundError,
    RequestTimeoutError,
)
from kubesched.scheduler.timestamps import rfc3339

#: Pause between questions after a binding whose answer was lost.
QUESTION_PAUSE_S = 0.5
#: Pauses between the tries of a binding and of a status patch.
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
        """Bind a pod to a node; the uid makes sure that it is this pod.

        An API server that fails, or cannot be reached, is asked a few times. If an answer is lost,
        the binding may have been made: its room must not be given away before that is known.
        """
        meta = pod.pod.metadata
        binding = Binding(
            kind="Binding",
            api_version="v1",
            metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid),
            target=BindingTarget(kind="Node", name=node_name),
        )
        path = resources.PODS.item(meta.name, namespace=meta.namespace, subresource="binding")
        is_repeated = False
        for pause_s in (*RETRY_PAUSES_S, None):
            try:
                await self._client.post(path, binding)
            except ClientError as failed:
                # An earlier try may be what a later one is in conflict with.
                in_doubt = _answer_is_lost(failed) or (
                    is_repeated and isinstance(failed, ConflictError)
                )
                if in_doubt and await self._node_of(pod) == node_name:
                    return
                if pause_s is None or not _is_temporary(failed):
                    raise
                is_repeated = True
                await asyncio.sleep(pause_s)
            else:
                return

    async def _node_of(self, pod: PodInfo) -> str:
        """Return the node that a pod is bound to; waits until the API server can tell."""
        meta = pod.pod.metadata
        path = resources.PODS.item(meta.name, namespace=meta.namespace)
        while True:
            try:
                newest = await self._client.get(path, Pod)
            except NotFoundError:
                return ""
            except ClientError:
                await asyncio.sleep(QUESTION_PAUSE_S)
            else:
                return newest.spec.node_name if newest.metadata.uid == meta.uid else ""

    async def nominate(self, pod: Pod, node_name: str) -> None:
        """Say where a pod is about to go, or with "" that it no longer is."""
        if pod.status.nominated_node_name != node_name:
            await self._patch_status(pod, {"nominatedNodeName": node_name or None})

    async def mark_as_preempted(
        self,
        pod: Pod,
        *,
        by: str,
        preemptor: str = "pod",
        still_wanted: Callable[[], bool] | None = None,
    ) -> None:
        """Say in a pod's conditions that it must make room, on behalf of a scheduler.

        `preemptor` is the kind of what takes the room.

        `still_wanted` is asked right before the request leaves; WithdrawnError if it says no.
        """
        condition = self._changed_condition(
            pod,
            names.DISRUPTION_TARGET,
            status="True",
            reason=names.REASON_PREEMPTION_BY_SCHEDULER,
            message=f"{by}: preempting to accommodate a higher priority {preemptor}",
        )
        if condition is not None:
            await self._patch_status(pod, {"conditions": [condition]}, still_wanted)

    async def delete(self, pod: Pod, *, still_wanted: Callable[[], bool] | None = None) -> None:
        """Delete a pod, with the grace it asks for; the uid makes sure that it is this pod."""
        meta = pod.metadata
        await self._client.delete(
            resources.PODS.item(meta.name, namespace=meta.namespace),
            {"preconditions": {"uid": meta.uid}},
            still_wanted=still_wanted,
        )

    async def report_unschedulable(
        self, pod: Pod, *, reason: str, message: str, nominated_node: str | None
    ) -> None:
        """Set the pod's PodScheduled condition to False, and its nomination, where they differ."""
        status: dict[str, object] = {}
        condition = self._changed_condition(
            pod, names.POD_SCHEDULED, status="False", reason=reason, message=message
        )
        if condition is not None:
            status["conditions"] = [condition]
        if nominated_node is not None and nominated_node != pod.status.nominated_node_name:
            status["nominatedNodeName"] = nominated_node or None
        if status:
            await self._patch_status(pod, status)

    async def report_group(self, group: PodGroup, condition: GroupCondition) -> None:
        """Write a condition of a group."""
        meta = group.metadata
        path = resources.POD_GROUPS.item(meta.name, namespace=meta.namespace, subresource="status")
        written = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": condition.observed_generation,
            "lastTransitionTime": condition.last_transition_time,
        }
        await self._patch(path, meta.uid, {"conditions": [written]}, None)

    def _changed_condition(
        self, pod: Pod, kind: str, *, status: str, reason: str, message: str
    ) -> dict[str, object] | None:
        """Return a condition to write; None if the pod has it already."""
        known = next((each for each in pod.status.conditions if each.type == kind), None)
        wanted = PodCondition(
            type=kind,
            status=status,
            reason=reason,
            message=message,
            observed_generation=pod.metadata.generation,
            last_probe_time=known.last_probe_time if known else None,
            last_transition_time=(
                known.last_transition_time
                if known and known.status == status
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

    async def _patch_status(
        self,
        pod: Pod,
        status: dict[str, object],
        still_wanted: Callable[[], bool] | None = None,
    ) -> None:
        meta = pod.metadata
        path = resources.PODS.item(meta.name, namespace=meta.namespace, subresource="status")
        await self._patch(path, meta.uid, status, still_wanted)

    async def _patch(
        self,
        path: str,
        uid: str,
        status: dict[str, object],
        still_wanted: Callable[[], bool] | None,
    ) -> None:
        body = {"metadata": {"uid": uid}, "status": status}
        for pause_s in (*RETRY_PAUSES_S, None):
            try:
                await self._client.patch(
                    path, body, content_type=STRATEGIC_MERGE_PATCH, still_wanted=still_wanted
                )
            except ClientError as failed:
                may_pass = _is_temporary(failed) or isinstance(failed, ConflictError)
                if pause_s is None or not may_pass:
                    raise
                await asyncio.sleep(pause_s)
            else:
                return


def _is_temporary(failed: ClientError) -> bool:
    """Tell whether the API server, and not the request, is what failed."""
    if isinstance(failed, ApiError):
        return failed.code in (500, 503)
    return isinstance(failed, ConnectionFailedError)


def _answer_is_lost(failed: ClientError) -> bool:
    return isinstance(failed, (ConnectionFailedError, RequestTimeoutError))
