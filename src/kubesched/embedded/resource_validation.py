"""Validation of a container's resources: names, amounts, huge pages, claims.

Order and text of the errors are kube-apiserver's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kubesched.api import quantity
from kubesched.api.names import HUGEPAGES_PREFIX
from kubesched.embedded import formats
from kubesched.embedded.refusals import duplicate, not_allowed, not_there, not_valid, required
from kubesched.embedded.validation import Errors, amount_errors, complaints, is_native
from kubesched.errors import QuantityError

JsonObject = dict[str, Any]

_CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
#: Resources that are not for containers.
_OTHER_RESOURCES: Final = frozenset({"pods", "storage"})
_COMPUTE: Final = frozenset({"cpu", "memory"})


def resource_errors(path: str, resources: JsonObject, claims: set[str]) -> Errors:
    """Validate the resources of a container of a pod that has these claims."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    errors: Errors = []
    for name, amount in limits.items():
        errors += _amount_errors(f"{path}.limits[{name}]", name, amount)
    for name, amount in requests.items():
        errors += _amount_errors(f"{path}.requests[{name}]", name, amount)
        errors += _request_errors(path, name, amount, limits.get(name))
    named = limits.keys() | requests.keys()
    if any(name.startswith(HUGEPAGES_PREFIX) for name in named) and not named & _COMPUTE:
        errors.append(not_allowed(path, "HugePages require cpu or memory"))
    return errors + _claim_errors(f"{path}.claims", resources.get("claims") or (), claims)


def _amount_errors(field: str, name: str, amount: str) -> Errors:
    errors = _name_errors(field, name) + amount_errors(field, name, amount)
    if name.startswith(HUGEPAGES_PREFIX) and not _is_whole_pages(name, amount):
        detail = f"{amount} is not positive integer multiple of {name}"
        errors.append(not_valid(field, amount, detail))
    return errors


def _is_whole_pages(name: str, amount: str) -> bool:
    try:
        page = quantity.nano(name.removeprefix(HUGEPAGES_PREFIX))
    except QuantityError:
        return False
    size = quantity.value_of_nano(page)
    return page > 0 and quantity.value(amount) % size == 0


def _name_errors(field: str, name: str) -> Errors:
    if found := complaints(field, name, formats.qualified_name):
        return found
    if "/" in name:
        if not is_native(name) and name.startswith("requests."):
            return [not_valid(field, name, "doesn't follow extended resource name standard")]
        return []
    if name in _CONTAINER_RESOURCES or name.startswith(HUGEPAGES_PREFIX):
        return []
    errors: Errors = []
    if name not in _OTHER_RESOURCES:
        errors.append(not_valid(field, name, "must be a standard resource type or fully qualified"))
    return [*errors, not_valid(field, name, "must be a standard resource for containers")]


def _request_errors(path: str, name: str, amount: str, limit: str | None) -> Errors:
    overcommit = is_native(name) and not name.startswith(HUGEPAGES_PREFIX)
    if limit is None:
        if overcommit:
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    order = quantity.compare(amount, limit)
    if order != 0 and not overcommit:
        detail = f"must be equal to {name} limit of {limit}"
        return [not_valid(f"{path}.requests", amount, detail)]
    if order > 0:
        detail = f"must be less than or equal to {name} limit of {limit}"
        return [not_valid(f"{path}.requests", amount, detail)]
    return []


def _claim_errors(path: str, used: Iterable[JsonObject], claims: set[str]) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, claim in enumerate(used):
        field, name = f"{path}[{index}]", claim.get("name") or ""
        if not name:
            errors.append(required(field))
            continue
        key = f"{name}/{claim['request']}" if claim.get("request") else name
        if name in seen or key in seen:
            errors.append(duplicate(field, name if name in seen else key))
        elif key == name and any(other.startswith(f"{name}/") for other in seen):
            errors.append(duplicate(field, name))
        seen.add(key)
        if name not in claims:
            known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{known}"
            errors.append(not_there(field, name, detail))
    return errors
