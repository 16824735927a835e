"""Deletion: immediate, after a grace period, or when the last finalizer is removed.

A pod on a node is only marked at first: its kubelet ends the containers and then deletes the object
without grace. An object with finalizers is marked until they are removed. A namespace is marked,
emptied and then deleted (see ``namespaces``).

What an object controls is deleted after it by the workload controllers, if these run. With the
policy ``Orphan``, its dependents lose their reference to it, and stay.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kubesched.embedded.refusals import (
    conflict,
    forbidden,
    invalid,
    not_supported,
    not_valid,
    success,
)
from kubesched.embedded.registry import ObjectRegistry, Where
from kubesched.embedded.resources import BY_KIND, NAMESPACES, PODS, ServedResource
from kubesched.embedded.schemas import DeleteOptions
from kubesched.embedded.times import format_time, parse_time
from kubesched.embedded.versions import Version, encode

JsonObject = dict[str, Any]

#: Kinds that others control.
_CONTROLLED: Final = (BY_KIND["apps/v1", "ReplicaSet"], PODS)
_IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_POLICIES: Final = ("Foreground", "Background", "Orphan")
_DONE: Final = frozenset({"Succeeded", "Failed"})


class DeletionResult(NamedTuple):
    """The response of a DELETE: the object, or a ``Status`` that names it."""

    version: Version
    status: JsonObject | None = None


class ObjectDeletion:
    """Deletes objects, by the rules of the API."""

    def __init__(self, registry: ObjectRegistry) -> None:
        self._registry = registry
        self._store = registry.store
        self._times = registry.times

    def delete(self, where: Where, options: DeleteOptions) -> DeletionResult:
        """Delete an object, or start to."""
        refuse_options(options)
        resource = where.resource
        if resource is NAMESPACES and where.name in _IMMORTAL:
            raise forbidden("namespaces", where.name, "this namespace may not be deleted")
        old = self._registry.get(where)
        self._check_preconditions(resource, old, options)
        dry_run = bool(options.dry_run)
        if not dry_run and (options.propagation_policy == "Orphan" or options.orphan_dependents):
            self._orphan(old)
        if resource is NAMESPACES:
            return DeletionResult(self._terminate(old, dry_run=dry_run))
        if resource is PODS:
            return DeletionResult(self._delete_pod(old, options, dry_run=dry_run))
        if old.obj["metadata"].get("finalizers"):
            return DeletionResult(self._mark(resource, old, grace_s=0, dry_run=dry_run))
        gone = old if dry_run else self._store.remove(resource, old)
        return DeletionResult(
            gone, None if resource.returns_deleted else _status(resource, old.obj)
        )

    def _check_preconditions(
        self, resource: ServedResource, old: Version, options: DeleteOptions
    ) -> None:
        wanted, meta = options.preconditions, old.obj["metadata"]
        if wanted is None:
            return
        why = ""
        if wanted.uid is not None and wanted.uid != meta["uid"]:
            why = (
                f"the UID in the precondition ({wanted.uid}) does not match the UID in record "
                f"({meta['uid']}). The object might have been deleted and then recreated"
            )
        elif wanted.resource_version not in {None, meta["resourceVersion"]}:
            why = (
                f"the ResourceVersion in the precondition ({wanted.resource_version}) does not "
                f"match the ResourceVersion in record ({meta['resourceVersion']}). "
                "The object might have been modified"
            )
        if why:
            raise conflict(resource.kind, meta["name"], why, group=resource.group)

    def _orphan(self, old: Version) -> None:
        """Take the references to an object out of those that it controls."""
        uid, namespace = old.obj["metadata"]["uid"], old.obj["metadata"].get("namespace", "")
        for resource in _CONTROLLED:
            for key in list(self._store.collection(resource).keys(namespace)):
                found = self._store.get(resource, key)
                owners = found.obj["metadata"].get("ownerReferences") or () if found else ()
                if found is not None and any(owner.get("uid") == uid for owner in owners):
                    meta = dict(found.obj["metadata"])
                    meta["ownerReferences"] = [each for each in owners if each.get("uid") != uid]
                    self._store.replace(resource, found, {**found.obj, "metadata": meta})

    def _terminate(self, old: Version, *, dry_run: bool) -> Version:
        """Set a namespace to terminating; it is deleted once it is empty."""
        if old.obj["metadata"].get("deletionTimestamp"):
            return old
        meta = {**old.obj["metadata"], "deletionTimestamp": self._times.now()}
        status = {**old.obj["status"], "phase": "Terminating"}
        return self._changed(
            NAMESPACES, old, {**old.obj, "metadata": meta, "status": status}, dry_run=dry_run
        )

    # ------------------------------------------------------------ pods

    def _delete_pod(self, old: Version, options: DeleteOptions, *, dry_run: bool) -> Version:
        meta = old.obj["metadata"]
        if meta.get("deletionTimestamp"):
            return self._delete_again(old, options, dry_run=dry_run)
        grace_s = _grace_s(old.obj, options.grace_period_seconds)
        marked = self._mark(PODS, old, grace_s=grace_s, dry_run=dry_run)
        if grace_s or meta.get("finalizers") or dry_run:
            return marked
        return self._store.remove(PODS, marked)

    def _delete_again(self, old: Version, options: DeleteOptions, *, dry_run: bool) -> Version:
        """Delete a terminating pod again: its grace period can only be shortened."""
        meta = old.obj["metadata"]
        left, asked = meta.get("deletionGracePeriodSeconds") or 0, options.grace_period_seconds
        if left:
            if asked is None or asked >= left:
                return old
            old = self._shorten(old, max(asked, 0) if asked >= 0 else 1, dry_run=dry_run)
            if asked or dry_run:
                return old
        if meta.get("finalizers") or dry_run:
            return old
        return self._store.remove(PODS, old)

    def _shorten(self, old: Version, grace_s: int, *, dry_run: bool) -> Version:
        meta = dict(old.obj["metadata"])
        start = parse_time(meta["deletionTimestamp"]) - meta["deletionGracePeriodSeconds"]
        moment, now = start + grace_s, self._times.clock.time()
        if moment < now:
            moment, grace_s = now, min(grace_s, 1)
        meta["deletionTimestamp"] = format_time(moment)
        meta["deletionGracePeriodSeconds"] = grace_s
        return self._changed(PODS, old, {**old.obj, "metadata": meta}, dry_run=dry_run)

    # ------------------------------------------------------------ marking

    def _mark(
        self, resource: ServedResource, old: Version, *, grace_s: int, dry_run: bool
    ) -> Version:
        """Set the deletion timestamp, once."""
        meta = dict(old.obj["metadata"])
        if meta.get("deletionTimestamp"):
            return old
        meta["deletionTimestamp"] = self._times.after(grace_s) if grace_s else self._times.now()
        meta["deletionGracePeriodSeconds"] = grace_s
        if meta.get("generation"):
            meta["generation"] += 1
        return self._changed(resource, old, {**old.obj, "metadata": meta}, dry_run=dry_run)

    def _changed(
        self, resource: ServedResource, old: Version, obj: JsonObject, *, dry_run: bool
    ) -> Version:
        if dry_run:
            return Version(old.key, obj, old.revision, encode(obj))
        return self._store.replace(resource, old, obj)


def _grace_s(pod: JsonObject, asked: int | None) -> int:
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in _DONE:
        return 0
    if asked is None:
        asked = pod["spec"].get("terminationGracePeriodSeconds") or 0
    return asked if asked >= 0 else 1


def refuse_options(options: DeleteOptions) -> None:
    """Reject invalid options."""
    errors = []
    policy = options.propagation_policy
    if policy is not None and options.orphan_dependents is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(not_valid("propagationPolicy", policy, detail))
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if options.dry_run and set(options.dry_run) != {"All"}:
        errors.append(not_supported("dryRun", options.dry_run, ("All",)))
    if errors:
        raise invalid("DeleteOptions", "", errors, group="meta.k8s.io")


def _status(resource: ServedResource, obj: JsonObject) -> JsonObject:
    details: JsonObject = {"name": obj["metadata"]["name"]}
    if resource.group:
        details["group"] = resource.group
    return success(details=details | {"kind": resource.plural, "uid": obj["metadata"]["uid"]})
