"""The verbs that change objects: create, update, patch, bind.

    request ──▶ ObjectRegistry ──▶ identity (name, uid, version checks)
                               ──▶ Pods | Kinds (defaults, validation)
                               ──▶ VersionedStore (a new version, sent to the watchers)

Everything is synchronous: a request succeeds, or is rejected with a ``StatusError``, without
yielding. HTTP and in-process callers use the same path. Deletion is in ``deletion``, reading in
``listing``.
"""

from __future__ import annotations

import random
from typing import Any, Final, NamedTuple

from kubesched.clock import Clock, RealClock
from kubesched.embedded import apply, event_forms, patches
from kubesched.embedded.kinds import Kinds
from kubesched.embedded.pods import Admission, Pods, precondition_failed
from kubesched.embedded.refusals import (
    OPTIMISTIC_LOCK,
    StatusError,
    aggregate,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    generated_name_exists,
    invalid,
    not_found,
    not_supported,
    not_valid,
    required,
    success,
)
from kubesched.embedded.resources import BINDINGS, NAMESPACES, NEW_EVENTS, PODS, ServedResource
from kubesched.embedded.schemas import BindingSchema, check, read
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.times import Timestamps
from kubesched.embedded.versions import Version, encode
from kubesched.errors import QuantityError

JsonObject = dict[str, Any]

#: Maximum number of events; kube-apiserver keeps those of the last hour.
EVENT_LIMIT: Final = 50_000
#: Names and uids must be unique, not secret.
_RANDOM: Final = random.Random()  # noqa: S311  see above
_NAME_TRIES: Final = 8
_NAME_LENGTH: Final = 58
_NAME_CHARACTERS: Final = b"bcdfghjklmnpqrstvwxz2456789"
#: any byte → one of those characters
_TO_NAME: Final = bytes(_NAME_CHARACTERS[n % len(_NAME_CHARACTERS)] for n in range(256))
#: Metadata that clients cannot set.
_SYSTEM_META: Final = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")
#: The only null that is stored: pods' conditions have it.
_KEPT_NULLS: Final = frozenset({"lastProbeTime"})


class Written(NamedTuple):
    """The result of a write, or of its dry run."""

    version: Version
    created: bool = False


class Where(NamedTuple):
    """The object, or the part of it, that a request addresses."""

    resource: ServedResource
    namespace: str
    name: str = ""
    #: "status", or "" for the object itself
    subresource: str = ""

    @property
    def key(self) -> str:
        """The key of the object in its collection."""
        return key_of(self.resource, self.namespace, self.name)


def key_of(resource: ServedResource, namespace: str, name: str) -> str:
    """Return the key of an object in its collection."""
    return f"{namespace}/{name}" if resource.namespaced else name


class ObjectRegistry:
    """Writes objects, by the rules of the API."""

    def __init__(
        self,
        store: VersionedStore,
        *,
        clock: Clock | None = None,
        admission: Admission | None = None,
        event_limit: int = EVENT_LIMIT,
    ) -> None:
        self.store = store
        self._event_limit = event_limit
        self.times = Timestamps(clock or RealClock())
        self._pods = Pods(store, self.times.now, admission or Admission())
        self._kinds = Kinds(store, self.times.now)

    # ------------------------------------------------------------ create

    def create(self, where: Where, sent: JsonObject, *, dry_run: bool = False) -> Version:
        """Create an object; the registry takes ownership of ``sent``."""
        resource = where.resource
        obj = self._received(resource, sent)
        meta = obj["metadata"]
        self._settle_namespace(where, meta)
        self.require_namespace(where, meta.get("name", ""))
        if meta.get("resourceVersion"):
            message = "resourceVersion should not be set on objects to be created"
            raise StatusError(message, code=500, reason="")
        for name in (*_SYSTEM_META, "resourceVersion"):
            meta.pop(name, None)
        meta["uid"] = new_uid()
        meta["creationTimestamp"] = self.times.now()
        return self._stored(where, obj, dry_run=dry_run)

    def _stored(self, where: Where, obj: JsonObject, *, dry_run: bool) -> Version:
        resource, meta = where.resource, obj["metadata"]
        prefix = "" if meta.get("name") else meta.get("generateName") or ""
        if prefix:
            meta["name"] = self._generated(prefix)
        self._prepared(resource, obj)
        collection = self.store.collection(resource)
        for _ in range(_NAME_TRIES):
            key = key_of(resource, where.namespace, meta["name"])
            if collection.get(key) is None:
                if dry_run:
                    return Version(key, obj, 0, encode(obj))
                if resource.kind == "Event" and len(collection) >= self._event_limit:
                    self.store.remove(resource, collection.oldest())
                return self.store.add(resource, key, obj)
            if not prefix:
                raise already_exists(resource.plural, meta["name"], group=resource.group)
            meta["name"] = self._generated(prefix)
        raise generated_name_exists(resource.plural, meta["name"], group=resource.group)

    def _generated(self, prefix: str) -> str:
        suffix = _RANDOM.getrandbits(40).to_bytes(5, "big").translate(_TO_NAME)
        return prefix[:_NAME_LENGTH] + suffix.decode()

    def _prepared(self, resource: ServedResource, obj: JsonObject) -> None:
        try:
            if resource is PODS:
                self._pods.create(obj)
            else:
                self._kinds.create(resource, obj)
        except QuantityError:
            raise _not_a_quantity(resource) from None

    def _received(self, resource: ServedResource, sent: JsonObject) -> JsonObject:
        """Return the body with its own top level and metadata, without kind."""
        refuse_other_kind(resource, sent)
        obj = {k: v for k, v in sent.items() if k not in {"kind", "apiVersion"}}
        if resource is NEW_EVENTS:
            obj = event_forms.to_core(obj)
        check(resource, obj)
        obj["metadata"] = dict(obj.get("metadata") or {})
        return obj

    def _settle_namespace(self, where: Where, meta: JsonObject) -> None:
        if not where.resource.namespaced:
            meta.pop("namespace", None)
            return
        if meta.get("namespace", where.namespace) not in {"", where.namespace}:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on "
                "the request"
            )
        meta["namespace"] = where.namespace

    def require_namespace(self, where: Where, name: str) -> None:
        """Reject a new object in a namespace that does not exist or terminates."""
        if not where.resource.namespaced:
            return
        found = self.store.get(NAMESPACES, where.namespace)
        if found is None:
            raise not_found("namespaces", where.namespace)
        if found.obj["status"].get("phase") == "Terminating":
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {where.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            why = (
                f"unable to create new content in namespace {where.namespace} because it is "
                "being terminated"
            )
            resource = where.resource
            raise forbidden(resource.plural, name, why, group=resource.group, causes=[cause])

    # ------------------------------------------------------------ update

    def get(self, where: Where) -> Version:
        """Return the newest version; raises StatusError if it does not exist."""
        version = self.store.get(where.resource, where.key)
        if version is None:
            raise not_found(where.resource.plural, where.name, group=where.resource.group)
        return version

    def update(self, where: Where, sent: JsonObject, *, dry_run: bool = False) -> Written:
        """Replace an object, or its status."""
        resource = where.resource
        obj = self._received(resource, sent)
        self._settle_name(where, obj["metadata"])
        old = self.store.get(resource, where.key)
        if old is None and resource.create_on_update and not where.subresource:
            obj["metadata"].pop("resourceVersion", None)
            return Written(self.create(where, obj, dry_run=dry_run), created=True)
        if old is None:
            raise not_found(resource.plural, where.name, group=resource.group)
        return Written(self._replaced(where, old, obj, dry_run=dry_run))

    def _settle_name(self, where: Where, meta: JsonObject) -> None:
        name = meta.get("name")
        if not name:
            raise bad_request(
                f"the name of the object ({where.name} based on URL) was undeterminable: "
                "name must be provided"
            )
        if name != where.name:
            raise bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({where.name})"
            )
        self._settle_namespace(where, meta)

    def _replaced(self, where: Where, old: Version, obj: JsonObject, *, dry_run: bool) -> Version:
        """Store a new version, unless nothing changed, or delete the object if its last finalizer
        went.
        """
        resource = where.resource
        self._check_version(resource, old, obj["metadata"])
        self._keep_system_fields(old.obj["metadata"], obj["metadata"])
        try:
            self._prepare_update(where, obj, old.obj)
        except QuantityError:
            raise _not_a_quantity(resource) from None
        self._count_generation(resource, obj, old.obj)
        if obj == old.obj:
            return old
        if dry_run:
            return Version(old.key, obj, old.revision, encode(obj))
        if lets_go(obj, old.obj):
            self.store.remove(resource, old)
            return Version(old.key, obj, old.revision, encode(obj))
        return self.store.replace(resource, old, obj)

    def _prepare_update(self, where: Where, obj: JsonObject, old: JsonObject) -> None:
        resource, to_status = where.resource, where.subresource == "status"
        if resource is PODS:
            (self._pods.update_status if to_status else self._pods.update)(obj, old)
        elif to_status:
            self._kinds.update_status(resource, obj, old)
        else:
            self._kinds.update(resource, obj, old)

    def _check_version(self, resource: ServedResource, old: Version, meta: JsonObject) -> None:
        uid, own = meta.get("uid"), old.obj["metadata"]["uid"]
        if uid and uid != own:
            details = f"UID in precondition: {uid}, UID in object meta: {own}"
            raise precondition_failed(resource.plural, old.key, details)
        given = meta.get("resourceVersion") or ""
        if given and not given.isdecimal():
            message = f'strconv.ParseUint: parsing "{given}": invalid syntax'
            raise StatusError(message, code=500, reason="")
        if not int(given or 0):
            if not resource.unconditional_update:
                error = not_valid("metadata.resourceVersion", 0, "must be specified for an update")
                name = old.obj["metadata"]["name"]
                raise invalid(resource.plural, name, [error], group=resource.group)
        elif int(given) != old.revision:
            name = old.obj["metadata"]["name"]
            raise conflict(resource.plural, name, OPTIMISTIC_LOCK, group=resource.group)

    def _keep_system_fields(self, old: JsonObject, meta: JsonObject) -> None:
        for name in (*_SYSTEM_META, "uid", "creationTimestamp", "resourceVersion", "generation"):
            if name in old:
                meta[name] = old[name]
            else:
                meta.pop(name, None)
        if "managedFields" in old:
            meta.setdefault("managedFields", old["managedFields"])
        if not meta.get("managedFields"):
            meta.pop("managedFields", None)

    def _count_generation(self, resource: ServedResource, obj: JsonObject, old: JsonObject) -> None:
        if resource.generation and obj.get("spec") != old.get("spec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    # ------------------------------------------------------------ patch

    def patch(
        self, where: Where, content_type: str, body: bytes, *, dry_run: bool = False
    ) -> Written:
        """Apply a patch to an object."""
        old = self.get(where)
        original = self._shown(where.resource, old.obj)
        patched = patches.patched(original, content_type, body)
        if b"null" in body:
            patched = without_nulls(patched)
        for name in ("kind", "apiVersion"):
            if patched.get(name) != original[name]:
                raise bad_request(f"{name} of an object may not be changed by a patch")
        obj = self._received(where.resource, patched)
        self._settle_name(where, obj["metadata"])
        return Written(self._replaced(where, old, obj, dry_run=dry_run))

    def apply(
        self,
        where: Where,
        body: bytes,
        *,
        manager: str,
        force: bool = False,
        dry_run: bool = False,
    ) -> Written:
        """Apply a manager's configuration (server-side apply)."""
        resource, obj = where.resource, self._applied(where, body, manager)
        old = self.store.get(resource, where.key)
        if old is None and where.subresource:
            raise not_found(resource.plural, where.name, group=resource.group)
        result = apply.apply(
            old.obj if old is not None else {},
            obj,
            apply.Manager(manager, resource.api_version, where.subresource),
            force=force,
            now=self.times.now(),
        )
        if old is None:
            return Written(self.create(where, result, dry_run=dry_run), created=True)
        if _differs_in_time_only(result, old.obj):
            return Written(old)
        return Written(self._replaced(where, old, result, dry_run=dry_run))

    def _applied(self, where: Where, body: bytes, manager: str) -> JsonObject:
        """Decode a manager's configuration."""
        if not manager:
            error = required("fieldManager", "is required for apply patch")
            raise invalid("PatchOptions", "", [error], group="meta.k8s.io")
        obj = self._received(where.resource, without_nulls(patches.configuration(body)))
        obj["metadata"].setdefault("name", where.name)
        self._settle_name(where, obj["metadata"])
        if obj["metadata"].get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        return obj

    def _shown(self, resource: ServedResource, obj: JsonObject) -> JsonObject:
        """Return an object in this resource's API version."""
        form = event_forms.from_core(obj) if resource is NEW_EVENTS else obj
        return {"kind": resource.kind, "apiVersion": resource.api_version, **form}

    # ------------------------------------------------------------ binding

    def bind(self, where: Where, sent: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Bind a pod to a node; ``where`` is the pod, without a name for the older API."""
        refuse_other_kind(BINDINGS, sent)
        binding = read(BINDINGS, sent, BindingSchema)
        meta: JsonObject = dict(sent.get("metadata") or {})
        self._settle_namespace(where, meta)
        name = meta.get("name") or ""
        if where.name and name != where.name:
            raise bad_request("name in URL does not match name in Binding object")
        target = binding.target
        node_name = (target.name if target is not None else None) or ""
        kind = (target.kind if target is not None else None) or ""
        self._refuse_target(kind, node_name)
        self.require_namespace(where, name)
        old = self.store.get(PODS, key_of(PODS, where.namespace, name))
        if old is None:
            raise not_found("pods", name)
        self._check_binding(old, meta)
        bound = self._pods.bind(old, node_name, meta)
        if not dry_run:
            self.store.replace(PODS, old, bound)
        return success(code=201)

    def _refuse_target(self, kind: str, node_name: str) -> None:
        errors = []
        if kind not in {"", "Node"}:
            errors.append(not_supported("target.kind", kind, ("Node", "<empty>")))
        if not node_name:
            errors.append(required("target.name"))
        if errors:
            raise StatusError(aggregate(map(str, errors)), code=500, reason="")

    def _check_binding(self, old: Version, meta: JsonObject) -> None:
        own = old.obj["metadata"]
        for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            given = meta.get(field)
            if given and given != own[field]:
                details = f"{label} in precondition: {given}, {label} in object meta: {own[field]}"
                raise precondition_failed("pods", old.key, details)


def new_uid() -> str:
    """Return a random UUID; uuid.uuid4 would make a system call for each one."""
    digits = f"{_RANDOM.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def refuse_other_kind(resource: ServedResource, sent: JsonObject) -> None:
    """Reject an object of another kind than the path's; a missing kind is fine."""
    kind = sent.get("kind") or resource.kind
    api_version = sent.get("apiVersion") or resource.api_version
    if (kind, api_version) != (resource.kind, resource.api_version):
        version = str(api_version).rpartition("/")[2]
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
            f"this path takes {resource.kind} of {resource.api_version}"
        )


def lets_go(obj: JsonObject, old: JsonObject) -> bool:
    """Tell whether a change removes the last finalizer of a deleted object without grace."""
    return old["metadata"].get("deletionGracePeriodSeconds") == 0 and not obj["metadata"].get(
        "finalizers"
    )


def without_nulls(value: Any) -> Any:  # noqa: ANN401  any JSON value
    """Return a value without null fields, which the API treats as absent."""
    if isinstance(value, dict):
        return {
            name: without_nulls(item)
            for name, item in value.items()
            if item is not None or name in _KEPT_NULLS
        }
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _differs_in_time_only(obj: JsonObject, old: JsonObject) -> bool:
    def timeless(of: JsonObject) -> JsonObject:
        meta = dict(of["metadata"])
        meta["managedFields"] = [
            {k: v for k, v in entry.items() if k != "time"} for entry in meta["managedFields"]
        ]
        return {**of, "metadata": meta}

    if not obj["metadata"].get("managedFields") or not old["metadata"].get("managedFields"):
        return False
    return timeless(obj) == timeless(old)


def _not_a_quantity(resource: ServedResource) -> StatusError:
    return bad_request(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a '
        f"{resource.kind}: quantities must match the regular expression "
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )
