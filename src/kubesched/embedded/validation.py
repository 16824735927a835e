"""Validation of common parts: metadata, labels, selectors, taints, amounts.

Functions return errors in kube-apiserver's order and words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubesched.api import quantity
from kubesched.embedded import formats
from kubesched.embedded.refusals import (
    FieldError,
    duplicate,
    not_allowed,
    not_supported,
    not_valid,
    required,
    too_long,
)
from kubesched.embedded.resources import ServedResource

JsonObject = dict[str, Any]
Errors = list[FieldError]

_ANNOTATION_BYTES: Final = 256 * 1024
_TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_INTEGER_RESOURCES: Final = frozenset({"pods"})
_MILLI_PER_UNIT: Final = 1000

#: Kinds whose names are DNS labels; all others are subdomains.
_LABEL_NAMED: Final = frozenset({"Namespace"})
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
IMMUTABLE: Final = "field is immutable"


def complaints(field: str, value: str, check: Callable[[str], Iterable[str]]) -> Errors:
    """Return an error for each complaint about a text."""
    return [not_valid(field, value, complaint) for complaint in check(value)]


# ---------------------------------------------------------------- metadata


def metadata_errors(resource: ServedResource, meta: JsonObject) -> Errors:
    """Validate the metadata of an object that is created."""
    check_name = formats.dns_label if resource.kind in _LABEL_NAMED else formats.dns_subdomain
    if name := meta.get("name"):
        errors = complaints("metadata.name", name, check_name)
    else:
        errors = [required("metadata.name", "name or generateName is required")]
    return errors + common_metadata_errors(meta)


def common_metadata_errors(meta: JsonObject) -> Errors:
    """Validate what may be in metadata besides the name."""
    errors: Errors = []
    if labels := meta.get("labels"):
        errors += label_errors("metadata.labels", labels)
    if annotations := meta.get("annotations"):
        errors += _annotation_errors(annotations)
    if owners := meta.get("ownerReferences"):
        errors += _owner_errors(owners)
    for index, finalizer in enumerate(meta.get("finalizers") or ()):
        errors += _finalizer_errors(f"metadata.finalizers[{index}]", finalizer)
    return errors


def _finalizer_errors(field: str, finalizer: str) -> Errors:
    errors = complaints(field, finalizer, formats.qualified_name)
    if not errors and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(not_valid(field, finalizer, detail))
    return errors


def metadata_update_errors(new: JsonObject, old: JsonObject) -> Errors:
    """Validate changed metadata against what it was."""
    errors: Errors = []
    if old.get("deletionTimestamp"):
        extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if extra:
            shown = ", ".join(f'"{finalizer}"' for finalizer in extra)
            errors.append(
                not_allowed(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, "
                    f"found new finalizers []string{{{shown}}}",
                )
            )
    for name in ("name", "namespace", "uid"):
        if new.get(name, "") != old.get(name, ""):
            errors.append(not_valid(f"metadata.{name}", new.get(name, ""), IMMUTABLE))
    return errors + common_metadata_errors(new)


def label_errors(field: str, labels: Mapping[str, str]) -> Errors:
    """Validate labels, or a map that is matched with labels."""
    errors: Errors = []
    for key, value in labels.items():
        # Nearly all labels are valid: check before building lists of errors.
        if formats.qualified_name(key) or formats.label_value(value):
            errors += complaints(field, key, formats.qualified_name)
            errors += complaints(field, value, formats.label_value)
    return errors


def _annotation_errors(annotations: Mapping[str, str]) -> Errors:
    errors: Errors = []
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        found = formats.qualified_name(key.lower())
        errors += [not_valid("metadata.annotations", key, complaint) for complaint in found]
    if size > _ANNOTATION_BYTES:
        errors.append(too_long("metadata.annotations", _ANNOTATION_BYTES))
    return errors


def _owner_errors(owners: list[JsonObject]) -> Errors:
    field = "metadata.ownerReferences"
    errors: Errors = []
    controllers = [owner for owner in owners if owner.get("controller")]
    for owner in owners:
        for name, complaint in (
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ):
            if not owner.get(name):
                errors.append(not_valid(f"{field}.{name}", owner.get(name, ""), complaint))
    if len(controllers) > 1:
        first, second = (f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers[:2])
        errors.append(
            not_valid(
                field,
                owners,
                'Only one reference can have Controller set to true. Found "true" in references '
                f"for {first} and {second}",
            )
        )
    return errors


# ---------------------------------------------------------------- selectors


def label_selector_errors(field: str, selector: JsonObject | None) -> Errors:
    """Validate a label selector."""
    if not selector:
        return []
    errors = label_errors(f"{field}.matchLabels", selector.get("matchLabels") or {})
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        errors += requirement_errors(f"{field}.matchExpressions[{index}]", expression)
    return errors


def requirement_errors(
    field: str, expression: JsonObject, *, numeric: bool = False, check_values: bool = True
) -> Errors:
    """Validate one expression; those of nodes may also compare numbers."""
    operator, values = expression.get("operator", ""), expression.get("values") or []
    errors: Errors = []
    if operator in {"In", "NotIn"}:
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            errors.append(required(f"{field}.values", detail))
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(not_allowed(f"{field}.values", detail))
    elif numeric and operator in {"Gt", "Lt"}:
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{field}.values", detail))
    else:
        errors.append(not_valid(f"{field}.operator", operator, "not a valid selector operator"))
    errors += complaints(f"{field}.key", expression.get("key", ""), formats.qualified_name)
    if check_values:
        for index, value in enumerate(values):
            errors += complaints(f"{field}.values[{index}]", value, formats.label_value)
    return errors


# ---------------------------------------------------------------- taints and amounts


def taint_errors(field: str, taints: Iterable[JsonObject]) -> Errors:
    """Validate the taints of a node."""
    errors: Errors = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path = f"{field}[{index}]"
        key, value, effect = (taint.get(name, "") for name in ("key", "value", "effect"))
        errors += complaints(f"{path}.key", key, formats.qualified_name)
        if found := formats.label_value(value):
            errors.append(not_valid(f"{path}.value", value, ";".join(found)))
        errors += effect_errors(f"{path}.effect", effect)
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            errors.append(duplicate(path, taint, detail))
        seen.add((key, effect))
    return errors


def effect_errors(field: str, effect: str) -> Errors:
    """Validate the effect of a taint, or of a toleration that names one."""
    if not effect:
        return [required(field)]
    if effect not in _TAINT_EFFECTS:
        return [not_supported(field, effect, _TAINT_EFFECTS)]
    return []


def amount_errors(field: str, resource_name: str, amount: str) -> Errors:
    """Validate an amount of a resource: not negative, and whole where it is counted."""
    nano = quantity.nano(amount)
    errors: Errors = []
    if nano < 0:
        errors.append(not_valid(field, amount, "must be greater than or equal to 0"))
    if is_counted(resource_name) and quantity.milli_of_nano(nano) % _MILLI_PER_UNIT:
        errors.append(not_valid(field, amount, "must be an integer"))
    return errors


def is_counted(resource_name: str) -> bool:
    """Tell whether a resource has whole units only."""
    return resource_name in _INTEGER_RESOURCES or is_extended(resource_name)


def is_extended(resource_name: str) -> bool:
    """Tell whether a resource is an extended one, with a valid name."""
    if is_native(resource_name) or resource_name.startswith("requests."):
        return False
    return not formats.qualified_name(f"requests.{resource_name}")


def is_native(resource_name: str) -> bool:
    """Tell whether a resource is Kubernetes' own."""
    return "/" not in resource_name or "kubernetes.io/" in resource_name
