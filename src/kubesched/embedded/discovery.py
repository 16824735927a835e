"""Discovery: groups, versions and resources, in both forms that clients request.

``/api`` and ``/apis`` return one aggregated document if the client accepts it (kubectl does),
otherwise the groups, and each version's path lists its resources.
"""

from __future__ import annotations

from typing import Any, Final

from kubesched import KUBERNETES_VERSION
from kubesched.embedded.resources import GROUPS, PODS, RESOURCES, ServedResource

JsonObject = dict[str, Any]

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_STATUS_VERBS: Final = ("get", "patch", "update")

_SCALE_GROUP: Final = {"group": "autoscaling", "version": "v1"}

_MAJOR, _MINOR = KUBERNETES_VERSION.removeprefix("v").split(".")[:2]

VERSION: Final[JsonObject] = {
    "major": _MAJOR,
    "minor": _MINOR,
    "emulationMajor": _MAJOR,
    "emulationMinor": _MINOR,
    "minCompatibilityMajor": _MAJOR,
    "minCompatibilityMinor": str(int(_MINOR) - 1),
    "gitVersion": KUBERNETES_VERSION,
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "kubesched/embedded",
}


def core_versions(address: str) -> JsonObject:
    """Return the response of /api."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def groups() -> JsonObject:
    """Return the response of /apis."""
    found = [_group(group) for group in GROUPS if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def group(name: str) -> JsonObject | None:
    """Return the response of /apis/<group>, None if there is no such group."""
    if not name or name not in GROUPS:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name)}


def _group(name: str) -> JsonObject:
    versions = [{"groupVersion": f"{name}/{v}", "version": v} for v in _versions(name)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _versions(name: str) -> list[str]:
    """Return the versions of a group, stable ones first, then beta, then alpha."""
    found = {resource.version for resource in RESOURCES if resource.group == name}
    return sorted(found, key=lambda each: ("alpha" in each, "beta" in each, each))


def resources(group_name: str, version: str) -> JsonObject | None:
    """Return the resources of a version, None if there is no such version."""
    members = [r for r in RESOURCES if (r.group, r.version) == (group_name, version)]
    if not members:
        return None
    entries: list[JsonObject] = []
    for resource in members:
        entries.append(_entry(resource))
        entries += [
            {
                "name": f"{resource.plural}/{name}",
                "singularName": "",
                "namespaced": resource.namespaced,
                **(_SCALE_GROUP if kind == "Scale" else {}),
                "kind": kind,
                "verbs": list(verbs),
            }
            for name, kind, verbs in _subresources(resource)
        ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": members[0].api_version,
        "resources": entries,
    }


def _entry(resource: ServedResource) -> JsonObject:
    entry: JsonObject = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return entry


def _subresources(resource: ServedResource) -> list[tuple[str, str, tuple[str, ...]]]:
    found: list[tuple[str, str, tuple[str, ...]]] = []
    if resource is PODS:
        found.append(("binding", "Binding", ("create",)))
    if resource.scale:
        found.append(("scale", "Scale", _STATUS_VERBS))
    if resource.status:
        found.append(("status", resource.kind, _STATUS_VERBS))
    return found


def aggregated(*, core: bool) -> JsonObject:
    """Return the aggregated document: of the core group, or of all others."""
    items = [_aggregated_group(name) for name in GROUPS if core == (not name)]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_group(name: str) -> JsonObject:
    versions = [
        {
            "version": version,
            "resources": [
                _aggregated_resource(r)
                for r in RESOURCES
                if (r.group, r.version) == (name, version)
            ],
            "freshness": "Current",
        }
        for version in _versions(name)
    ]
    return {"metadata": {"name": name} if name else {}, "versions": versions}


def _aggregated_resource(resource: ServedResource) -> JsonObject:
    def kind_of(kind: str) -> JsonObject:
        group = _SCALE_GROUP if kind == "Scale" else {"group": "", "version": ""}
        return {**group, "kind": kind}

    entry: JsonObject = {
        "resource": resource.plural,
        "responseKind": kind_of(resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if subresources := _subresources(resource):
        entry["subresources"] = [
            {"subresource": name, "responseKind": kind_of(kind), "verbs": list(verbs)}
            for name, kind, verbs in subresources
        ]
    return entry
