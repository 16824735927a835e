"""Validation of pod groups and workloads; texts are kube-apiserver's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubesched.embedded import formats
from kubesched.embedded.refusals import (
    duplicate,
    not_supported,
    not_valid,
    required,
    too_many,
)
from kubesched.embedded.validation import IMMUTABLE, Errors, complaints

JsonObject = dict[str, Any]

_MOST_TEMPLATES: Final = 8
_HIGHEST_PRIORITY: Final = 1_000_000_000
_STATES: Final = ("False", "True", "Unknown")
_FIXED: Final = ("workloadRef", "disruptionMode", "priorityClassName", "priority")


def _group(obj: JsonObject) -> Errors:
    spec = obj["spec"]
    errors = _policy("spec.schedulingPolicy", spec.get("schedulingPolicy") or {})
    if spec.get("priority", 0) > _HIGHEST_PRIORITY:
        detail = f"must be less than or equal to {_HIGHEST_PRIORITY}"
        errors.append(not_valid("spec.priority", spec["priority"], detail))
    return errors


def _workload(obj: JsonObject) -> Errors:
    spec, field = obj["spec"], "spec.podGroupTemplates"
    templates = spec.get("podGroupTemplates") or ()
    if not templates and not spec.get("compositePodGroupTemplates"):
        detail = "must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`"
        return [not_valid("spec", "", detail)]
    if len(templates) > _MOST_TEMPLATES:
        return [too_many(field, len(templates), _MOST_TEMPLATES)]
    errors: Errors = []
    seen: set[str] = set()
    for index, template in enumerate(templates):
        path, name = f"{field}[{index}]", template.get("name", "")
        if name in seen:
            errors.append(duplicate(path, template))
        seen.add(name)
        if name:
            errors += complaints(f"{path}.name", name, formats.dns_label)
        else:
            errors.append(required(f"{path}.name"))
        errors += _policy(f"{path}.schedulingPolicy", template.get("schedulingPolicy") or {})
    return errors


def _policy(field: str, policy: JsonObject) -> Errors:
    given = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if not given:
        return [not_valid(field, "", "must specify one of: `basic`, `gang`")]
    if len(given) > 1:
        shown = f"{{{', '.join(given)}}}"
        return [not_valid(field, shown, "must specify exactly one of: `basic`, `gang`")]
    if given == ["basic"]:
        return []
    least, path = policy["gang"].get("minCount", 0), f"{field}.gang.minCount"
    if not least:
        return [required(path)]
    return [not_valid(path, least, "must be greater than or equal to 1")] if least < 1 else []


def _fixed_fields(obj: JsonObject, old: JsonObject) -> Errors:
    spec, before = obj["spec"], old["spec"]
    policy, policy_before = spec["schedulingPolicy"], before["schedulingPolicy"]
    errors: Errors = []
    if policy.get("basic") != policy_before.get("basic"):
        errors.append(not_valid("spec.schedulingPolicy.basic", None, IMMUTABLE))
    for detail, without, having in (
        ("field cannot be set once created", policy_before, policy),
        ("field cannot be cleared once set", policy, policy_before),
    ):
        if having.get("gang") is not None and without.get("gang") is None:
            errors.append(not_valid("spec.schedulingPolicy.gang", None, detail))
    errors += [
        not_valid(f"spec.{name}", None, IMMUTABLE)
        for name in _FIXED
        if spec.get(name) != before.get(name)
    ]
    return errors


def group_status_errors(obj: JsonObject) -> Errors:
    """Validate the conditions of a group."""
    errors: Errors = []
    for index, condition in enumerate(obj["status"].get("conditions") or ()):
        field = f"status.conditions[{index}]"
        if not condition.get("type"):
            errors.append(required(f"{field}.type"))
        if condition.get("status") not in _STATES:
            errors.append(not_supported(f"{field}.status", condition.get("status", ""), _STATES))
        errors += [
            required(f"{field}.{name}")
            for name in ("lastTransitionTime", "reason")
            if not condition.get(name)
        ]
    return errors


#: kind → what is wrong with an object that has its defaults
ERRORS: Final[Mapping[str, Callable[[JsonObject], Errors]]] = {
    "PodGroup": _group,
    "Workload": _workload,
}
#: kind → what is wrong with a change
UPDATE_ERRORS: Final[Mapping[str, Callable[[JsonObject, JsonObject], Errors]]] = {
    "PodGroup": _fixed_fields,
}
