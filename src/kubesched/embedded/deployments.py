"""Deployments: a ReplicaSet for each revision of the template, scaled as a rollout allows."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from kubesched.embedded.dependents import Dependents, owned_by
from kubesched.embedded.registry import ObjectRegistry, Where
from kubesched.embedded.resources import BY_KIND
from kubesched.embedded.rollout import Revision, RollingLimits, next_sizes
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.versions import Version, encode

JsonObject = dict[str, Any]

DEPLOYMENTS: Final = BY_KIND["apps/v1", "Deployment"]
REPLICA_SETS: Final = BY_KIND["apps/v1", "ReplicaSet"]
HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
#: Characters of names that are made up, as Kubernetes has them: no word comes of them.
_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"


class DeploymentController:
    """Makes and scales the ReplicaSets of Deployments."""

    def __init__(self, registry: ObjectRegistry, sets: Dependents) -> None:
        self._registry = registry
        self._store: VersionedStore = registry.store
        self._sets = sets
        self._uids: dict[str, str] = {}

    def look_at(self, key: str) -> None:
        """Bring the ReplicaSets of a Deployment closer to what it wants."""
        deployment = self._store.get(DEPLOYMENTS, key)
        if deployment is None:
            self._sets.delete_all(self._uids.pop(key, ""))
            return
        meta = deployment.obj["metadata"]
        self._uids[key] = meta["uid"]
        if meta.get("deletionTimestamp"):
            return
        current, others = self._revisions(deployment.obj)
        if not deployment.obj["spec"].get("paused"):
            self._roll(deployment.obj, current, others)
        self._report(deployment, current)

    def _revisions(self, deployment: JsonObject) -> tuple[Version, list[Version]]:
        """Return the ReplicaSet of the current template, made if need be, and the others."""
        digest = _digest(deployment["spec"]["template"])
        sets = list(self._sets.of(deployment["metadata"]["uid"]))
        number = max((_revision(each.obj) for each in sets), default=0)
        for each in sets:
            if (each.obj["metadata"].get("labels") or {}).get(HASH_LABEL) == digest:
                others = [other for other in sets if other is not each]
                if any(_revision(other.obj) >= _revision(each.obj) for other in others):
                    each = self._numbered(each, number + 1)  # noqa: PLW2901 (its next version)
                return each, others
        made = _replica_set(deployment, digest, number + 1)
        where = Where(REPLICA_SETS, deployment["metadata"]["namespace"])
        created = self._registry.create(where, made)
        self._sets.look_at(created.key)
        return created, sets

    def _numbered(self, version: Version, number: int) -> Version:
        meta = dict(version.obj["metadata"])
        meta["annotations"] = {**(meta.get("annotations") or {}), REVISION: str(number)}
        return self._store.replace(REPLICA_SETS, version, {**version.obj, "metadata": meta})

    def _roll(self, deployment: JsonObject, current: Version, others: list[Version]) -> None:
        spec = deployment["spec"]
        limits, strategy = None, spec["strategy"]
        if strategy.get("type") != "Recreate":
            rolling = strategy["rollingUpdate"]
            surge, unavailable = rolling["maxSurge"], rolling["maxUnavailable"]
            limits = RollingLimits.of(surge, unavailable, spec["replicas"])
        new, *old = (_size(each.obj) for each in (current, *others))
        grown, shrunk = next_sizes(spec["replicas"], new, old, limits)
        if limits is None and any(each.obj["status"].get("replicas") for each in others):
            grown = new.replicas  # until the last of the old pods is gone
        for version, size in zip((current, *others), (grown, *shrunk), strict=True):
            self._resize(version, size)

    def _resize(self, version: Version, size: int) -> None:
        newest = self._store.get(REPLICA_SETS, version.key)
        if newest is None or newest.obj["spec"]["replicas"] == size:
            return
        spec = {**newest.obj["spec"], "replicas": size}
        meta = dict(newest.obj["metadata"])
        meta["generation"] = meta.get("generation", 1) + 1
        self._store.replace(REPLICA_SETS, newest, {**newest.obj, "metadata": meta, "spec": spec})

    def _report(self, deployment: Version, current: Version) -> None:
        sets = [each.obj for each in self._sets.of(deployment.obj["metadata"]["uid"])]
        spec, meta = deployment.obj["spec"], deployment.obj["metadata"]
        newest = self._store.get(REPLICA_SETS, current.key)
        there = sum(each["status"].get("replicas", 0) for each in sets)
        ready = sum(each["status"].get("readyReplicas", 0) for each in sets)
        counts = {
            "replicas": there,
            "updatedReplicas": newest.obj["status"].get("replicas", 0) if newest else 0,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max(spec["replicas"] - ready, 0),
        }
        status = {
            "observedGeneration": meta.get("generation", 1),
            **{name: count for name, count in counts.items() if count},
            "conditions": self._conditions(deployment.obj, ready),
        }
        number = str(_revision(newest.obj)) if newest else ""
        annotations = {**(meta.get("annotations") or {}), REVISION: number}
        if status != deployment.obj["status"] or annotations != meta.get("annotations"):
            meta = {**meta, "annotations": annotations}
            obj = {**deployment.obj, "metadata": meta, "status": status}
            self._store.replace(DEPLOYMENTS, deployment, obj)

    def _conditions(self, deployment: JsonObject, ready: int) -> list[JsonObject]:
        enough = ready >= deployment["spec"]["replicas"]
        reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
        before = {e["type"]: e for e in deployment["status"].get("conditions") or ()}
        told = []
        for kind, status, why in (
            ("Available", "True" if enough else "False", reason),
            ("Progressing", "True", "NewReplicaSetAvailable" if enough else "ReplicaSetUpdated"),
        ):
            known = before.get(kind)
            if known is not None and (known["status"], known["reason"]) == (status, why):
                told.append(known)
                continue
            now = self._registry.times.now()
            told.append(
                {
                    "type": kind,
                    "status": status,
                    "reason": why,
                    "lastUpdateTime": now,
                    "lastTransitionTime": now,
                }
            )
        return told


def _digest(template: JsonObject) -> str:
    """Return a short name for a template."""
    number = int.from_bytes(hashlib.sha256(encode(template)).digest()[:6], "big")
    letters = ""
    for _ in range(9):
        number, place = divmod(number, len(_SAFE))
        letters += _SAFE[place]
    return letters


def _revision(replica_set: JsonObject) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _size(replica_set: JsonObject) -> Revision:
    available = replica_set["status"].get("readyReplicas", 0)
    return Revision(replica_set["spec"]["replicas"], available)


def _replica_set(deployment: JsonObject, digest: str, revision: int) -> JsonObject:
    template, spec = deployment["spec"]["template"], deployment["spec"]
    template_meta = template.get("metadata") or {}
    labels = {**(template_meta.get("labels") or {}), HASH_LABEL: digest}
    selector = spec.get("selector") or {}
    matched = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
    return {
        "metadata": {
            "name": f"{deployment['metadata']['name']}-{digest}",
            "labels": labels,
            "annotations": {REVISION: str(revision)},
            "ownerReferences": [owned_by(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": 0,
            "selector": {**selector, "matchLabels": matched},
            "template": {**template, "metadata": {**template_meta, "labels": labels}},
        },
    }
