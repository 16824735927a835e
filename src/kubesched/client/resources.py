"""URL paths of resources.

A ``ResourcePath`` is group, version and plural name; it gives the URL paths of a collection, of an
object and of a subresource.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote

from msgspec import Struct

_NEEDS_NO_QUOTING = re.compile(r"[A-Za-z0-9._~-]+").fullmatch


def _segment(name: str) -> str:
    """Quote a path segment; nearly every name in Kubernetes is unchanged."""
    return name if _NEEDS_NO_QUOTING(name) else quote(name, safe=":")


class ResourcePath(Struct, frozen=True, kw_only=True, cache_hash=True):
    """One resource of one API version, e.g. ``apps/v1 replicasets``."""

    #: "" for the core group
    group: str = ""
    version: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """As objects carry it: ``v1``, ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_path(self) -> str:
        """Path of the API version, for discovery."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def collection(self, namespace: str = "") -> str:
        """Path of all objects, or of those in one namespace."""
        return _collection(self, namespace)

    def item(self, name: str, *, namespace: str = "", subresource: str = "") -> str:
        """Path of one object, or of one of its subresources."""
        if not name:
            raise ValueError(f"{self.plural}: the name of an object cannot be empty")
        if self.namespaced and not namespace:
            raise ValueError(f"{self.plural} are in namespaces: say in which {name!r} is")
        path = f"{self.collection(namespace)}/{_segment(name)}"
        return f"{path}/{subresource}" if subresource else path

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@lru_cache(maxsize=4096)
def _collection(resource: ResourcePath, namespace: str) -> str:
    """Cached, because the path of a pod is needed all the time."""
    plural = resource.plural
    if not namespace:
        return f"{resource.group_path}/{plural}"
    if not resource.namespaced:
        raise ValueError(f"{plural} are not in namespaces: {namespace!r} makes no sense")
    return f"{resource.group_path}/namespaces/{_segment(namespace)}/{plural}"


def core(plural: str, *, namespaced: bool = True) -> ResourcePath:
    """Return the path of a resource of the core group."""
    return ResourcePath(version="v1", plural=plural, namespaced=namespaced)


def grouped(group_version: str, plural: str, *, namespaced: bool = True) -> ResourcePath:
    """Return the path of a resource of a group, e.g. of ``apps/v1``."""
    group, _, version = group_version.partition("/")
    return ResourcePath(group=group, version=version, plural=plural, namespaced=namespaced)


# Kinds that only the scheduler reads are in the table of kinds.
PODS = core("pods")
NODES = core("nodes", namespaced=False)
CONFIG_MAPS = core("configmaps")
CORE_EVENTS = core("events")
PERSISTENT_VOLUMES = core("persistentvolumes", namespaced=False)
PERSISTENT_VOLUME_CLAIMS = core("persistentvolumeclaims")

RESOURCE_CLAIMS = grouped("resource.k8s.io/v1", "resourceclaims")

PRIORITY_CLASSES = grouped("scheduling.k8s.io/v1", "priorityclasses", namespaced=False)
POD_GROUPS = grouped("scheduling.k8s.io/v1beta1", "podgroups")
COSCHEDULED_GROUPS = grouped("scheduling.x-k8s.io/v1alpha1", "podgroups")

LEASES = grouped("coordination.k8s.io/v1", "leases")
LEASE_CANDIDATES = grouped("coordination.k8s.io/v1beta1", "leasecandidates")

EVENTS = grouped("events.k8s.io/v1", "events")

TOKEN_REVIEWS = grouped("authentication.k8s.io/v1", "tokenreviews", namespaced=False)
SUBJECT_ACCESS_REVIEWS = grouped(
    "authorization.k8s.io/v1", "subjectaccessreviews", namespaced=False
)
