"""Cells of kinds about devices."""

from __future__ import annotations

from typing import Any, Final

from kubesched.embedded.tables.text import Age, meta_age, spec_of, status_of

JsonObject = dict[str, Any]


def _resource_claim(obj: JsonObject, age: Age) -> list[Any]:
    status, deleted = status_of(obj), bool(obj["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if status.get("allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states += ["allocated"] + (["reserved"] if status.get("reservedFor") else [])
    return [obj["metadata"]["name"], ",".join(states), meta_age(obj, age)]


def _resource_slice(obj: JsonObject, age: Age) -> list[Any]:
    spec = spec_of(obj)
    pool = (spec.get("pool") or {}).get("name", "")
    head = [obj["metadata"]["name"], spec.get("nodeName") or "", spec.get("driver", ""), pool]
    return [*head, meta_age(obj, age)]


def _taint_rule(obj: JsonObject, age: Age) -> list[Any]:
    taint = spec_of(obj).get("taint") or {}
    values = [taint.get(name, "") for name in ("key", "value", "effect")]
    added = taint.get("timeAdded")
    return [obj["metadata"]["name"], *values, age(added) if added else "", meta_age(obj, age)]


CELLS: Final = {
    "DeviceTaintRule": _taint_rule,
    "ResourceClaim": _resource_claim,
    "ResourceSlice": _resource_slice,
}
