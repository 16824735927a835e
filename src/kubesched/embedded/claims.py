"""Makes claims of devices from templates, and takes them back from pods that are over.

    pod with a template    ──▶ a claim of its own, named in its status
    pod over or gone       ──▶ its reservations end; a claim without users is deallocated
    claim made for a pod   ──▶ deleted with it, or as soon as it is over

That is what the resourceclaim controller does. It writes to the store directly where no API rule
restricts a controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from kubesched.embedded.deletion import ObjectDeletion
from kubesched.embedded.following import follow
from kubesched.embedded.registry import ObjectRegistry, Where
from kubesched.embedded.resources import BY_KIND, PODS
from kubesched.embedded.schemas import DeleteOptions
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.versions import Version

JsonObject = dict[str, Any]

DEVICE_CLAIMS: Final = BY_KIND["resource.k8s.io/v1", "ResourceClaim"]
TEMPLATES: Final = BY_KIND["resource.k8s.io/v1", "ResourceClaimTemplate"]
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
_DONE: Final = frozenset({"Succeeded", "Failed"})
_LONGEST_BASE: Final = 57


class ClaimController:
    """Creates, releases and deletes the claims of pods."""

    def __init__(self, registry: ObjectRegistry, deletion: ObjectDeletion) -> None:
        self._registry = registry
        self._store: VersionedStore = registry.store
        self._deletion = deletion
        #: pod → claims that were made for it or are reserved for it, and the inverse
        self._claims_of: dict[str, set[str]] = {}
        self._pods_of: dict[str, set[str]] = {}
        #: template that is missing → pods that wait for it
        self._waiting: dict[str, dict[str, None]] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(follow(self._store, DEVICE_CLAIMS, self.look_at_claim))
            group.create_task(follow(self._store, TEMPLATES, self.look_at_template))
            group.create_task(follow(self._store, PODS, self.look_at_pod))

    # ------------------------------------------------------------ pods

    def look_at_template(self, key: str) -> None:
        """Make claims for the pods that waited for a template."""
        if self._store.get(TEMPLATES, key) is not None:
            for pod_key in self._waiting.pop(key, {}):
                self.look_at_pod(pod_key)

    def look_at_pod(self, key: str) -> None:
        """Make a pod's claims; if it is over, release them."""
        pod = self._store.get(PODS, key)
        if pod is not None and not _is_done(pod.obj):
            if pod.obj["spec"].get("resourceClaims"):
                self._make_claims(pod)
            return
        for claim_key in tuple(self._claims_of.get(key, ())):
            self.look_at_claim(claim_key)

    def _make_claims(self, pod: Version) -> None:
        status = pod.obj["status"]
        made = list(status.get("resourceClaimStatuses") or ())
        known = {each["name"] for each in made}
        for wanted in pod.obj["spec"]["resourceClaims"]:
            template_name = wanted.get("resourceClaimTemplateName")
            if template_name is None or wanted["name"] in known:
                continue
            namespace = pod.obj["metadata"]["namespace"]
            template = self._store.get(TEMPLATES, f"{namespace}/{template_name}")
            if template is None:
                self._waiting.setdefault(f"{namespace}/{template_name}", {})[pod.key] = None
                continue
            claim = _claim_of(pod.obj, wanted["name"], template.obj)
            created = self._registry.create(Where(DEVICE_CLAIMS, namespace), claim)
            name = created.obj["metadata"]["name"]
            made.append({"name": wanted["name"], "resourceClaimName": name})
        if len(made) > len(known):
            meta = dict(pod.obj["metadata"])
            status = {**status, "resourceClaimStatuses": made}
            self._store.replace(PODS, pod, {**pod.obj, "metadata": meta, "status": status})

    # ------------------------------------------------------------ claims

    def look_at_claim(self, key: str) -> None:
        """Release a claim from pods that are over, and delete it if it was made for one of them."""
        claim = self._store.get(DEVICE_CLAIMS, key)
        self._index(key, claim)
        if claim is None:
            return
        status, meta = claim.obj.get("status") or {}, claim.obj["metadata"]
        users = status.get("reservedFor") or []
        remaining = [user for user in users if self._uses(meta["namespace"], user)]
        unused = not remaining and (users or meta.get("deletionTimestamp"))
        if len(remaining) < len(users) or (unused and FINALIZER in (meta.get("finalizers") or ())):
            claim = self._release(claim, remaining)
        if claim is not None and not remaining and self._is_orphan(claim.obj):
            self._delete(claim)

    def _release(self, claim: Version, remaining: list[JsonObject]) -> Version | None:
        """Write the users that remain; without any, the claim gives its devices back."""
        status, meta = dict(claim.obj.get("status") or {}), dict(claim.obj["metadata"])
        status["reservedFor"] = remaining
        if not remaining:
            status = {}
            others = [each for each in meta.get("finalizers") or () if each != FINALIZER]
            meta.pop("finalizers", None)
            if others:
                meta["finalizers"] = others
            elif meta.get("deletionTimestamp"):
                self._store.remove(DEVICE_CLAIMS, claim)
                return None
        obj = {**claim.obj, "metadata": meta, "status": status}
        return self._store.replace(DEVICE_CLAIMS, claim, obj)

    def _uses(self, namespace: str, user: JsonObject) -> bool:
        """Tell whether a user may still need a claim; of other users than pods we know nothing."""
        if user.get("apiGroup") or user.get("resource") != "pods":
            return True
        pod = self._store.get(PODS, f"{namespace}/{user['name']}")
        if pod is None or pod.obj["metadata"]["uid"] != user["uid"]:
            return False
        return not _is_done(pod.obj)

    def _is_orphan(self, claim: JsonObject) -> bool:
        """Tell whether a claim was made for a pod that is over."""
        meta = claim["metadata"]
        owners = list(_owning_pods(claim))
        as_users = ({"resource": "pods", **owner} for owner in owners)
        return bool(owners) and not any(self._uses(meta["namespace"], user) for user in as_users)

    def _delete(self, claim: Version) -> None:
        meta = claim.obj["metadata"]
        if not meta.get("deletionTimestamp"):
            where = Where(DEVICE_CLAIMS, meta["namespace"], meta["name"])
            self._deletion.delete(where, DeleteOptions())

    def _index(self, key: str, claim: Version | None) -> None:
        for pod_key in self._pods_of.pop(key, ()):
            claims = self._claims_of[pod_key]
            claims.discard(key)
            if not claims:
                del self._claims_of[pod_key]
        if claim is None:
            return
        users = (claim.obj.get("status") or {}).get("reservedFor") or ()
        pods = [user["name"] for user in users if user.get("resource") == "pods"]
        pods += [owner["name"] for owner in _owning_pods(claim.obj)]
        namespace = claim.obj["metadata"]["namespace"]
        for name in dict.fromkeys(pods):
            self._pods_of.setdefault(key, set()).add(f"{namespace}/{name}")
            self._claims_of.setdefault(f"{namespace}/{name}", set()).add(key)


def _is_done(pod: JsonObject) -> bool:
    """Tell whether a pod will not run, or not any more."""
    if pod["status"].get("phase") in _DONE:
        return True
    return bool(pod["metadata"].get("deletionTimestamp")) and not pod["spec"].get("nodeName")


def _owning_pods(claim: JsonObject) -> Iterable[JsonObject]:
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == "Pod" and owner.get("controller"):
            yield {"name": owner["name"], "uid": owner["uid"]}


def _claim_of(pod: JsonObject, claim_name: str, template: JsonObject) -> JsonObject:
    """Return the claim that a template means for a pod."""
    meta, pod_meta = template["spec"].get("metadata") or {}, pod["metadata"]
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod_meta["name"],
        "uid": pod_meta["uid"],
        "controller": True,
    }
    made: JsonObject = {
        "generateName": _base_name(pod_meta["name"], claim_name),
        "annotations": {**(meta.get("annotations") or {}), POD_CLAIM_NAME: claim_name},
        "ownerReferences": [owner],
    }
    if meta.get("labels"):
        made["labels"] = dict(meta["labels"])
    return {"metadata": made, "spec": template["spec"]["spec"]}


def _base_name(pod_name: str, claim_name: str) -> str:
    """Return how a claim's name begins: long ones lose some of both their parts."""
    base = f"{pod_name}-{claim_name}-"
    if len(base) <= _LONGEST_BASE:
        return base
    of_pod, of_claim = (len(name) * _LONGEST_BASE // len(base) for name in (pod_name, claim_name))
    return f"{pod_name[:of_pod]}-{claim_name[:of_claim]}"
