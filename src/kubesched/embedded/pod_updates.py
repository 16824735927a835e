"""Allowed changes of an existing pod, in spec and status.

A spec is nearly immutable: images, a shorter deadline, additional tolerations, removed gates; and
while it has gates, narrower node selectors.
"""

from __future__ import annotations

from typing import Any, Final

from kubesched.embedded import formats
from kubesched.embedded.refusals import not_allowed, not_valid, required
from kubesched.embedded.validation import IMMUTABLE, Errors, complaints

JsonObject = dict[str, Any]

_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def update_errors(new: JsonObject, old: JsonObject) -> Errors:
    """Validate a new spec against the old one; both have their defaults."""
    errors: Errors = []
    for group in ("containers", "initContainers"):
        before, after = old.get(group) or [], new.get(group) or []
        if len(before) != len(after):
            detail = "pod updates may not add or remove containers"
            return [*errors, not_allowed(f"spec.{group}", detail)]
        for index, container in enumerate(after):
            if not container.get("image"):
                errors.append(required(f"spec.{group}[{index}].image"))
    errors += _deadline_errors(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    errors += _toleration_errors(new.get("tolerations") or [], old.get("tolerations") or [])
    errors += _gate_errors(new.get("schedulingGates") or [], old.get("schedulingGates") or [])
    settled = _settled(new, old)
    if old.get("schedulingGates"):
        errors += _gated_errors(settled, old)
    if changed := sorted(name for name in {*settled, *old} if settled.get(name) != old.get(name)):
        # kube-apiserver appends a diff of its internal types; the field names serve as well.
        detail = f"pod updates may not change fields other than {_UPDATABLE}\n"
        errors.append(not_allowed("spec", detail + "".join(f"- {name}\n" for name in changed)))
    return errors


def _deadline_errors(new: int | None, old: int | None) -> Errors:
    field = "spec.activeDeadlineSeconds"
    if new is None:
        if old is None:
            return []
        return [not_valid(field, None, "must not update from a positive integer to nil value")]
    if not 0 <= new < 2**31:
        return [not_valid(field, new, "must be between 0 and 2147483647, inclusive")]
    if old is not None and old < new:
        return [not_valid(field, new, "must be less than or equal to previous value")]
    return []


def _toleration_errors(new: list[JsonObject], old: list[JsonObject]) -> Errors:
    def untimed(toleration: JsonObject) -> JsonObject:
        return {name: v for name, v in toleration.items() if name != "tolerationSeconds"}

    kept = [untimed(toleration) for toleration in new]
    if all(untimed(toleration) in kept for toleration in old):
        return []
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [not_allowed("spec.tolerations", detail)]


def _gate_errors(new: list[JsonObject], old: list[JsonObject]) -> Errors:
    known = {gate.get("name") for gate in old}
    return [
        not_allowed(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(new)
        if gate.get("name") not in known
    ]


def _settled(new: JsonObject, old: JsonObject) -> JsonObject:
    """Return the new spec with those fields reset that have their own rules."""
    settled = dict(new)
    for group in ("containers", "initContainers"):
        if group in new:
            settled[group] = [
                {**container, "image": before.get("image")}
                for container, before in zip(new[group], old.get(group) or [], strict=True)
            ]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        if name in old:
            settled[name] = old[name]
        else:
            settled.pop(name, None)
    grace = "terminationGracePeriodSeconds"
    if old.get(grace, 0) < 0 and new.get(grace) == 1:
        settled[grace] = old[grace]
    return settled


def _gated_errors(settled: JsonObject, old: JsonObject) -> Errors:
    """Validate what may be narrowed while the pod is gated; resets it in `settled`."""
    errors: Errors = []
    after, before = settled.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if any(after.get(key) != value for key, value in before.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(not_valid("spec.nodeSelector", after, detail))
    errors += _node_affinity_errors(_node_affinity(settled), _node_affinity(old))
    _restore(settled, old, "nodeSelector")
    affinity = {k: v for k, v in (settled.get("affinity") or {}).items() if k != "nodeAffinity"}
    if own := _node_affinity(old):
        affinity["nodeAffinity"] = own
    settled["affinity"] = affinity
    if not affinity and "affinity" not in old:
        del settled["affinity"]
    return errors


def _restore(settled: JsonObject, old: JsonObject, name: str) -> None:
    settled.pop(name, None)
    if name in old:
        settled[name] = old[name]


def _node_affinity(spec: JsonObject) -> JsonObject:
    return (spec.get("affinity") or {}).get("nodeAffinity") or {}


def _node_affinity_errors(new: JsonObject, old: JsonObject) -> Errors:
    field = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    before = (old.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    after = (new.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if not before:
        return []
    if len(before) != len(after):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [not_valid(field, after, detail)]
    return [
        not_valid(
            f"{field}[{index}]", term, "only additions are allowed (no mutations or deletions)"
        )
        for index, term in enumerate(after)
        if not _only_adds(term, before[index])
    ]


def _only_adds(new: JsonObject, old: JsonObject) -> bool:
    if not old.get("matchExpressions") and not old.get("matchFields"):
        return not new.get("matchExpressions") and not new.get("matchFields")
    return all(
        (new.get(name) or [])[: len(old.get(name) or [])] == (old.get(name) or [])
        for name in ("matchExpressions", "matchFields")
    )


# ---------------------------------------------------------------- status


def status_update_errors(new: JsonObject, old: JsonObject) -> Errors:
    """Validate a new status against the old one."""
    errors: Errors = []
    status, before = new["status"], old["status"]
    nominated = status.get("nominatedNodeName") or ""
    if nominated != (before.get("nominatedNodeName") or "") and nominated:
        field = "status.nominatedNodeName"
        errors += complaints(field, nominated, formats.dns_subdomain)
        if old["spec"].get("nodeName"):
            detail = "may not be set on pods that are already bound to a node"
            errors.append(not_allowed(field, detail))
    if status["qosClass"] != before["qosClass"]:
        errors.append(not_valid("status.qosClass", status["qosClass"], IMMUTABLE))
    if old["spec"].get("restartPolicy") != "Always":
        errors += _restart_errors(status, before, old["spec"]["restartPolicy"])
    return errors


def _restart_errors(status: JsonObject, before: JsonObject, policy: str) -> Errors:
    """Check that a terminated container stays so, unless it failed and is restarted."""
    running = {
        container.get("name")
        for container in status.get("containerStatuses") or ()
        if "terminated" not in (container.get("state") or {})
    }
    errors: Errors = []
    for index, container in enumerate(before.get("containerStatuses") or ()):
        ended = (container.get("state") or {}).get("terminated")
        if ended is None or container.get("name") not in running:
            continue
        if policy == "Never" or not ended.get("exitCode"):
            detail = "may not be transitioned to non-terminated state"
            errors.append(not_allowed(f"status.containerStatuses[{index}].state", detail))
    return errors
