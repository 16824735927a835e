"""The scale of a workload: how many pods it is to have, as a resource of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.embedded.refusals import bad_request, invalid, not_valid
from kubesched.embedded.registry import ObjectRegistry, Where
from kubesched.embedded.versions import Version, encode

JsonObject = dict[str, Any]

_MERGE = "application/merge-patch+json"
_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(version: Version) -> JsonObject:
    """Return the scale of a workload."""
    obj = version.obj
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    status: JsonObject = {"replicas": (obj.get("status") or {}).get("replicas", 0)}
    if selector := _selector(spec.get("selector") or {}):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in _META if name in meta},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": status,
    }


def rescale(
    registry: ObjectRegistry, where: Where, sent: JsonObject, *, dry_run: bool = False
) -> JsonObject:
    """Set how many pods a workload is to have."""
    target = where._replace(subresource="")
    replicas = (sent.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int):
        raise bad_request(f"spec.replicas must be a number, not {replicas!r}")
    if replicas < 0:
        error = not_valid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("Scale", where.name, [error], group="autoscaling")
    patch: JsonObject = {"spec": {"replicas": replicas}}
    if version := (sent.get("metadata") or {}).get("resourceVersion"):
        patch["metadata"] = {"resourceVersion": version}
    written = registry.patch(target, _MERGE, encode(patch), dry_run=dry_run)
    return scale_of(written.version)


def patched_scale(registry: ObjectRegistry, where: Where, body: bytes) -> JsonObject:
    """Return the scale that a merge patch makes of the current one."""
    try:
        patch = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"the patch of a scale must be JSON: {error}") from None
    if not isinstance(patch, dict):
        raise bad_request("the patch of a scale must be an object")
    current = scale_of(registry.get(where._replace(subresource="")))
    given = patch.get("spec") if isinstance(patch.get("spec"), dict) else {}
    meta = patch.get("metadata") if isinstance(patch.get("metadata"), dict) else {}
    return {"metadata": meta, "spec": {**current["spec"], **(given or {})}}


def _selector(selector: JsonObject) -> str:
    """Write a selector as a query does; that of a ReplicationController is the labels alone."""
    if not set(selector) & {"matchLabels", "matchExpressions"}:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [f"{k}={v}" for k, v in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(sorted(each.get("values") or ()))
        form = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts.append(form[each["operator"]])
    return ",".join(parts)
