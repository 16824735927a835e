"""The cells of ``kubectl get pods``.

The column Status is the phase, unless there is something more specific: a waiting or terminated
container, a running init container, a deletion, scheduling gates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kubesched.api import names
from kubesched.embedded.tables.text import Age

JsonObject = dict[str, Any]

_DONE: Final = frozenset({"Succeeded", "Failed"})


def pod_cells(pod: JsonObject, age: Age) -> list[Any]:
    """Return name, ready, status, restarts, age, IP, node, nominated node, readiness gates."""
    spec, status, meta = pod["spec"], pod.get("status") or {}, pod["metadata"]
    summary = _Summary(spec, status)
    reason = summary.reason
    if meta.get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in _DONE:
            reason = "Terminating"
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts = f"{restarts} ({age(summary.last_restart)} ago)"
    addresses = status.get("podIPs") or [{}]
    return [
        meta["name"],
        f"{summary.ready}/{summary.total}",
        reason,
        restarts,
        age(meta.get("creationTimestamp")),
        addresses[0].get("ip") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _readiness_gates(spec, status),
    ]


def pod_row_conditions(pod: JsonObject) -> list[JsonObject] | None:
    """Return the conditions of a finished pod's row, None for all others."""
    phase = (pod.get("status") or {}).get("phase")
    if phase not in _DONE:
        return None
    message = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


class _Summary:
    """The aggregated state of a pod's containers."""

    def __init__(self, spec: JsonObject, status: JsonObject) -> None:
        init = {container.get("name"): container for container in spec.get("initContainers") or ()}
        self._sidecars = {n for n, c in init.items() if c.get("restartPolicy") == "Always"}
        self.total = len(spec.get("containers") or ()) + len(self._sidecars)
        self.ready = 0
        self.restarts = 0
        self.last_restart = ""
        self.reason = _base_reason(status)
        starting = self._read_init(status.get("initContainerStatuses") or (), len(init))
        if not starting or _has_condition(status, "Initialized"):
            self._read_running(status)

    def _read_init(self, containers: Iterable[JsonObject], count: int) -> bool:
        """Add the init containers; return whether one is not done."""
        sidecar_restarts, sidecar_restart = 0, ""
        for index, container in enumerate(containers):
            self._count_restarts(container)
            is_sidecar = container.get("name") in self._sidecars
            if is_sidecar:
                sidecar_restarts += container.get("restartCount") or 0
                sidecar_restart = max(sidecar_restart, _last_end(container))
            state = container.get("state") or {}
            ended, waiting = state.get("terminated"), state.get("waiting") or {}
            if ended is not None and not ended.get("exitCode"):
                continue
            if is_sidecar and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            if ended is not None:
                self.reason = f"Init:{_end_reason(ended)}"
            elif waiting.get("reason") not in {None, "", "PodInitializing"}:
                self.reason = f"Init:{waiting['reason']}"
            else:
                self.reason = f"Init:{index}/{count}"
            return True
        self.restarts, self.last_restart = sidecar_restarts, sidecar_restart
        return False

    def _read_running(self, status: JsonObject) -> None:
        failure, running = "", False
        for container in reversed(status.get("containerStatuses") or ()):
            self._count_restarts(container)
            state = container.get("state") or {}
            ended, waiting = state.get("terminated"), state.get("waiting") or {}
            if waiting.get("reason"):
                self.reason = waiting["reason"]
            elif ended is not None:
                self.reason = _end_reason(ended)
                failure = self.reason if ended.get("exitCode") else failure
            elif container.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            if running:
                self.reason = "Running" if _has_condition(status, "Ready") else "NotReady"
            if failure and not (running and _has_condition(status, "Ready")):
                self.reason = failure

    def _count_restarts(self, container: JsonObject) -> None:
        self.restarts += container.get("restartCount") or 0
        self.last_restart = max(self.last_restart, _last_end(container))


def _base_reason(status: JsonObject) -> str:
    for condition in status.get("conditions") or ():
        is_scheduled = condition.get("type") == names.POD_SCHEDULED
        if is_scheduled and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


def _last_end(container: JsonObject) -> str:
    """Return when the container last terminated; timestamps of the API sort as text."""
    ended = (container.get("lastState") or {}).get("terminated") or {}
    return str(ended.get("finishedAt") or "")


def _end_reason(ended: JsonObject) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _has_condition(status: JsonObject, kind: str) -> bool:
    return any(
        condition.get("type") == kind and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )


def _readiness_gates(spec: JsonObject, status: JsonObject) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return "<none>"
    passed = sum(_has_condition(status, gate.get("conditionType", "")) for gate in gates)
    return f"{passed}/{len(gates)}"
