"""The parts of OpenAPI that kubectl needs: kinds, and parameters of writes.

kubectl checks here whether the server validates fields (``fieldValidation``), which it then leaves
to the server. Schemas are open: a kind has no fields, so ``kubectl explain`` shows nothing.
"""

from __future__ import annotations

from typing import Any, Final

from kubesched import KUBERNETES_VERSION
from kubesched.embedded.resources import RESOURCES, ServedResource

JsonObject = dict[str, Any]

_TITLE: Final = "Kubernetes"
_WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")


def index() -> JsonObject:
    """Return the list of documents."""
    prefixes = dict.fromkeys(resource.prefix for resource in RESOURCES)
    paths = {
        prefix.lstrip("/"): {"serverRelativeURL": f"/openapi/v3{prefix}"} for prefix in prefixes
    }
    return {"paths": paths}


def document(prefix: str) -> JsonObject | None:
    """Return the document of one version, None if there is no such version."""
    members = [resource for resource in RESOURCES if resource.prefix == prefix]
    if not members:
        return None
    paths: JsonObject = {}
    for resource in members:
        paths[_path(resource)] = {"post": _operation(resource, "post")}
        paths[f"{_path(resource)}/{{name}}"] = {
            "put": _operation(resource, "put"),
            "patch": _operation(resource, "patch"),
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": KUBERNETES_VERSION},
        "paths": paths,
        "components": {"schemas": {_schema_name(r): _schema(r) for r in members}},
    }


def _path(resource: ServedResource) -> str:
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"{resource.prefix}{scope}/{resource.plural}"


def _operation(resource: ServedResource, action: str) -> JsonObject:
    return {
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            for name in _WRITE_PARAMETERS
        ],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _kind(resource),
    }


def _kind(resource: ServedResource) -> JsonObject:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schema_name(resource: ServedResource) -> str:
    group = resource.group.partition(".")[0] or "core"
    return f"io.k8s.api.{group}.{resource.version}.{resource.kind}"


def _schema(resource: ServedResource) -> JsonObject:
    return {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-group-version-kind": [_kind(resource)],
    }
