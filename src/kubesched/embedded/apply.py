"""Server-side apply: field ownership and merging.

    configuration + live object ──apply──▶ live object with the configuration's fields,
                                           without those that only the last configuration had,
                                           and an entry in metadata.managedFields

A set of fields has the API's own form (``FieldsV1``), a tree in which ``f:x`` is a field, ``k:{…}``
a list item by its keys, ``v:…`` a member of a set, and ``.`` the item itself.

Supported: any number of apply managers, conflicts between them (409, unless forced), removal of
fields that are no longer applied, creation by apply. Not supported: fields written by other
requests (POST, PUT, other patches) have no manager here, so applying over them is no conflict,
where kube-apiserver reports one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubesched.embedded.refusals import StatusError

JsonObject = dict[str, Any]
Fields = dict[str, Any]
#: One path element per entry, as in FieldsV1: "f:spec", 'k:{"name":"c"}'.
Path = tuple[str, ...]

#: Lists that are maps, and the keys of their items, with the default of a missing key.
LIST_KEYS: Final[Mapping[str, Mapping[str, str | None]]] = {
    **{
        name: {"name": None}
        for name in (
            "allocatedResourcesStatus",
            "containers",
            "drivers",
            "env",
            "ephemeralContainers",
            "imagePullSecrets",
            "initContainers",
            "resourceClaimStatuses",
            "resourceClaims",
            "schedulingGates",
            "secrets",
            "volumes",
        )
    },
    **{name: {"type": None} for name in ("addresses", "conditions")},
    **{name: {"ip": None} for name in ("hostAliases", "hostIPs", "podIPs")},
    **{name: {"uid": None} for name in ("ownerReferences", "reservedFor")},
    "topologySpreadConstraints": {"topologyKey": None, "whenUnsatisfiable": None},
    "volumeDevices": {"devicePath": None},
    "volumeMounts": {"mountPath": None},
}
_CONTAINER_PORT: Final[Mapping[str, str | None]] = {"containerPort": None, "protocol": "TCP"}
_SERVICE_PORT: Final[Mapping[str, str | None]] = {"port": None, "protocol": "TCP"}
_SETS: Final = frozenset({"finalizers", "podCIDRs"})
#: Fields without an owner.
_SYSTEM_META: Final = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "selfLink",
    }
)


class Manager(NamedTuple):
    """A field manager, and the part of the API it applies to."""

    name: str
    api_version: str
    subresource: str = ""


def apply(
    live: JsonObject,
    configuration: JsonObject,
    manager: Manager,
    *,
    force: bool,
    now: str,
) -> JsonObject:
    """Return the object after an apply; StatusError 409 if others own fields that change.

    ``live`` is empty if the object is to be created. Both are without kind and apiVersion.
    """
    wanted = fields_of(configuration)
    entries: list[JsonObject] = live.get("metadata", {}).get("managedFields", [])
    mine = [entry for entry in entries if _is_of(entry, manager)]
    others = [entry for entry in entries if not _is_of(entry, manager)]
    conflicts = _conflicts(live, configuration, wanted, others)
    if conflicts and not force:
        raise _conflict(conflicts)
    others = [_disowned(entry, conflicts) for entry in others]
    result = _merged(live, configuration)
    for entry in mine:
        kept = [wanted, *(other.get("fieldsV1", {}) for other in others)]
        for path in _leaves(entry.get("fieldsV1", {})):
            if not any(_has(fields, path) for fields in kept):
                result = _without(result, path)
    return _signed(result, [e for e in others if e.get("fieldsV1")], wanted, manager, now=now)


def fields_of(configuration: JsonObject) -> Fields:
    """Return the set of fields that a configuration sets."""
    fields = _fields_of_map(configuration)
    metadata = fields.get("f:metadata", {})
    for name in _SYSTEM_META:
        metadata.pop(f"f:{name}", None)
    if not metadata:
        fields.pop("f:metadata", None)
    return fields


def _fields_of_map(value: JsonObject) -> Fields:
    fields: Fields = {}
    for name, item in value.items():
        if item is None:
            continue
        fields[f"f:{name}"] = _fields_of_value(name, item)
    return fields


def _fields_of_value(name: str, value: object) -> Fields:
    if isinstance(value, dict):
        return _fields_of_map(value)
    if isinstance(value, list):
        if name in _SETS:
            return {f"v:{_json(item)}": {} for item in value}
        if (keys := _keys_of(name, value)) is not None:
            return {_step(item, keys): {".": {}, **_fields_of_map(item)} for item in value}
    return {}


def _keys_of(name: str, items: list[Any]) -> Mapping[str, str | None] | None:
    if not all(isinstance(item, dict) for item in items):
        return None
    if name == "ports":
        return _CONTAINER_PORT if any("containerPort" in item for item in items) else _SERVICE_PORT
    return LIST_KEYS.get(name)


def _step(item: JsonObject, keys: Mapping[str, str | None]) -> str:
    values = {key: item.get(key, default) for key, default in keys.items()}
    return f"k:{_json({key: value for key, value in values.items() if value is not None})}"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


# ---------------------------------------------------------------- merging


def _merged(live: JsonObject, configuration: JsonObject) -> JsonObject:
    result = dict(live)
    for name, value in configuration.items():
        if value is not None:
            result[name] = _merged_value(name, live.get(name), value)
    return result


def _merged_value(name: str, live: object, value: Any) -> Any:  # noqa: ANN401  any JSON value
    if isinstance(value, dict):
        return _merged(live if isinstance(live, dict) else {}, value)
    if not isinstance(value, list):
        return value
    old = live if isinstance(live, list) else []
    if name in _SETS:
        return list(dict.fromkeys([*old, *value]))
    if (keys := _keys_of(name, value)) is None:
        return value
    known = {_step(item, keys): item for item in old if isinstance(item, dict)}
    for item in value:
        step = _step(item, keys)
        known[step] = _merged(known.get(step, {}), item)
    return list(known.values())


def _without(obj: JsonObject, path: Path) -> JsonObject:
    """Return the object without the field at a path, and without parents that became empty."""
    step, rest = path[0], path[1:]
    name = step.removeprefix("f:")
    if name not in obj:
        return obj
    value: Any = obj[name]
    if rest:
        if isinstance(value, dict):
            value = _without(value, rest)
        elif isinstance(value, list):
            value = _list_without(name, value, rest)
    if not rest or value in ({}, []):
        return {key: other for key, other in obj.items() if key != name}
    return {**obj, name: value}


def _list_without(name: str, items: list[Any], path: Path) -> list[Any]:
    step, rest = path[0], path[1:]
    if step.startswith("v:"):
        return [item for item in items if f"v:{_json(item)}" != step]
    keys = _keys_of(name, items)
    if keys is None:
        return items
    if rest in ((), (".",)):
        return [item for item in items if _step(item, keys) != step]
    return [_without(item, rest) if _step(item, keys) == step else item for item in items]


# ---------------------------------------------------------------- sets of fields


def _leaves(fields: Fields, path: Path = ()) -> Iterator[Path]:
    """Return the paths of a set; a list item comes before the fields within it."""
    for step, below in fields.items():
        if step == ".":
            continue
        if not below or "." in below:
            yield (*path, step)
        if below:
            yield from _leaves(below, (*path, step))


def _has(fields: Fields, path: Path) -> bool:
    for step in path:
        if step not in fields:
            return False
        fields = fields[step]
    return True


def _minus(fields: Fields, path: Path) -> Fields:
    step, rest = path[0], path[1:]
    if step not in fields:
        return fields
    below = _minus(fields[step], rest) if rest else {}
    remaining = {key: value for key, value in fields.items() if key != step}
    return {**remaining, step: below} if below else remaining


# ---------------------------------------------------------------- managers


def _is_of(entry: JsonObject, manager: Manager) -> bool:
    return (
        entry.get("manager") == manager.name
        and entry.get("operation") == "Apply"
        and entry.get("subresource", "") == manager.subresource
    )


def _conflicts(
    live: JsonObject, configuration: JsonObject, wanted: Fields, others: list[JsonObject]
) -> list[tuple[str, Path]]:
    """Return (manager, path) of the fields that would change under another manager."""
    changing = [
        path
        for path in _leaves(wanted)
        if not path[-1].startswith("k:")
        and not _is_empty(path[-1].removeprefix("f:"), _at(configuration, path))
        and _at(live, path) != _at(configuration, path)
    ]
    return [
        (entry["manager"], path)
        for entry in others
        for path in changing
        if _has(entry.get("fieldsV1", {}), path)
    ]


def _is_empty(name: str, value: object) -> bool:
    """Tell whether a value is an empty map or map-like list, and so changes nothing."""
    if isinstance(value, list):
        return not value and (name in _SETS or _keys_of(name, value) is not None)
    return isinstance(value, dict)


def _at(obj: Any, path: Path) -> Any:  # noqa: ANN401  any JSON value
    """Return the value at a path, None if there is none."""
    name = ""
    for step in path:
        if step.startswith("f:"):
            name = step.removeprefix("f:")
            obj = obj.get(name) if isinstance(obj, dict) else None
        elif step.startswith("v:"):
            return step if step in {f"v:{_json(item)}" for item in obj or ()} else None
        else:
            keys = _keys_of(name, obj or [])
            found = [item for item in obj or () if keys and _step(item, keys) == step]
            obj = found[0] if found else None
    return obj


def _disowned(entry: JsonObject, conflicts: list[tuple[str, Path]]) -> JsonObject:
    fields = entry.get("fieldsV1", {})
    for manager, path in conflicts:
        if manager == entry["manager"]:
            fields = _minus(fields, path)
    return {**entry, "fieldsV1": fields}


def _conflict(conflicts: list[tuple[str, Path]]) -> StatusError:
    shown = [(f'conflict with "{manager}"', _dotted(path)) for manager, path in conflicts]
    if len(shown) == 1:
        message = f"Apply failed with 1 conflict: {shown[0][0]}: {shown[0][1]}"
    else:
        lines = "\n".join(f"- {field}" for _, field in shown)
        message = f"Apply failed with {len(shown)} conflicts: {shown[0][0]}:\n{lines}"
    causes = [
        {"reason": "FieldManagerConflict", "message": why, "field": field} for why, field in shown
    ]
    return StatusError(message, code=409, reason="Conflict", details={"causes": causes})


def _dotted(path: Path) -> str:
    text = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            keys = ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(rest).items())
            text += f"[{keys}]"
        else:
            text += f"[={rest}]"
    return text


def _signed(
    obj: JsonObject, others: list[JsonObject], fields: Fields, manager: Manager, *, now: str
) -> JsonObject:
    entry: JsonObject = {
        "manager": manager.name,
        "operation": "Apply",
        "apiVersion": manager.api_version,
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if manager.subresource:
        entry["subresource"] = manager.subresource
    entries = [entry, *others] if fields else others
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": entries}}
