"""A simulated kubelet for all nodes: nothing runs, but every status says so.

    pod bound          ── start_delay_s ──▶ Running
    pod of a Job       ── its run time  ──▶ Succeeded, and the Job counts it
    pod being deleted  ── its grace     ──▶ deleted
    node               ── heartbeat_s   ──▶ Ready again

Due actions are in one heap. ``observe_pod``, ``observe_node`` and ``tick`` do all the work, given
the time; ``run`` only waits. It writes to the store directly: no API rule restricts a kubelet's
reports.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kubesched.clock import Clock
from kubesched.embedded.deletion import ObjectDeletion
from kubesched.embedded.nodes import ready_condition
from kubesched.embedded.pod_status import finished_status, job_status, running_status
from kubesched.embedded.registry import Where
from kubesched.embedded.resources import JOBS, NODES, PODS, ServedResource
from kubesched.embedded.schemas import DeleteOptions
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.times import Timestamps
from kubesched.embedded.versions import ADDED, MODIFIED, Version, VersionChange
from kubesched.embedded.watching import WatchSelection

JsonObject = dict[str, Any]

#: Annotation: how long a pod runs, in seconds, if it is one that ends.
RUN_SECONDS: Final = "kubesched.io/run-seconds"
#: Pods' actions are aligned to multiples of the first, nodes' reports of the second.
_POD_GRID_S: Final = 0.01
_BEAT_GRID_S: Final = 0.25
#: Actions per turn of the loop, so that other tasks can run.
_BATCH: Final = 256
_DONE: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True)
class KubeletOptions:
    """Timing of the simulated kubelet."""

    #: from binding to running
    start_delay_s: float = 0.5
    #: how long a Job's pod runs, unless its annotation overrides it
    job_run_s: float = 5.0
    #: maximum grace of terminating pods
    grace_cap_s: float = 1.0
    #: interval of node heartbeats; None for never
    heartbeat_s: float | None = 10.0


class _Due(NamedTuple):
    moment: float
    #: ties are broken by age
    number: int
    act: Callable[[str, str], None]
    key: str
    uid: str


class Kubelet:
    """Reports the status of pods and nodes."""

    def __init__(
        self,
        store: VersionedStore,
        deletion: ObjectDeletion,
        times: Timestamps,
        options: KubeletOptions | None = None,
    ) -> None:
        self._store = store
        self._deletion = deletion
        self._times = times
        self._clock: Clock = times.clock
        self._options = options or KubeletOptions()
        self._heap: list[_Due] = []
        self._numbers = itertools.count()
        #: (uid, action) in the heap
        self._planned: set[tuple[str, str]] = set()
        #: missing node → pods bound to it
        self._without_node: dict[str, set[str]] = {}
        self._addresses = itertools.count(1)
        self._heartbeats = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------ waiting

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(NODES, self.observe_node, frozenset({ADDED})))
                kinds = frozenset({ADDED, MODIFIED})
                group.create_task(self._follow(PODS, self.observe_pod, kinds))
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def _follow(
        self, resource: ServedResource, observe: Callable[[Version], None], kinds: frozenset[str]
    ) -> None:
        while True:  # if its watch is cut off, it lists again
            await self._follow_once(resource, observe, kinds)

    async def _follow_once(
        self, resource: ServedResource, observe: Callable[[Version], None], kinds: frozenset[str]
    ) -> None:
        collection = self._store.collection(resource)
        watcher = self._store.watch(
            resource, WatchSelection(resource), _current, since=self._store.revision, kinds=kinds
        )
        try:
            for known in list(collection.versions()):
                observe(known)
            while not watcher.closed:
                self._arm()
                await watcher.wait()
                for version in watcher.take():
                    observe(version)
        finally:
            collection.unwatch(watcher)

    def _arm(self) -> None:
        """Set the timer for the next due action."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            delay = max(self._heap[0].moment - self._clock.monotonic(), 0)
            self._timer = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self.tick()
        self._arm()

    # ------------------------------------------------------------ deciding

    def observe_pod(self, pod: Version) -> None:
        """Schedule the next actions of a pod."""
        meta, spec, status = pod.obj["metadata"], pod.obj["spec"], pod.obj["status"]
        node = spec.get("nodeName")
        if not node:
            return
        if meta.get("deletionTimestamp"):
            grace_s = min(meta.get("deletionGracePeriodSeconds") or 0, self._options.grace_cap_s)
            self._plan(grace_s, "remove", self._remove, pod)
            return
        phase = status.get("phase")
        if self._store.get(NODES, node) is None:
            self._without_node.setdefault(node, set()).add(pod.key)
        elif phase == "Pending":
            self._plan(self._options.start_delay_s, "start", self._start, pod)
        elif phase == "Running" and (run_s := self._run_s(pod.obj)) is not None:
            self._plan(run_s, "finish", self._finish, pod)

    def observe_node(self, node: Version) -> None:
        """Start a node's heartbeat, and the pods bound to it before it existed."""
        if self._options.heartbeat_s is not None:
            known = (node.obj["metadata"]["uid"], "beat") in self._planned
            if not known:
                reported = _ready_place(node.obj) is not None
                self._plan(self._spread_s() if reported else 0, "beat", self._beat, node)
        for key in self._without_node.pop(node.key, ()):
            pod = self._store.get(PODS, key)
            if pod is not None:
                self.observe_pod(pod)

    def _run_s(self, pod: JsonObject) -> float | None:
        """Return how long a pod runs until it is done, None for ever."""
        if pod["spec"].get("restartPolicy") == "Always":
            return None
        text = (pod["metadata"].get("annotations") or {}).get(RUN_SECONDS)
        if text is not None:
            try:
                return max(float(text), 0.0)
            except ValueError:
                return None
        return self._options.job_run_s if _job_of(pod) is not None else None

    def _plan(
        self, delay_s: float, name: str, act: Callable[[str, str], None], version: Version
    ) -> None:
        uid = version.obj["metadata"]["uid"]
        if (uid, name) in self._planned:
            return
        self._planned.add((uid, name))

        def once(key: str, uid: str) -> None:
            self._planned.discard((uid, name))
            act(key, uid)

        # Actions of the same moment are done together: fewer wake-ups, fewer chunks to send.
        grid_s = _BEAT_GRID_S if name == "beat" else _POD_GRID_S
        moment = math.ceil((self._clock.monotonic() + delay_s) / grid_s) * grid_s
        due = _Due(moment, next(self._numbers), once, version.key, uid)
        heapq.heappush(self._heap, due)

    # ------------------------------------------------------------ acting

    def tick(self) -> None:
        """Run due actions, a limited number at a time."""
        now = self._clock.monotonic()
        for _ in range(_BATCH):
            if not self._heap or self._heap[0].moment > now:
                return
            due = heapq.heappop(self._heap)
            due.act(due.key, due.uid)

    def _current(self, resource: ServedResource, key: str, uid: str) -> Version | None:
        version = self._store.get(resource, key)
        if version is None or version.obj["metadata"]["uid"] != uid:
            return None
        return version

    def _start(self, key: str, uid: str) -> None:
        pod = self._current(PODS, key, uid)
        if pod is None or pod.obj["metadata"].get("deletionTimestamp"):
            return
        if pod.obj["status"].get("phase") != "Pending":
            return
        node = self._store.get(NODES, pod.obj["spec"]["nodeName"])
        host = _address(node.obj) if node is not None else ""
        number = next(self._addresses)
        address = f"10.{128 + number // 65536 % 64}.{number // 256 % 256}.{number % 256}"
        status = running_status(pod.obj, address=address, host=host, now=self._times.now())
        self._report(pod, status)
        self._count_job(pod.obj, started=True)

    def _finish(self, key: str, uid: str) -> None:
        pod = self._current(PODS, key, uid)
        if pod is None or pod.obj["status"].get("phase") != "Running":
            return
        self._report(pod, finished_status(pod.obj, now=self._times.now()))
        self._count_job(pod.obj, started=False)

    def _report(self, pod: Version, status: JsonObject) -> None:
        meta = dict(pod.obj["metadata"])
        self._store.replace(PODS, pod, {**pod.obj, "metadata": meta, "status": status})

    def _remove(self, key: str, uid: str) -> None:
        if self._current(PODS, key, uid) is not None:
            namespace, _, name = key.partition("/")
            where = Where(PODS, namespace, name)
            self._deletion.delete(where, DeleteOptions(grace_period_seconds=0))

    def _count_job(self, pod: JsonObject, *, started: bool) -> None:
        owner = _job_of(pod)
        if owner is None:
            return
        key = f"{pod['metadata']['namespace']}/{owner['name']}"
        job = self._current(JOBS, key, owner.get("uid", ""))
        if job is not None:
            status = job_status(job.obj, started=started, now=self._times.now())
            meta = dict(job.obj["metadata"])
            self._store.replace(JOBS, job, {**job.obj, "metadata": meta, "status": status})

    def _beat(self, key: str, uid: str) -> None:
        node, interval_s = self._current(NODES, key, uid), self._options.heartbeat_s
        if node is None or interval_s is None:
            return
        status = node.obj.get("status") or {}
        conditions, now = list(status.get("conditions") or ()), self._times.now()
        place = _ready_place(node.obj)
        next_s = interval_s if place is not None else self._spread_s()
        if place is None:
            conditions.append(ready_condition(now))
        elif conditions[place].get("status") == "True":
            conditions[place] = {**conditions[place], "lastHeartbeatTime": now}
        if conditions != status.get("conditions"):
            meta = dict(node.obj["metadata"])
            obj = {**node.obj, "metadata": meta, "status": {**status, "conditions": conditions}}
            node = self._store.replace(NODES, node, obj)
        self._plan(next_s, "beat", self._beat, node)

    def _spread_s(self) -> float:
        """Return a fraction of the interval; successive ones are spread evenly over it."""
        golden_ratio = 0.618034
        return (self._options.heartbeat_s or 0) * (next(self._heartbeats) * golden_ratio % 1.0)


def _current(_kind: str, change: VersionChange) -> Version:
    return change.current


def _job_of(pod: JsonObject) -> JsonObject | None:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("kind") == "Job"), None)


def _ready_place(node: JsonObject) -> int | None:
    """Return the index of a node's Ready condition."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return next((i for i, c in enumerate(conditions) if c.get("type") == "Ready"), None)


def _address(node: JsonObject) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((a["address"] for a in addresses if a.get("type") == "InternalIP"), "")
