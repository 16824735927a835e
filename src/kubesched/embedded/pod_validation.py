"""Validation of a pod's spec, as far as scheduling depends on it.

Order and text of the errors are kube-apiserver's. Fields that do not affect scheduling (probes,
security contexts, most volume sources, DNS) are not validated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kubesched.embedded import formats
from kubesched.embedded.placement_validation import (
    affinity_errors,
    gate_errors,
    spread_errors,
    toleration_errors,
)
from kubesched.embedded.refusals import (
    duplicate,
    not_allowed,
    not_supported,
    not_there,
    not_valid,
    required,
)
from kubesched.embedded.resource_validation import resource_errors
from kubesched.embedded.validation import (
    Errors,
    amount_errors,
    complaints,
    label_errors,
)

JsonObject = dict[str, Any]

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
_LAST_PORT: Final = 65535


def spec_errors(spec: JsonObject) -> Errors:
    """Validate a spec that has its defaults."""
    volumes, errors = _volume_names(spec.get("volumes") or ())
    claims, claim_errors = _claim_names(spec.get("resourceClaims") or ())
    errors += claim_errors
    errors += _containers_errors(spec, volumes, claims)
    if spec.get("hostNetwork"):
        errors += _host_network_errors(spec.get("containers") or ())
    errors += _one_of("spec.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)
    errors += label_errors("spec.nodeSelector", spec.get("nodeSelector") or {})
    errors += affinity_errors(spec.get("affinity") or {})
    errors += gate_errors(spec.get("schedulingGates") or ())
    errors += spread_errors(spec.get("topologySpreadConstraints") or [])
    errors += toleration_errors(spec.get("tolerations") or ())
    if class_name := spec.get("priorityClassName"):
        errors += complaints("spec.priorityClassName", class_name, formats.dns_subdomain)
    if "preemptionPolicy" in spec:
        policy = spec["preemptionPolicy"]
        errors += _one_of("spec.preemptionPolicy", policy, _PREEMPTION_POLICIES)
    if (group := spec.get("schedulingGroup")) is not None:
        errors += _group_errors("spec.schedulingGroup.podGroupName", group.get("podGroupName"))
    for name, amount in (spec.get("overhead") or {}).items():
        errors += amount_errors(f"spec.overhead[{name}]", name, amount)
    return errors


def creation_errors(spec: JsonObject) -> Errors:
    """Validate rules that apply only on creation."""
    if spec.get("ephemeralContainers"):
        return [not_allowed("spec.ephemeralContainers", "cannot be set on create")]
    return []


def node_name_errors(spec: JsonObject) -> Errors:
    """Validate the node of a pod that is created with one."""
    errors = complaints("spec.nodeName", spec["nodeName"], formats.dns_subdomain)
    if spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        errors.append(not_allowed("spec.nodeName", detail))
    return errors


def _one_of(field: str, value: str | None, choices: Sequence[str]) -> Errors:
    if not value:
        return [required(field)]
    return [] if value in choices else [not_supported(field, value, choices)]


def _group_errors(field: str, name: str | None) -> Errors:
    if name is None:
        return [not_valid(field, None, "must specify one of: `podGroupName`")]
    return complaints(field, name, formats.dns_subdomain)


# ---------------------------------------------------------------- containers


def _volume_names(volumes: Iterable[JsonObject]) -> tuple[set[str], Errors]:
    names: set[str] = set()
    errors: Errors = []
    for index, volume in enumerate(volumes):
        field, name = f"spec.volumes[{index}].name", volume.get("name", "")
        found = complaints(field, name, formats.dns_label) if name else [required(field)]
        if name in names:
            found.append(duplicate(field, name))
        if not found:
            names.add(name)
        errors += found
    return names, errors


def _claim_names(claims: Iterable[JsonObject]) -> tuple[set[str], Errors]:
    names: set[str] = set()
    errors: Errors = []
    for index, claim in enumerate(claims):
        field, name = f"spec.resourceClaims[{index}]", claim.get("name", "")
        if not name:
            errors.append(required(f"{field}.name"))
        elif name in names:
            errors.append(duplicate(f"{field}.name", name))
        else:
            errors += complaints(f"{field}.name", name, formats.dns_label)
            names.add(name)
        errors += _claim_source_errors(field, claim)
    return names, errors


def _claim_source_errors(field: str, claim: JsonObject) -> Errors:
    one, other = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
    if (one is None) != (other is None):
        return []
    # The value is printed as kube-apiserver's internal type prints it.
    shown = {
        "Name": claim.get("name", ""),
        "ResourceClaimName": one,
        "ResourceClaimTemplateName": other,
    }
    if one is None:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
    else:
        detail = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        )
    return [not_valid(field, shown, detail)]


def _containers_errors(spec: JsonObject, volumes: set[str], claims: set[str]) -> Errors:
    containers = spec.get("containers") or []
    errors: Errors = []
    names: set[str] = set()
    if not containers:
        errors.append(required("spec.containers"))
    for group, members in (
        ("containers", containers),
        ("initContainers", spec.get("initContainers") or []),
    ):
        for index, container in enumerate(members):
            path = f"spec.{group}[{index}]"
            errors += _container_errors(path, container, volumes, claims)
            name = container.get("name", "")
            if name in names:
                errors.append(duplicate(f"{path}.name", name))
            names.add(name)
            if group == "initContainers":  # they run in sequence, so ports cannot conflict
                errors += _host_port_errors(group, [container])
        if group == "containers":
            errors += _host_port_errors(group, members)
    return errors


def _container_errors(
    path: str, container: JsonObject, volumes: set[str], claims: set[str]
) -> Errors:
    name = container.get("name", "")
    errors = (
        complaints(f"{path}.name", name, formats.dns_label) if name else [required(f"{path}.name")]
    )
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    errors += _port_errors(f"{path}.ports", container.get("ports") or ())
    errors += _mount_errors(f"{path}.volumeMounts", container.get("volumeMounts") or (), volumes)
    policy = container.get("imagePullPolicy")
    errors += _one_of(f"{path}.imagePullPolicy", policy, _PULL_POLICIES)
    return errors + resource_errors(f"{path}.resources", container["resources"], claims)


def _port_errors(path: str, ports: Iterable[JsonObject]) -> Errors:
    errors: Errors = []
    for index, port in enumerate(ports):
        field = f"{path}[{index}]"
        number, host = port.get("containerPort") or 0, port.get("hostPort") or 0
        if not number:
            errors.append(required(f"{field}.containerPort"))
        elif not 0 < number <= _LAST_PORT:
            errors.append(not_valid(f"{field}.containerPort", number, _PORT_RANGE))
        if host and not 0 < host <= _LAST_PORT:
            errors.append(not_valid(f"{field}.hostPort", host, _PORT_RANGE))
        errors += _one_of(f"{field}.protocol", port.get("protocol"), _PROTOCOLS)
    return errors


def _host_port_errors(group: str, containers: Iterable[JsonObject]) -> Errors:
    errors: Errors = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for place, port in enumerate(container.get("ports") or ()):
            if host := port.get("hostPort"):
                used = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{host}"
                if used in taken:
                    field = f"spec.{group}[{index}].ports[{place}].hostPort"
                    errors.append(duplicate(field, used))
                taken.add(used)
    return errors


def _host_network_errors(containers: Iterable[JsonObject]) -> Errors:
    detail = "must match `containerPort` when `hostNetwork` is true"
    return [
        not_valid(
            f"spec.containers[{index}].ports[{place}].hostPort", port.get("hostPort") or 0, detail
        )
        for index, container in enumerate(containers)
        for place, port in enumerate(container.get("ports") or ())
        if (port.get("hostPort") or 0) != (port.get("containerPort") or 0)
    ]


def _mount_errors(path: str, mounts: Iterable[JsonObject], volumes: set[str]) -> Errors:
    errors: Errors = []
    for index, mount in enumerate(mounts):
        name = mount.get("name", "")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        if name not in volumes:
            errors.append(not_there(f"{path}[{index}].name", name))
        if not mount.get("mountPath"):
            errors.append(required(f"{path}[{index}].mountPath"))
    return errors
