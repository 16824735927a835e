"""The scheduler's writes to the API server: bindings, status patches, deletions of victims."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from kubesched.api import names
from kubesched.api.core import Pod, PodCondition
from kubesched.api.meta import ApiStruct, ObjectMeta
from kubesched.api.scheduling import (
    CoscheduledGroup,
    CoscheduledGroupStatus,
    GroupCondition,
    PodGroup,
)
from kubesched.client import resources
from kubesched.client.rest import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiClient
from kubesched.clock import Clock
from kubesched.cluster.pod_groups import POD_GROUP_LABEL
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import (
    ApiError,
    ClientError,
    ConflictError,
    ConnectionFailedError,
    NotFoundError,
    RequestTimeoutError,
    WithdrawnError,
)
from kubesched.kinds import KINDS
from kubesched.scheduler.timestamps import rfc3339

#: Pause between reads of a pod after the response to its binding was lost.
QUESTION_PAUSE_S = 0.5
#: Pauses between retries of a binding and of a status patch.
RETRY_PAUSES_S = (0.01, 0.05, 0.25)


class BindingTarget(ApiStruct, frozen=True):
    """The node of a binding."""

    kind: str
    name: str


class Binding(ApiStruct, frozen=True):
    """The body of a request that binds a pod."""

    kind: str
    api_version: str
    metadata: ObjectMeta
    target: BindingTarget


class ApiCalls:
    """The scheduler's writes."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def bind(
        self,
        pod: PodInfo,
        node_name: str,
        *,
        still_wanted: Callable[[], bool] | None = None,
    ) -> None:
        """Bind a pod to a node; the uid in the request protects a pod of the same name.

        `still_wanted` is called right before the request is sent; WithdrawnError if it returns
        false, and the pod was not bound by an earlier attempt.

        Temporary failures are retried a few times. If a response is lost, the pod may be bound: its
        resources stay assumed until a read of the pod tells.
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
                await self._client.post(path, binding, still_wanted=still_wanted)
            except ClientError as failed:
                # The conflict, or what does not fit any more, may be an earlier request of ours.
                in_doubt = _answer_is_lost(failed) or (
                    is_repeated and isinstance(failed, (ConflictError, WithdrawnError))
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
        """Return the node that a pod is bound to; retries until the API server responds."""
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

    async def pods_on(self, node_name: str) -> list[Pod]:
        """Return the pods on a node that are not over, as they are now: a consistent read."""
        found: list[Pod] = []
        async for page in self._client.list_pages(
            resources.PODS.collection(),
            Pod,
            field_selector=f"spec.nodeName={node_name},{KINDS[Pod.__name__].field_selector}",
        ):
            found = [*([] if page.first else found), *page.items]
        return found

    async def nominate(self, pod: Pod, node_name: str) -> None:
        """Set the nominated node of a pod, or clear it with ""."""
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
        """Set the DisruptionTarget condition of a victim, on behalf of a scheduler.

        `preemptor` is the preemptor's kind, for the message.

        `still_wanted` is called right before the request is sent; WithdrawnError if it returns
        false.
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
        """Delete a pod with its own grace period; the uid protects a pod of the same name."""
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

    async def report_group_status(
        self, group: CoscheduledGroup, status: CoscheduledGroupStatus
    ) -> None:
        """Write the status of a group of scheduler-plugins."""
        meta = group.metadata
        path = resources.COSCHEDULED_GROUPS.item(
            meta.name, namespace=meta.namespace, subresource="status"
        )
        body = {"metadata": {"uid": meta.uid}, "status": msgspec.to_builtins(status)}
        await self._client.patch(path, body, content_type=MERGE_PATCH)

    async def pods_of_group(self, group: CoscheduledGroup) -> list[Pod]:
        """Return all pods of a group of scheduler-plugins, those that are over as well."""
        meta = group.metadata
        found: list[Pod] = []
        async for page in self._client.list_pages(
            resources.PODS.collection(namespace=meta.namespace),
            Pod,
            label_selector=f"{POD_GROUP_LABEL}={meta.name}",
        ):
            found = [*([] if page.first else found), *page.items]
        return found

    def _changed_condition(
        self, pod: Pod, kind: str, *, status: str, reason: str, message: str
    ) -> dict[str, object] | None:
        """Return the condition to write; None if the pod has it already."""
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
    """Return whether a retry may help: the API server failed, not the request."""
    if isinstance(failed, ApiError):
        return failed.code in (500, 503)
    return isinstance(failed, ConnectionFailedError)


def _answer_is_lost(failed: ClientError) -> bool:
    return isinstance(failed, (ConnectionFailedError, RequestTimeoutError))
