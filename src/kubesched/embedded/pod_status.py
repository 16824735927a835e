"""Statuses that a kubelet reports: of running and finished pods, and of their Jobs."""

from __future__ import annotations

from typing import Any, Final

from kubesched.api import names

JsonObject = dict[str, Any]

_RUNNING_CONDITIONS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
)
_OVER_AT_END: Final = frozenset({"Ready", "ContainersReady"})


def running_status(pod: JsonObject, *, address: str, host: str, now: str) -> JsonObject:
    """Return the status of a pod whose containers all run."""
    spec, before = pod["spec"], pod["status"]
    status: JsonObject = {
        "phase": "Running",
        "conditions": [
            *(_condition(kind, "True", now) for kind in _RUNNING_CONDITIONS),
            *(c for c in before.get("conditions") or () if c["type"] == names.POD_SCHEDULED),
        ],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "containerStatuses": [
            _container(container, pod, {"running": {"startedAt": now}}, is_ready=True)
            for container in spec["containers"]
        ],
        "qosClass": before["qosClass"],
    }
    if host:
        status["hostIP"] = host
        status["hostIPs"] = [{"ip": host}]
    if init := spec.get("initContainers"):
        done = _ended(now, now)
        status["initContainerStatuses"] = [_container(c, pod, done, is_ready=True) for c in init]
    for name in ("resourceClaimStatuses", "extendedResourceClaimStatus"):
        if name in before:
            status[name] = before[name]
    return status


def finished_status(pod: JsonObject, *, now: str) -> JsonObject:
    """Return the status of a pod whose containers have all finished."""
    before = pod["status"]
    start = before.get("startTime") or now
    return {
        **before,
        "phase": "Succeeded",
        "conditions": [
            _condition(c["type"], "False", now, reason="PodCompleted")
            if c["type"] in _OVER_AT_END
            else c
            for c in before.get("conditions") or ()
        ],
        "containerStatuses": [
            _container(container, pod, _ended(start, now), is_ready=False)
            for container in pod["spec"]["containers"]
        ],
    }


def job_status(job: JsonObject, *, started: bool, now: str) -> JsonObject:
    """Return the status of a Job after one of its pods started or finished."""
    status = dict(job.get("status") or {})
    status.setdefault("startTime", now)
    active, succeeded = status.get("active") or 0, status.get("succeeded") or 0
    if started:
        status["active"] = active + 1
        status["ready"] = status["active"]
        return status
    status["succeeded"] = succeeded + 1
    status["active"] = max(active - 1, 0)
    status["ready"] = status["active"]
    wanted = (job.get("spec") or {}).get("completions") or 1
    if status["succeeded"] >= wanted and "completionTime" not in status:
        status["completionTime"] = now
        status["conditions"] = [
            *(status.get("conditions") or ()),
            *(
                _condition(kind, "True", now, reason="CompletionsReached")
                for kind in ("SuccessCriteriaMet", "Complete")
            ),
        ]
    return status


def _condition(kind: str, state: str, now: str, *, reason: str = "") -> JsonObject:
    condition: JsonObject = {
        "type": kind,
        "status": state,
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    return {**condition, "reason": reason} if reason else condition


def _ended(start: str, end: str) -> JsonObject:
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": start, "finishedAt": end}
    return {"terminated": ended}


def _container(
    container: JsonObject, pod: JsonObject, state: JsonObject, *, is_ready: bool
) -> JsonObject:
    return {
        "name": container["name"],
        "state": state,
        "lastState": {},
        "ready": is_ready,
        "restartCount": 0,
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": f"kubesched://{pod['metadata']['uid']}/{container['name']}",
        "started": is_ready,
    }
