"""What a scheduler writes about victims, without searching for them: the limit of the API server.

    pod of a priority ──> pods of lower priority on its node ──> PATCH condition, DELETE, event

The requests are those of a scheduler, in number and in size. What it writes about the preemptors
themselves is left out: for each a condition with the nomination, and an event.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from datetime import UTC, datetime

from kubesched.bench.null_events import event_of
from kubesched.bench.pod_tracker import SeenPod
from kubesched.client.resources import EVENTS, PODS
from kubesched.client.rest import STRATEGIC_MERGE_PATCH, ApiClient

ASSIGNED = "spec.nodeName!="


class NullEvictions:
    """Evicts all pods of lower priority from the node that a pod goes to."""

    def __init__(self, client: ApiClient, *, events: bool) -> None:
        self._client = client
        self._events = events
        #: priority → the pods of lower priority, listed once when the first such pod comes
        self._lower: dict[int, asyncio.Task[defaultdict[str, list[SeenPod]]]] = {}

    async def make_room(self, pod: SeenPod, node_name: str) -> None:
        """Evict the victims of a pod on a node."""
        priority = pod.spec.priority
        if priority <= 0:
            return
        if priority not in self._lower:
            self._lower[priority] = asyncio.create_task(self._list(priority))
        lower = await self._lower[priority]
        await asyncio.gather(*(self._evict(pod, each) for each in lower.pop(node_name, ())))

    async def _list(self, priority: int) -> defaultdict[str, list[SeenPod]]:
        found: defaultdict[str, list[SeenPod]] = defaultdict(list)
        async for page in self._client.list_pages(
            PODS.collection(), SeenPod, field_selector=ASSIGNED
        ):
            for pod in page.items:
                if pod.spec.priority < priority:
                    found[pod.spec.node_name].append(pod)
        return found

    async def _evict(self, pod: SeenPod, victim: SeenPod) -> None:
        meta = victim.metadata
        path = PODS.item(meta.name, namespace=meta.namespace)
        status = {"conditions": [_disruption_target()]}
        body = {"metadata": {"uid": meta.uid}, "status": status}
        await self._client.patch(f"{path}/status", body, content_type=STRATEGIC_MERGE_PATCH)
        await self._client.delete(path, {"preconditions": {"uid": meta.uid}})
        if self._events:
            note = f"Preempted by pod {pod.metadata.uid} on node {victim.spec.node_name}"
            event = event_of(victim, reason="Preempted", action="Preempting", note=note)
            await self._client.post(EVENTS.collection(meta.namespace), event)


def _disruption_target() -> dict[str, str]:
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
