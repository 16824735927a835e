"""Validation of where a pod may run: tolerations, gates, affinity, topology spread.

The order and the words of the errors are kube-apiserver's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kubesched.embedded import formats
from kubesched.embedded.refusals import (
    duplicate,
    not_allowed,
    not_supported,
    not_valid,
    required,
)
from kubesched.embedded.validation import (
    Errors,
    complaints,
    effect_errors,
    label_selector_errors,
    requirement_errors,
)

JsonObject = dict[str, Any]

_SPREAD_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION_POLICIES: Final = ("Honor", "Ignore")


def toleration_errors(tolerations: Iterable[JsonObject]) -> Errors:
    """Validate tolerations."""
    errors: Errors = []
    for index, toleration in enumerate(tolerations):
        errors += _toleration_errors(f"spec.tolerations[{index}]", toleration)
    return errors


def _toleration_errors(path: str, toleration: JsonObject) -> Errors:
    key, operator, value, effect = (
        toleration.get(name) or "" for name in ("key", "operator", "value", "effect")
    )
    errors = complaints(f"{path}.key", key, formats.qualified_name) if key else []
    if not key and operator != "Exists":
        detail = (
            'operator must be Exists when `key` is empty, which means "match all values and '
            'all keys"'
        )
        errors.append(not_valid(f"{path}.operator", operator, detail))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(not_valid(f"{path}.effect", effect, detail))
    if operator in {"Equal", ""}:
        if found := formats.label_value(value):
            errors.append(not_valid(f"{path}.operator", value, ";".join(found)))
    elif operator == "Exists":
        if value:
            detail = "value must be empty when `operator` is 'Exists'"
            errors.append(not_valid(f"{path}.operator", value, detail))
    elif operator in {"Lt", "Gt"}:
        choices = ("Equal", "Exists", "Lt", "Gt")
        errors.append(not_supported(f"{path}.operator", operator, choices))
    else:
        errors.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect:
        errors += effect_errors(f"{path}.effect", effect)
    return errors


def gate_errors(gates: Iterable[JsonObject]) -> Errors:
    """Validate scheduling gates."""
    errors: Errors = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name, field = gate.get("name", ""), f"spec.schedulingGates[{index}]"
        errors += complaints(field, name, formats.qualified_name)
        if name in seen:
            errors.append(duplicate(field, name))
        seen.add(name)
    return errors


def affinity_errors(affinity: JsonObject) -> Errors:
    """Validate affinity to nodes and to pods."""
    errors: Errors = []
    if node := affinity.get("nodeAffinity"):
        errors += _node_affinity_errors("spec.affinity.nodeAffinity", node)
    for name in ("podAffinity", "podAntiAffinity"):
        if pod := affinity.get(name):
            errors += _pod_affinity_errors(f"spec.affinity.{name}", pod)
    return errors


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _node_affinity_errors(path: str, affinity: JsonObject) -> Errors:
    errors: Errors = []
    needed = affinity.get(_REQUIRED)
    if needed is not None:
        field = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        terms = needed.get("nodeSelectorTerms") or []
        if not terms:
            errors.append(required(field, "must have at least one node selector term"))
        for index, term in enumerate(terms):
            errors += _node_term_errors(f"{field}[{index}]", term, check_values=True)
    for index, wish in enumerate(affinity.get(_PREFERRED) or ()):
        field = f"{path}.{_PREFERRED}[{index}]"
        errors += _weight_errors(field, wish)
        preference = wish.get("preference") or {}
        errors += _node_term_errors(f"{field}.preference", preference, check_values=False)
    return errors


def _weight_errors(field: str, wish: JsonObject) -> Errors:
    weight = wish.get("weight") or 0
    if 1 <= weight <= 100:
        return []
    return [not_valid(f"{field}.weight", weight, "must be in the range 1-100")]


def _node_term_errors(path: str, term: JsonObject, *, check_values: bool) -> Errors:
    errors: Errors = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        field = f"{path}.matchExpressions[{index}]"
        errors += requirement_errors(field, expression, numeric=True, check_values=check_values)
    for index, expression in enumerate(term.get("matchFields") or ()):
        errors += _node_field_errors(f"{path}.matchFields[{index}]", expression)
    return errors


def _node_field_errors(path: str, expression: JsonObject) -> Errors:
    errors: Errors = []
    values = expression.get("values") or []
    if expression.get("operator") not in {"In", "NotIn"}:
        detail = "not a valid selector operator"
        errors.append(not_valid(f"{path}.operator", expression.get("operator", ""), detail))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", detail))
    if expression.get("key") != "metadata.name":
        detail = "not a valid field selector key"
        errors.append(not_valid(f"{path}.key", expression.get("key", ""), detail))
    else:
        for index, value in enumerate(values):
            errors += complaints(f"{path}.values[{index}]", value, formats.dns_subdomain)
    return errors


def _pod_affinity_errors(path: str, affinity: JsonObject) -> Errors:
    errors: Errors = []
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        errors += _pod_term_errors(f"{path}.{_REQUIRED}[{index}]", term)
    for index, wish in enumerate(affinity.get(_PREFERRED) or ()):
        field = f"{path}.{_PREFERRED}[{index}]"
        errors += _weight_errors(field, wish)
        errors += _pod_term_errors(f"{field}.podAffinityTerm", wish.get("podAffinityTerm") or {})
    return errors


def _pod_term_errors(path: str, term: JsonObject) -> Errors:
    errors = label_selector_errors(f"{path}.labelSelector", term.get("labelSelector"))
    errors += label_selector_errors(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for name in term.get("namespaces") or ():
        errors += complaints(f"{path}.namespace", name, formats.dns_label)
    errors += _label_key_errors(path, term)
    topology_key = term.get("topologyKey", "")
    if not topology_key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + complaints(f"{path}.topologyKey", topology_key, formats.qualified_name)


def _label_key_errors(path: str, term: JsonObject) -> Errors:
    """Validate matchLabelKeys and mismatchLabelKeys, once they are in the selector."""
    errors: Errors = []
    keys = {name: term.get(name) or [] for name in ("matchLabelKeys", "mismatchLabelKeys")}
    selector = term.get("labelSelector")
    for name, values in keys.items():
        if values and selector is None:
            detail = "must not be specified when labelSelector is not set"
            errors.append(not_allowed(f"{path}.{name}", detail))
            continue
        for index, key in enumerate(values):
            errors += complaints(f"{path}.{name}[{index}]", key, formats.qualified_name)
    selected = set((selector or {}).get("matchLabels") or ())
    for expression in (selector or {}).get("matchExpressions") or ():
        # matchLabelKeys adds a key to the selector once; twice means the user had it there, too.
        key = expression.get("key")
        if key in selected and key in keys["matchLabelKeys"]:
            index = keys["matchLabelKeys"].index(key)
            detail = "exists in both matchLabelKeys and labelSelector"
            errors.append(not_valid(f"{path}[{index}]", key, detail))
        selected.add(key)
    for index, key in enumerate(keys["matchLabelKeys"]):
        if key in keys["mismatchLabelKeys"]:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(not_valid(f"{path}.matchLabelKeys[{index}]", key, detail))
    return errors


def spread_errors(constraints: list[JsonObject]) -> Errors:
    """Validate topology spread constraints."""
    errors: Errors = []
    for index, constraint in enumerate(constraints):
        path = f"spec.topologySpreadConstraints[{index}]"
        skew = constraint.get("maxSkew") or 0
        if skew <= 0:
            errors.append(not_valid(f"{path}.maxSkew", skew, "must be greater than zero"))
        if not constraint.get("topologyKey"):
            errors.append(required(f"{path}.topologyKey", "can not be empty"))
        action = constraint.get("whenUnsatisfiable", "")
        if action not in _SPREAD_ACTIONS:
            errors.append(not_supported(f"{path}.whenUnsatisfiable", action, _SPREAD_ACTIONS))
        errors += _repeated_errors(path, constraint, constraints[index + 1 :])
        errors += _min_domains_errors(f"{path}.minDomains", constraint, action)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(name)
            if policy is not None and policy not in _INCLUSION_POLICIES:
                errors.append(not_supported(f"{path}.{name}", policy, _INCLUSION_POLICIES))
        errors += _label_key_errors(path, constraint)
        errors += label_selector_errors(f"{path}.labelSelector", constraint.get("labelSelector"))
    return errors


def _repeated_errors(path: str, constraint: JsonObject, rest: list[JsonObject]) -> Errors:
    def identity(of: JsonObject) -> tuple[object, object]:
        return of.get("topologyKey"), of.get("whenUnsatisfiable")

    if not any(identity(other) == identity(constraint) for other in rest):
        return []
    shown = "{{{}, {}}}".format(*identity(constraint))
    return [duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", shown)]


def _min_domains_errors(field: str, constraint: JsonObject, action: str) -> Errors:
    domains = constraint.get("minDomains")
    if domains is None:
        return []
    errors: Errors = []
    if domains <= 0:
        errors.append(not_valid(field, domains, "must be greater than zero"))
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.append(not_valid(field, domains, detail))
    return errors
