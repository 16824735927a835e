"""A small object type for the tests, and the JSON of such objects."""

from __future__ import annotations

from msgspec import Struct

from tests.support.servers import JsonObject


class Meta(Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Spec(Struct, frozen=True, rename="camel"):
    replicas: int = 0


class Thing(Struct, frozen=True):
    """What a pod or a node is to an informer."""

    metadata: Meta
    spec: Spec = Spec()


def thing(
    name: str, *, version: int | str = 1, uid: str = "", namespace: str = "ns", replicas: object = 0
) -> JsonObject:
    """JSON of a Thing; ``replicas`` that are no number make it unreadable."""
    return {
        "kind": "Thing",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
        },
        "spec": {"replicas": replicas},
    }


def thing_list(*items: JsonObject, version: int | str = 1, next_page: str = "") -> JsonObject:
    """JSON of a list of Things."""
    metadata = {"resourceVersion": str(version)}
    if next_page:
        metadata["continue"] = next_page
    return {"kind": "ThingList", "apiVersion": "v1", "metadata": metadata, "items": list(items)}


def bookmark(version: int) -> JsonObject:
    """JSON of a bookmark's object."""
    return {"kind": "Thing", "metadata": {"resourceVersion": str(version)}, "spec": {}}


def gone() -> JsonObject:
    """JSON of the Status that says that a version is too old."""
    return {
        "kind": "Status",
        "status": "Failure",
        "message": "too old resource version: 1 (100)",
        "reason": "Expired",
        "code": 410,
    }
