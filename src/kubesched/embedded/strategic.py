"""Strategic merge patch: a merge patch that merges map-like lists.

    {"status": {"conditions": [{"type": "Ready", …}]}}   changes one condition and keeps the others

Lists in ``MERGE_KEYS`` are merged by one field, lists in ``SETS`` are sets, all others are
replaced. Supports kubectl's directives: ``$patch`` (delete, replace), ``$retainKeys``,
``$setElementOrder/<list>`` and ``$deleteFromPrimitiveList/<list>``.

The tables are keyed by field name alone, which is enough for the kinds served: only ``ports`` is
ambiguous, and is resolved by its items. Nothing is modified in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubesched.embedded.refusals import StatusError, bad_request

JsonObject = dict[str, Any]
JsonList = list[Any]

MERGE_KEYS: Final[Mapping[str, str]] = {
    "addresses": "type",
    "allocatedResourcesStatus": "name",
    "conditions": "type",
    "containers": "name",
    "drivers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "reservedFor": "uid",
    "resourceClaimStatuses": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
SETS: Final = frozenset({"finalizers", "podCIDRs"})

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


def strategic_merge(original: JsonObject, patch: JsonObject) -> JsonObject:
    """Return the original with the patch applied; StatusError if the patch is malformed."""
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive is not None:
        raise _malformed(f"unknown patch type {directive!r}")
    result = _retained(original, patch)
    for key, value in patch.items():
        if key.startswith(_DELETE):
            _delete_primitives(result, key.removeprefix(_DELETE), value)
        elif not key.startswith("$"):
            _merge_field(result, key, value, order=patch.get(_ORDER + key))
    for key in patch:
        name = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and name not in patch and isinstance(result.get(name), list):
            result[name] = _ordered(result[name], patch[key], result[name], _key_of(name, result))
    return result


def _retained(original: JsonObject, patch: JsonObject) -> JsonObject:
    keep = patch.get(_RETAIN)
    if keep is None:
        return dict(original)
    if not isinstance(keep, list) or any(
        value is not None and not key.startswith("$") and key not in keep
        for key, value in patch.items()
    ):
        raise _malformed("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in keep}


def _delete_primitives(result: JsonObject, name: str, values: object) -> None:
    if not isinstance(values, list):
        raise _malformed("invalid patch format of primitive list")
    if isinstance(result.get(name), list):
        result[name] = [value for value in result[name] if value not in values]


def _merge_field(result: JsonObject, name: str, value: object, *, order: object) -> None:
    if value is None:
        result.pop(name, None)
        return
    old = result.get(name)
    if isinstance(value, dict):
        if isinstance(old, dict):
            result[name] = strategic_merge(old, value)
        elif _PATCH in value:
            result.pop(name, None)  # a directive about a missing list
        else:
            result[name] = _plain(value)
    elif isinstance(value, list):
        result[name] = _merge_list(name, old if isinstance(old, list) else [], value, order=order)
    else:
        result[name] = value


def _merge_list(name: str, old: JsonList, patch: JsonList, *, order: object) -> JsonList:
    if name in SETS:
        merged = list(dict.fromkeys([*old, *patch]))
        return _ordered(merged, order or patch, old, None)
    key = _key_of(name, {name: patch})
    if key is None or not all(isinstance(item, dict) for item in [*old, *patch]):
        return _plain(patch)
    return _merge_maps(key, old, patch, order=order)


def _merge_maps(key: str, old: JsonList, patch: JsonList, *, order: object) -> JsonList:
    if any(item.get(_PATCH) == "replace" for item in patch):
        return [item for item in patch if _PATCH not in item]
    merged = list(old)
    plain: JsonList = []
    for item in patch:
        if key not in item:
            raise _malformed(f"map: {item} does not contain declared merge key: {key}")
        if item.get(_PATCH) == "delete":
            merged = [other for other in merged if other.get(key) != item[key]]
            continue
        plain.append(item)
        place = next((i for i, other in enumerate(merged) if other.get(key) == item[key]), None)
        if place is None:
            merged.append(_plain(item))
        else:
            merged[place] = strategic_merge(merged[place], item)
    _refuse_other_order(order, plain, key)
    return _ordered(merged, order or plain, old, key)


def _ordered(merged: JsonList, wanted: object, old: JsonList, key: str | None) -> JsonList:
    """Sort the items that the patch names into its order, and keep the others in place.

    An item that only the server has goes before an item of the patch if it was before it; otherwise
    the patch's items come first.
    """
    if not isinstance(wanted, list):
        raise _malformed("invalid patch format of setElementOrder list")

    def identity(item: Any) -> Any:  # noqa: ANN401  items of a JSON list
        return item.get(key) if key is not None and isinstance(item, dict) else item

    rank = {identity(item): place for place, item in enumerate(wanted)}
    place_before = {identity(item): place for place, item in enumerate(old)}
    named = sorted((i for i in merged if identity(i) in rank), key=lambda i: rank[identity(i)])
    others = [item for item in merged if identity(item) not in rank]
    result: JsonList = []
    while named and others:
        left, right = (place_before.get(identity(group[0])) for group in (others, named))
        ahead = left is not None and right is not None and left < right
        result.append((others if ahead else named).pop(0))
    return result + named + others


def _key_of(name: str, holder: JsonObject) -> str | None:
    """Return the merge key of a list, None if it has none."""
    key = MERGE_KEYS.get(name)
    if name == "ports" and any("port" in item for item in holder[name] if isinstance(item, dict)):
        return "port"
    return key


def _plain(value: Any) -> Any:  # noqa: ANN401  any JSON value
    """Return a new value as it will be stored: without directives and nulls."""
    if isinstance(value, dict):
        return {
            name: _plain(item)
            for name, item in value.items()
            if item is not None and not name.startswith("$") and not _is_directive(item)
        }
    if isinstance(value, list):
        return [_plain(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(value: object) -> bool:
    return isinstance(value, dict) and _PATCH in value


def _refuse_other_order(order: object, patch: JsonList, key: str) -> None:
    """Reject a patch whose items are not in its own $setElementOrder."""
    if not isinstance(order, list) or not order:
        return
    wanted = iter([item.get(key) for item in order if isinstance(item, dict)])
    if not all(item[key] in wanted for item in patch):
        raise StatusError(
            "The order in patch list doesn't match $setElementOrder list", code=500, reason=""
        )


def _malformed(why: str) -> StatusError:
    return bad_request(f"error decoding patch: {why}")
