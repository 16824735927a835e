"""Cells of groups of pods."""

from __future__ import annotations

from typing import Any, Final

from kubesched.embedded.tables.text import Age, meta_age, spec_of, status_of

JsonObject = dict[str, Any]


def _pod_group(obj: JsonObject, age: Age) -> list[Any]:
    return [*_policy_and_workload(obj), _state(obj), meta_age(obj, age)]


def _composite(obj: JsonObject, age: Age) -> list[Any]:
    return [*_policy_and_workload(obj), meta_age(obj, age)]


def _policy_and_workload(obj: JsonObject) -> list[str]:
    spec = spec_of(obj)
    is_gang = (spec.get("schedulingPolicy") or {}).get("gang") is not None
    workload = (spec.get("workloadRef") or {}).get("workloadName", "<none>")
    return [obj["metadata"]["name"], "Gang" if is_gang else "Basic", workload]


def _state(obj: JsonObject) -> str:
    conditions = {each.get("type"): each for each in status_of(obj).get("conditions") or ()}
    if disrupted := conditions.get("DisruptionTarget"):
        return str(disrupted.get("reason", ""))
    scheduled = conditions.get("PodGroupInitiallyScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


CELLS: Final = {"CompositePodGroup": _composite, "PodGroup": _pod_group}
