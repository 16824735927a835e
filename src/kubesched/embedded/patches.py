"""The four patch types, and their application to an object.

The patched object has kind and apiVersion, as clients see it. A patch never modifies it: untouched
parts are shared between the old and the new object.
"""

from __future__ import annotations

from typing import Any, Final

import jsonpatch
import jsonpointer
import msgspec
import yaml

from kubesched.embedded.refusals import StatusError, bad_request
from kubesched.embedded.strategic import strategic_merge

JsonObject = dict[str, Any]

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"

KINDS: Final = (JSON_PATCH, MERGE, STRATEGIC, APPLY)


def patched(original: JsonObject, content_type: str, body: bytes) -> JsonObject:
    """Return the object after a patch that is not an apply."""
    if content_type == JSON_PATCH:
        return _json_patched(original, body)
    patch = _decoded(body)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a patch must be an object")
    if content_type == STRATEGIC:
        return strategic_merge(original, _replacing_selector(original, patch))
    return merge(original, patch)


def decoded_yaml(body: bytes) -> object:
    """Parse YAML, including JSON, the common case; raises StatusError if it is neither."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        pass
    try:
        return yaml.load(body, Loader=_PatchLoader)  # noqa: S506  it is a SafeLoader
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {' '.join(str(error).split())}") from None


def configuration(body: bytes) -> JsonObject:
    """Parse the body of an apply."""
    loaded = decoded_yaml(body)
    if not isinstance(loaded, dict):
        raise bad_request("error decoding YAML: an object is needed")
    return loaded


class _PatchLoader(yaml.SafeLoader):
    """Keeps timestamps as text, as in the API."""


_PatchLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def merge(original: object, patch: JsonObject) -> JsonObject:
    """Return an object after a JSON merge patch (RFC 7396)."""
    result = dict(original) if isinstance(original, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge(result.get(key), value)
        else:
            result[key] = value
    return result


def _json_patched(original: JsonObject, body: bytes) -> JsonObject:
    operations = _decoded(body)
    if not isinstance(operations, list) or not all(isinstance(op, dict) for op in operations):
        raise bad_request("error decoding patch: a JSON patch must be a list of operations")
    try:
        result = jsonpatch.apply_patch(original, operations)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
        raise _rejected() from None
    if not isinstance(result, dict):
        raise _rejected()
    return result


def _rejected() -> StatusError:
    """Return kube-apiserver's terse error for operations that do not fit the object."""
    return StatusError(
        "the server rejected our request due to an error in our request",
        code=422,
        reason="Invalid",
        details={},
    )


def _decoded(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"error decoding patch: {error}") from None


def _replacing_selector(original: JsonObject, patch: JsonObject) -> JsonObject:
    """Handle a PDB's selector, the one map that a strategic merge patch replaces."""
    spec = patch.get("spec")
    if original.get("kind") != "PodDisruptionBudget" or not isinstance(spec, dict):
        return patch
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        return patch
    return {**patch, "spec": {**spec, "selector": {**selector, "$patch": "replace"}}}
