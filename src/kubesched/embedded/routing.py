"""Maps paths to the object, collection or subresource they address.

/api/v1/namespaces/shop/pods/web/status   →   PODS in "shop", named "web", its status
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kubesched.embedded.refusals import StatusError, unroutable
from kubesched.embedded.registry import Where
from kubesched.embedded.resources import BY_PATH, PODS, RESOURCES, ServedResource

#: (group, version) of every path that resources are under
_VERSIONS: Final = frozenset((resource.group, resource.version) for resource in RESOURCES)
_STATUS: Final = "status"
_BINDING: Final = "binding"
SCALE: Final = "scale"
_COLLECTION_VERBS: Final = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PART_VERBS: Final = {
    (_BINDING, "POST"): "bind",
    (_STATUS, "GET"): "get",
    (_STATUS, "PUT"): "update",
    (_STATUS, "PATCH"): "patch",
    (SCALE, "GET"): "get",
    (SCALE, "PUT"): "update",
    (SCALE, "PATCH"): "patch",
}


@lru_cache(maxsize=4096)
def resource_path(path: str) -> Where | None:
    """Return what a path addresses; None if it is not a resource path.

    Raises StatusError 404 if the resource does not exist.
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, rest = "", parts[1:]
    elif parts[0] == "apis" and len(parts) > 1:
        group, rest = parts[1], parts[2:]
    else:
        return None
    if len(rest) < 2 or (group, rest[0]) not in _VERSIONS:
        return None
    return _where(group, rest[0], rest[1:])


def _where(group: str, version: str, rest: list[str]) -> Where:
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and (len(rest) > 3 or rest[2] != _STATUS):
        namespace, rest = rest[1], rest[2:]
    resource = BY_PATH.get((group, version, rest[0]))
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        raise unroutable()
    name = rest[1] if len(rest) > 1 else ""
    if name and resource.namespaced and not namespace:
        raise unroutable()
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and not _has_subresource(resource, subresource):
        raise unroutable()
    return Where(resource, namespace, name, subresource)


def _has_subresource(resource: ServedResource, name: str) -> bool:
    if name == _STATUS:
        return resource.status
    if name == SCALE:
        return resource.scale
    return name == _BINDING and resource is PODS


def verb(method: str, where: Where) -> str:
    """Return the verb of a method on a path; raises StatusError 405 if there is none."""
    resource = where.resource
    if where.subresource:
        found = _PART_VERBS.get((where.subresource, method), "")
    elif where.name:
        found = _OBJECT_VERBS.get(method, "")
    elif method == "GET" or where.namespace or not resource.namespaced:
        found = _COLLECTION_VERBS.get(method, "")
    else:
        found = ""
    if found == "bind" or found in resource.verbs:
        return found
    raise method_refused()


def method_refused() -> StatusError:
    """405, in the words for a path that does not know the method."""
    return StatusError(
        "the server does not allow this method on the requested resource",
        code=405,
        reason="MethodNotAllowed",
        details={},
    )
