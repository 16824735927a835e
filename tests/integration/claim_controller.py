"""What the controller of claims would do, when a test asks for it: there is none in a test.

pod ── template ──> claim of the pod, named in its status
pod gone ──> not reserved for it any more ──> deallocated ──> deleted, if it was the pod's own
"""

from __future__ import annotations

import msgspec

from kubesched.bench.api_objects import Named
from kubesched.bench.devices import claim_of

from .control_plane import MERGE_PATCH, ControlPlane, JsonObject

DEVICES = "/apis/resource.k8s.io/v1"


def claims_path(namespace: str, name: str = "") -> str:
    """The API path of a namespace's claims, or of one of them."""
    return f"{DEVICES}/namespaces/{namespace}/resourceclaims" + (f"/{name}" if name else "")


def all_claims(plane: ControlPlane, namespace: str) -> list[JsonObject]:
    """All claims of a namespace."""
    items: list[JsonObject] = plane.request("GET", claims_path(namespace))["items"]
    return items


def make_claims(plane: ControlPlane, pod: JsonObject) -> JsonObject:
    """Make the claims that a pod wants of templates; return the pod that says so."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    templates = f"{DEVICES}/namespaces/{namespace}/resourceclaimtemplates"
    statuses = []
    for each in pod["spec"].get("resourceClaims", ()):
        if template := each.get("resourceClaimTemplateName"):
            spec = plane.request("GET", f"{templates}/{template}")["spec"]
            body = claim_of(msgspec.convert(pod, Named), each["name"], spec)
            made = plane.request("POST", claims_path(namespace), body)
            found = {"name": each["name"], "resourceClaimName": made["metadata"]["name"]}
            statuses.append(found)
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
    patch = {"status": {"resourceClaimStatuses": statuses}}
    return plane.request("PATCH", path, patch, content_type=MERGE_PATCH)


def release_claims(
    plane: ControlPlane, namespace: str, pod_uids: set[str], *, deallocate: bool = True
) -> None:
    """Take back what pods that are gone had: reservations, devices, and claims of their own.

    Without `deallocate`, claims that other pods may use keep the devices.
    """
    for claim in all_claims(plane, namespace):
        owners = {each["uid"] for each in claim["metadata"].get("ownerReferences", ())}
        users = claim.get("status", {}).get("reservedFor", [])
        left = [each for each in users if each["uid"] not in pod_uids]
        is_own = bool(owners & pod_uids)
        if len(left) < len(users) or is_own:
            _release(plane, claim, left, deallocate=deallocate or is_own)
        if is_own:
            plane.purge_object(claims_path(namespace, claim["metadata"]["name"]))


def _release(
    plane: ControlPlane, claim: JsonObject, left: list[JsonObject], *, deallocate: bool
) -> None:
    status: JsonObject = {"reservedFor": left or None}
    if not left and deallocate:
        status |= {"allocation": None, "devices": None}
    path = claims_path(claim["metadata"]["namespace"], claim["metadata"]["name"])
    plane.request("PATCH", f"{path}/status", {"status": status}, content_type=MERGE_PATCH)
