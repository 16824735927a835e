"""What two schedulers wrote, but for what differs by nature."""

from __future__ import annotations

from .control_plane import JsonObject

_DIFFERS_BY_NATURE = {"uid", "creationTimestamp", "lastTransitionTime", "time", "eventTime"}


def comparable(value: JsonObject, versions: dict[str, str]) -> JsonObject:
    """A copy in which what differs by nature is blanked, but not what is absent or null."""
    result: JsonObject = {}
    for key, each in value.items():
        if isinstance(each, dict):
            result[key] = comparable(each, versions)
        elif isinstance(each, list):
            result[key] = [comparable(e, versions) if isinstance(e, dict) else e for e in each]
        elif key == "resourceVersion":
            result[key] = versions.get(each, "later")
        else:
            result[key] = "…" if key in _DIFFERS_BY_NATURE and each else each
    if "managedFields" in value:  # ordered by time, to the second
        result["managedFields"].sort(key=lambda each: each["manager"])
    if "regarding" in value:
        # The name is the pod's and the time in hexadecimal nanoseconds.
        pod_name, _, moment = value["metadata"]["name"].rpartition(".")
        assert len(bytes.fromhex(moment)) == 8
        result["metadata"]["name"] = pod_name
    return result
