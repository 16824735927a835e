"""The table of resources that the embedded API server serves.

A ``ServedResource`` has the API path of a kind (group, version, plural), its lookup (short names,
selectable fields) and its rules (namespaced, status subresource, generation). Everything else about
a kind (defaults, validation, table columns) is in the modules that use this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubesched.errors import SelectorError
from kubesched.kinds import KINDS

JsonObject = dict[str, Any]

VERBS: Final = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)


@dataclass(frozen=True, slots=True, eq=False)
class ServedResource:
    """One kind and how it is served."""

    kind: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    #: whether /status is the only way to write the status
    status: bool = False
    #: whether /scale says and sets how many pods it has
    scale: bool = False
    #: whether metadata.generation counts versions of the spec
    generation: bool = False
    #: whether a PUT of a missing name creates it
    create_on_update: bool = False
    #: whether a PUT without resourceVersion overwrites
    unconditional_update: bool = True
    #: whether DELETE returns the object; otherwise a Status
    returns_deleted: bool = False
    verbs: tuple[str, ...] = VERBS
    #: selectable fields besides metadata.name (and .namespace) → how to read them
    fields: Mapping[str, Callable[[JsonObject], str]] = field(default_factory=dict)
    #: aliases of selectable fields
    field_aliases: Mapping[str, str] = field(default_factory=dict)
    #: the name under which the rules of the kind are found, if another kind is called the same
    rules_name: str = ""
    #: the message for an unknown field, if not the generic one
    unknown_field: str = ""
    #: ``apiVersion`` of the objects
    api_version: str = field(init=False)
    #: key of the collection: the two event APIs share one
    storage: str = field(init=False)

    def __post_init__(self) -> None:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        storage = self.plural if self.kind == "Event" else f"{self.plural}.{self.group}"
        object.__setattr__(self, "api_version", api_version)
        object.__setattr__(self, "storage", storage)

    @property
    def rules(self) -> str:
        """The name under which defaults, checks and columns of the kind are found."""
        return self.rules_name or self.kind

    @property
    def singular(self) -> str:
        """The name of one object, as kubectl understands it."""
        return self.kind.lower()

    @property
    def list_kind(self) -> str:
        """``kind`` of a list."""
        return f"{self.kind}List"

    @property
    def prefix(self) -> str:
        """The path of the group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def field_name(self, name: str) -> str:
        """Return the canonical name of a selectable field; SelectorError if there is none."""
        if name in self.fields or name == "metadata.name":
            return name
        if name == "metadata.namespace" and self.namespaced:
            return name
        if name in self.field_aliases:
            return self.field_aliases[name]
        if self.unknown_field:
            raise SelectorError(self.unknown_field.format(name))
        if name == "metadata.namespace" and not self.fields:
            return name
        raise SelectorError(
            f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )

    def field_reader(self, name: str) -> Callable[[JsonObject], str]:
        """Return the function that reads a selectable field, given its canonical name."""
        return self.fields.get(name) or _path(name)


# ---------------------------------------------------------------- selectable fields


def _path(path: str, default: str = "") -> Callable[[JsonObject], str]:
    keys = path.split(".")

    def read(obj: JsonObject) -> str:
        value: Any = obj
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            return default
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return read


def _paths(*paths: str) -> dict[str, Callable[[JsonObject], str]]:
    return {path: _path(path) for path in paths}


def _pod_ip(pod: JsonObject) -> str:
    addresses = pod.get("status", {}).get("podIPs") or [{}]
    return str(addresses[0].get("ip", ""))


def _event_source(event: JsonObject) -> str:
    return str(event.get("source", {}).get("component") or event.get("reportingComponent", ""))


_POD_FIELDS: Final = {
    **_paths(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.nominatedNodeName",
    ),
    "spec.hostNetwork": _path("spec.hostNetwork", "false"),
    "status.podIP": _pod_ip,
    "status.podIPs": _pod_ip,
}
_OBJECT_REFERENCE: Final = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)
_EVENT_FIELDS: Final = {
    **_paths(*(f"involvedObject.{name}" for name in _OBJECT_REFERENCE)),
    **_paths("reason", "reportingComponent", "type"),
    "source": _event_source,
}
_NOT_SUPPORTED: Final = "field label not supported: {}"


# ---------------------------------------------------------------- the table


def _of(name: str, **particulars: Any) -> ServedResource:  # noqa: ANN401 - as ServedResource has them
    """Return a kind that the scheduler reads; its path is in the table of kinds."""
    path = KINDS[name].path
    return ServedResource(
        KINDS[name].called,
        path.plural,
        rules_name=name,
        group=path.group,
        version=path.version,
        namespaced=path.namespaced,
        **particulars,
    )


def with_all_kinds(rows: Iterable[ServedResource]) -> tuple[ServedResource, ...]:
    """Return these rows, and a plain one for each other kind."""
    rows = tuple(rows)
    present = {(row.group, row.kind) for row in rows}
    others = (kind for kind in KINDS.values() if (kind.path.group, kind.called) not in present)
    return (*rows, *(_of(kind.name) for kind in others))


PODS: Final = _of(
    "Pod",
    short_names=("po",),
    categories=("all",),
    status=True,
    generation=True,
    returns_deleted=True,
    fields=_POD_FIELDS,
    field_aliases={"spec.host": "spec.nodeName"},
    unknown_field=_NOT_SUPPORTED,
)
NODES: Final = _of(
    "Node",
    short_names=("no",),
    status=True,
    fields={"spec.unschedulable": _path("spec.unschedulable", "false")},
    unknown_field=_NOT_SUPPORTED,
)
NAMESPACES: Final = _of(
    "Namespace",
    short_names=("ns",),
    status=True,
    returns_deleted=True,
    verbs=tuple(verb for verb in VERBS if verb != "deletecollection"),
    fields=_paths("status.phase"),
    unknown_field=_NOT_SUPPORTED,
)
EVENTS: Final = ServedResource(
    "Event",
    "events",
    short_names=("ev",),
    create_on_update=True,
    fields=_EVENT_FIELDS,
    unknown_field=_NOT_SUPPORTED,
)
NEW_EVENTS: Final = ServedResource(
    "Event",
    "events",
    group="events.k8s.io",
    short_names=("ev",),
    create_on_update=True,
    fields={name: _EVENT_FIELDS[name] for name in ("reason", "type")},
    field_aliases={
        **{f"regarding.{name}": f"involvedObject.{name}" for name in _OBJECT_REFERENCE},
        "reportingController": "reportingComponent",
    },
    unknown_field=_NOT_SUPPORTED,
)
BINDINGS: Final = ServedResource("Binding", "bindings", verbs=("create",))
#: Asked and answered, never stored.
ACCESS_REVIEWS: Final = ServedResource(
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    group="authorization.k8s.io",
    namespaced=False,
    verbs=("create",),
)
JOBS: Final = ServedResource(
    "Job",
    "jobs",
    group="batch",
    categories=("all",),
    status=True,
    generation=True,
    fields={"status.successful": _path("status.succeeded", "0")},
    unknown_field='field label "{}" not supported for Job',
)
PRIORITY_CLASSES: Final = _of("PriorityClass", short_names=("pc",))
SERVICES: Final = _of(
    "Service",
    short_names=("svc",),
    categories=("all",),
    status=True,
    create_on_update=True,
    returns_deleted=True,
    fields=_paths("spec.clusterIP", "spec.type"),
    unknown_field=_NOT_SUPPORTED,
)

_WORKLOAD: Final[Mapping[str, Any]] = {"categories": ("all",), "status": True, "generation": True}

#: Resources with particulars.
_ROWS: Final = (
    BINDINGS,
    ACCESS_REVIEWS,
    ServedResource("ConfigMap", "configmaps", short_names=("cm",)),
    EVENTS,
    NAMESPACES,
    NODES,
    _of("PersistentVolumeClaim", short_names=("pvc",), status=True, returns_deleted=True),
    _of("PersistentVolume", short_names=("pv",), status=True, returns_deleted=True),
    PODS,
    _of(
        "ReplicationController",
        short_names=("rc",),
        categories=("all",),
        status=True,
        generation=True,
        scale=True,
        fields={"status.replicas": _path("status.replicas", "0")},
        unknown_field=_NOT_SUPPORTED,
    ),
    ServedResource("Secret", "secrets", fields=_paths("type"), unknown_field=_NOT_SUPPORTED),
    ServedResource("ServiceAccount", "serviceaccounts", short_names=("sa",), returns_deleted=True),
    SERVICES,
    ServedResource("DaemonSet", "daemonsets", group="apps", short_names=("ds",), **_WORKLOAD),
    ServedResource(
        "Deployment", "deployments", group="apps", short_names=("deploy",), scale=True, **_WORKLOAD
    ),
    _of("ReplicaSet", short_names=("rs",), scale=True, **_WORKLOAD),
    _of("StatefulSet", short_names=("sts",), scale=True, **_WORKLOAD),
    JOBS,
    ServedResource(
        "Lease",
        "leases",
        group="coordination.k8s.io",
        create_on_update=True,
        unconditional_update=False,
    ),
    NEW_EVENTS,
    _of(
        "PodDisruptionBudget",
        short_names=("pdb",),
        status=True,
        generation=True,
        unconditional_update=False,
    ),
    _of("PodGroup", status=True, unconditional_update=False),
    _of("CompositePodGroup", status=True, unconditional_update=False),
    ServedResource(
        "Workload",
        "workloads",
        group="scheduling.k8s.io",
        version="v1beta1",
        unconditional_update=False,
    ),
    _of("CoscheduledGroup", short_names=("pg", "pgs"), status=True, generation=True),
    _of("DeviceClass", generation=True, returns_deleted=True),
    _of("ResourceClaim", status=True, returns_deleted=True),
    ServedResource(
        "DeviceTaintRule",
        "devicetaintrules",
        group="resource.k8s.io",
        namespaced=False,
        status=True,
        generation=True,
        returns_deleted=True,
    ),
    ServedResource(
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        group="resource.k8s.io",
        returns_deleted=True,
    ),
    _of(
        "ResourceSlice",
        returns_deleted=True,
        generation=True,
        fields=_paths("spec.nodeName", "spec.driver"),
        unknown_field="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
    ),
    PRIORITY_CLASSES,
    _of("CSIDriver", unconditional_update=False, returns_deleted=True),
    _of("CSINode", status=True, unconditional_update=False, returns_deleted=True),
    _of("CSIStorageCapacity", unconditional_update=False),
    _of("StorageClass", short_names=("sc",), returns_deleted=True),
    _of("VolumeAttachment", status=True, unconditional_update=False, returns_deleted=True),
)
RESOURCES: Final[tuple[ServedResource, ...]] = with_all_kinds(_ROWS)

#: (group, version, plural) → resource
BY_PATH: Final[Mapping[tuple[str, str, str], ServedResource]] = {
    (resource.group, resource.version, resource.plural): resource for resource in RESOURCES
}
#: (apiVersion, kind) → resource
BY_KIND: Final[Mapping[tuple[str, str], ServedResource]] = {
    (resource.api_version, resource.kind): resource for resource in RESOURCES
}
#: the groups in the order in which discovery lists them: "" is the core
GROUPS: Final[tuple[str, ...]] = tuple(
    dict.fromkeys(
        resource.group for resource in sorted(RESOURCES, key=lambda resource: resource.group)
    )
)
