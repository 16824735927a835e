"""Validation of claims, classes, slices and taint rules: what authors and drivers get wrong.

Texts are kube-apiserver's. Types were checked before (``schemas.check``), so fields can be read as
they are meant. Attributes, capacities and counters of devices are not validated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kubesched.cel import compile_selector
from kubesched.embedded import formats
from kubesched.embedded.refusals import (
    duplicate,
    not_allowed,
    not_supported,
    not_valid,
    required,
    too_long,
    too_many,
)
from kubesched.embedded.validation import IMMUTABLE, Errors, complaints
from kubesched.errors import CelError

JsonObject = dict[str, Any]
#: Validates one item, given its path.
_ItemRule = Callable[[str, JsonObject], Errors]

_MOST: Final = 32
_MOST_ALTERNATIVES: Final = 8
_MOST_DEVICES: Final = 128
_EXPRESSION_BYTES: Final = 10 * 1024
_MODES: Final = ("All", "ExactCount")
_TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_ONE_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


# ---------------------------------------------------------------- claims


def _claim(obj: JsonObject) -> Errors:
    return _claim_spec("spec", obj["spec"])


def _claim_template(obj: JsonObject) -> Errors:
    return _claim_spec("spec.spec", obj["spec"]["spec"])


def _claim_spec(field: str, spec: JsonObject) -> Errors:
    devices = spec.get("devices") or {}
    field = f"{field}.devices"
    errors = _named_items(f"{field}.requests", devices.get("requests") or (), _MOST, _request)
    known = set(_request_names(devices.get("requests") or ()))
    for index, constraint in enumerate(devices.get("constraints") or ()):
        errors += _constraint(f"{field}.constraints[{index}]", constraint, known)
    return errors


def _request_names(requests: Iterable[JsonObject]) -> Iterable[str]:
    for request in requests:
        name = request.get("name", "")
        yield name
        for alternative in request.get("firstAvailable") or ():
            yield f"{name}/{alternative.get('name', '')}"


def _request(field: str, request: JsonObject) -> Errors:
    errors = _label(f"{field}.name", request.get("name", ""))
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if exactly is not None and alternatives:
        errors.append(not_valid(field, None, f"{_ONE_REQUEST}, but multiple fields are set"))
    elif alternatives:
        path = f"{field}.firstAvailable"
        errors += _named_items(path, alternatives, _MOST_ALTERNATIVES, _alternative)
    elif exactly is not None:
        errors += _exactly(f"{field}.exactly", exactly)
    else:
        errors.append(required(field, _ONE_REQUEST))
    return errors


def _alternative(field: str, request: JsonObject) -> Errors:
    return _label(f"{field}.name", request.get("name", "")) + _exactly(field, request)


def _exactly(field: str, request: JsonObject) -> Errors:
    class_name = request.get("deviceClassName", "")
    errors = _subdomain(f"{field}.deviceClassName", class_name)
    errors += _selectors(f"{field}.selectors", request.get("selectors") or ())
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All" and count:
        detail = "must not be specified when allocationMode is 'All'"
        errors.append(not_valid(f"{field}.count", count, detail))
    elif mode == "ExactCount" and count <= 0:
        errors.append(not_valid(f"{field}.count", count, "must be greater than zero"))
    elif mode not in _MODES:
        errors.append(not_supported(f"{field}.allocationMode", mode, _MODES))
    return errors


def _selectors(field: str, selectors: Sequence[JsonObject]) -> Errors:
    if len(selectors) > _MOST:
        return [too_many(field, len(selectors), _MOST)]
    errors: Errors = []
    for index, selector in enumerate(selectors):
        path, cel = f"{field}[{index}].cel", selector.get("cel")
        if cel is None:
            errors.append(required(path))
            continue
        errors += _expression(f"{path}.expression", cel.get("expression", ""))
    return errors


def _expression(field: str, expression: str) -> Errors:
    if len(expression.encode()) > _EXPRESSION_BYTES:
        return [too_long(field, _EXPRESSION_BYTES)]
    try:
        compile_selector(expression)
    except CelError as error:
        return [not_valid(field, expression, str(error))]
    return []


def _constraint(field: str, constraint: JsonObject, known: set[str]) -> Errors:
    errors: Errors = []
    for index, name in enumerate(constraint.get("requests") or ()):
        if name not in known:
            errors.append(not_valid(f"{field}.requests[{index}]", name, _NO_REQUEST))
    if not constraint.get("matchAttribute") and not constraint.get("distinctAttribute"):
        detail = (
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple '
            "fields are set"
        )
        errors.append(required(field, detail))
    return errors


def claim_status_errors(obj: JsonObject, old: JsonObject) -> Errors:
    """Validate a claim's status: who uses it, and that its allocation only comes and goes."""
    status, before = obj["status"], (old.get("status") or {})
    errors: Errors = []
    seen: set[str] = set()
    for index, user in enumerate(status.get("reservedFor") or ()):
        field = f"status.reservedFor[{index}]"
        errors += [
            required(f"{field}.{name}")
            for name in ("resource", "name", "uid")
            if not user.get(name)
        ]
        uid = user.get("uid", "")
        if uid in seen:
            errors.append(duplicate(field, user))
        seen.add(uid)
    if status.get("reservedFor") and status.get("allocation") is None:
        detail = "may not be specified when `allocated` is not set"
        errors.append(not_allowed("status.reservedFor", detail))
    kept, allocation = before.get("allocation"), status.get("allocation")
    if kept is not None and allocation is not None and kept != allocation:
        errors.append(not_valid("status.allocation", None, "field cannot be modified once set"))
    elif kept is None and allocation is not None:
        known = set(_request_names(obj["spec"]["devices"].get("requests") or ()))
        for index, result in enumerate((allocation.get("devices") or {}).get("results") or ()):
            if (name := result.get("request", "")) not in known:
                field = f"status.allocation.devices.results[{index}].request"
                errors.append(not_valid(field, name, _NO_REQUEST))
    return errors


# ---------------------------------------------------------------- classes, slices, taint rules


def _device_class(obj: JsonObject) -> Errors:
    return _selectors("spec.selectors", obj["spec"].get("selectors") or ())


def _slice(obj: JsonObject) -> Errors:
    spec = obj["spec"]
    errors = _subdomain("spec.driver", spec.get("driver", ""))
    errors += _pool("spec.pool", spec.get("pool") or {})
    places = {
        "nodeName": bool(spec.get("nodeName")),
        "nodeSelector": spec.get("nodeSelector") is not None,
        "allNodes": bool(spec.get("allNodes")),
        "perDeviceNodeSelection": bool(spec.get("perDeviceNodeSelection")),
    }
    given = [f"`{name}`" for name, is_set in places.items() if is_set]
    if not given:
        errors.append(required("spec", _ONE_PLACE))
    elif len(given) > 1:
        detail = f"{_ONE_PLACE}, but multiple fields are set"
        errors.append(not_valid("spec", f"{{{', '.join(given)}}}", detail))
    return errors + _named_items("spec.devices", spec.get("devices") or (), _MOST_DEVICES, _device)


def _pool(field: str, pool: JsonObject) -> Errors:
    name, slices = pool.get("name", ""), pool.get("resourceSliceCount", 0)
    errors: Errors = [] if name else [required(f"{field}.name")]
    for part in name.split("/") if name else ():
        errors += complaints(f"{field}.name", part, formats.dns_subdomain)
    if slices <= 0:
        detail = "must be greater than zero"
        errors.append(not_valid(f"{field}.resourceSliceCount", slices, detail))
    if pool.get("generation", 0) < 0:
        detail = "must be greater than or equal to zero"
        errors.append(not_valid(f"{field}.generation", pool["generation"], detail))
    return errors


def _device(field: str, device: JsonObject) -> Errors:
    errors = _label(f"{field}.name", device.get("name", ""))
    for index, taint in enumerate(device.get("taints") or ()):
        errors += _taint(f"{field}.taints[{index}]", taint)
    return errors


def _taint_rule(obj: JsonObject) -> Errors:
    return _taint("spec.taint", obj["spec"].get("taint") or {})


def _taint(field: str, taint: JsonObject) -> Errors:
    errors = complaints(f"{field}.key", taint.get("key", ""), formats.qualified_name)
    errors += complaints(f"{field}.value", taint.get("value", ""), formats.label_value)
    effect = taint.get("effect", "")
    if not effect:
        errors.append(required(f"{field}.effect"))
    elif effect not in _TAINT_EFFECTS:
        errors.append(not_supported(f"{field}.effect", effect, _TAINT_EFFECTS))
    return errors


# ---------------------------------------------------------------- shared


def _named_items(field: str, items: Sequence[JsonObject], most: int, rule: _ItemRule) -> Errors:
    """Validate a list whose items have names, which are unique."""
    if len(items) > most:
        return [too_many(field, len(items), most)]
    errors: Errors = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        path, name = f"{field}[{index}]", item.get("name", "")
        errors += rule(path, item)
        if name in seen:
            errors.append(duplicate(path, name if rule is _device else item))
        seen.add(name)
    return errors


def _label(field: str, name: str) -> Errors:
    return complaints(field, name, formats.dns_label)


def _subdomain(field: str, name: str) -> Errors:
    return complaints(field, name, formats.dns_subdomain) if name else [required(field)]


def _same_spec(obj: JsonObject, old: JsonObject) -> Errors:
    if obj["spec"] == old["spec"]:
        return []
    return [not_valid("spec", None, IMMUTABLE)]


def _same_place(obj: JsonObject, old: JsonObject) -> Errors:
    spec, before = obj["spec"], old["spec"]
    values = (
        ("spec.pool.name", spec["pool"].get("name", ""), before["pool"].get("name", "")),
        ("spec.driver", spec.get("driver", ""), before.get("driver", "")),
        ("spec.nodeName", spec.get("nodeName"), before.get("nodeName")),
    )
    return [not_valid(field, new, IMMUTABLE) for field, new, was in values if new != was]


#: kind → what is wrong with an object that has its defaults
ERRORS: Final[Mapping[str, Callable[[JsonObject], Errors]]] = {
    "DeviceClass": _device_class,
    "DeviceTaintRule": _taint_rule,
    "ResourceClaim": _claim,
    "ResourceClaimTemplate": _claim_template,
    "ResourceSlice": _slice,
}
#: kind → what is wrong with a change
UPDATE_ERRORS: Final[Mapping[str, Callable[[JsonObject, JsonObject], Errors]]] = {
    "ResourceClaim": _same_spec,
    "ResourceClaimTemplate": _same_spec,
    "ResourceSlice": _same_place,
}
