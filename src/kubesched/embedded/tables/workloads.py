"""Cells of workloads: jobs, deployments and others."""

from __future__ import annotations

from typing import Any, Final

from kubesched.embedded.tables.text import (
    Age,
    format_labels,
    format_selector,
    human_duration,
    meta_age,
    spec_of,
    status_of,
)
from kubesched.embedded.times import parse_time

JsonObject = dict[str, Any]


_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job(job: JsonObject, age: Age) -> list[Any]:
    spec, status = spec_of(job), status_of(job)
    done, wanted = status.get("succeeded") or 0, spec.get("completions")
    completions = f"{done}/{wanted}" if wanted is not None else f"{done}/1"
    if wanted is None and (spec.get("parallelism") or 0) > 1:
        completions += f" of {spec['parallelism']}"
    start, end = status.get("startTime"), status.get("completionTime")
    duration = ""
    if start:
        duration = human_duration(parse_time(end) - parse_time(start)) if end else age(start)
    true = {c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"}
    deleted = bool(job["metadata"].get("deletionTimestamp"))
    states = [shown for kind, shown in _JOB_STATES if (kind in true if kind else deleted)]
    name = job["metadata"]["name"]
    head = [name, states[0] if states else "Running", completions, duration, meta_age(job, age)]
    return [*head, *_template(spec), format_selector(spec.get("selector"))]


def _template(spec: JsonObject) -> list[str]:
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    return [",".join(c.get(field, "") for c in containers) for field in ("name", "image")]


def _deployment(obj: JsonObject, age: Age) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    return [
        obj["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        meta_age(obj, age),
        *_template(spec),
        format_selector(spec.get("selector")),
    ]


def _replica_set(obj: JsonObject, age: Age) -> list[Any]:
    spec, status, selector = spec_of(obj), status_of(obj), spec_of(obj).get("selector")
    is_set = selector is None or "matchLabels" in selector or "matchExpressions" in selector
    return [
        obj["metadata"]["name"],
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        meta_age(obj, age),
        *_template(spec),
        format_selector(selector) if is_set else format_labels(selector),
    ]


def _stateful_set(obj: JsonObject, age: Age) -> list[Any]:
    ready = f"{status_of(obj).get('readyReplicas', 0)}/{spec_of(obj).get('replicas', 0)}"
    return [obj["metadata"]["name"], ready, meta_age(obj, age), *_template(spec_of(obj))]


_DAEMON_COUNTS: Final = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def _daemon_set(obj: JsonObject, age: Age) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    pod = (spec.get("template") or {}).get("spec") or {}
    return [
        obj["metadata"]["name"],
        *(status.get(name, 0) for name in _DAEMON_COUNTS),
        format_labels(pod.get("nodeSelector")),
        meta_age(obj, age),
        *_template(spec),
        format_selector(spec.get("selector")),
    ]


CELLS: Final = {
    "DaemonSet": _daemon_set,
    "Deployment": _deployment,
    "Job": _job,
    "ReplicaSet": _replica_set,
    "ReplicationController": _replica_set,
    "StatefulSet": _stateful_set,
}
