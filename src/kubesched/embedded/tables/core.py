"""Cells of nodes, namespaces, events and other kinds."""

from __future__ import annotations

from typing import Any, Final

from kubesched.embedded.tables.text import Age, format_labels, meta_age, spec_of, status_of

JsonObject = dict[str, Any]


def name_and_age(obj: JsonObject, age: Age) -> list[Any]:
    """Return the cells of a kind without its own columns."""
    return [obj["metadata"]["name"], meta_age(obj, age)]


def _node(node: JsonObject, age: Age) -> list[Any]:
    status, labels = status_of(node), node["metadata"].get("labels") or {}
    ready = [c for c in status.get("conditions") or () if c.get("type") == "Ready"]
    state = ["Ready" if c.get("status") == "True" else "NotReady" for c in ready] or ["Unknown"]
    if spec_of(node).get("unschedulable"):
        state.append("SchedulingDisabled")
    prefix = "node-role.kubernetes.io/"
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)} - {""}
    roles |= {labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set()
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or "<unknown>"
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        node["metadata"]["name"],
        ",".join(state),
        ",".join(sorted(roles)) or "<none>",
        meta_age(node, age),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _address(status: JsonObject, kind: str) -> str:
    found = (a["address"] for a in status.get("addresses") or () if a.get("type") == kind)
    return next(found, "<none>")


def _namespace(obj: JsonObject, age: Age) -> list[Any]:
    return [obj["metadata"]["name"], status_of(obj).get("phase", ""), meta_age(obj, age)]


def _event(event: JsonObject, age: Age) -> list[Any]:
    first = age(event.get("firstTimestamp") or event.get("eventTime"))
    last = age(event["lastTimestamp"]) if event.get("lastTimestamp") else first
    count, series = event.get("count") or 1, event.get("series") or {}
    if series:
        last, count = age(series.get("lastObservedTime")), series.get("count", 0)
    about, source = event.get("involvedObject") or {}, event.get("source") or {}
    target = (about.get("kind") or "").lower()
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        f"{target}/{about['name']}" if about.get("name") else target,
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        (event.get("message") or "").strip(),
        first,
        count,
        event["metadata"]["name"],
    ]


def _service(service: JsonObject, age: Age) -> list[Any]:
    spec = spec_of(service)
    external = spec.get("externalIPs") or []
    shown = ",".join(external) or "<none>"
    if spec.get("type") == "LoadBalancer":
        ingress = (status_of(service).get("loadBalancer") or {}).get("ingress") or ()
        addresses = sorted({i.get("ip") or i.get("hostname") or "" for i in ingress} - {""})
        shown = ",".join([*addresses, *external]) or "<pending>"
    elif spec.get("type") == "ExternalName":
        shown = spec.get("externalName", "")
    ports = [
        f"{p.get('port')}:{p['nodePort']}/{p.get('protocol')}"
        if p.get("nodePort")
        else f"{p.get('port')}/{p.get('protocol')}"
        for p in spec.get("ports") or ()
    ]
    return [
        service["metadata"]["name"],
        spec.get("type", ""),
        (spec.get("clusterIPs") or ["<none>"])[0],
        shown,
        ",".join(ports) or "<none>",
        meta_age(service, age),
        format_labels(spec.get("selector")),
    ]


def _config_map(obj: JsonObject, age: Age) -> list[Any]:
    count = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [obj["metadata"]["name"], count, meta_age(obj, age)]


def _secret(obj: JsonObject, age: Age) -> list[Any]:
    count = len(obj.get("data") or ())
    return [obj["metadata"]["name"], obj.get("type", ""), count, meta_age(obj, age)]


def _disruption_budget(obj: JsonObject, age: Age) -> list[Any]:
    spec = spec_of(obj)
    bounds = [str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    allowed = status_of(obj).get("disruptionsAllowed", 0)
    return [obj["metadata"]["name"], *bounds, allowed, meta_age(obj, age)]


def _priority_class(obj: JsonObject, age: Age) -> list[Any]:
    return [
        obj["metadata"]["name"],
        obj.get("value", 0),
        obj.get("globalDefault") or False,
        meta_age(obj, age),
        obj.get("preemptionPolicy") or "",
    ]


def _lease(obj: JsonObject, age: Age) -> list[Any]:
    return [obj["metadata"]["name"], spec_of(obj).get("holderIdentity") or "", meta_age(obj, age)]


CELLS: Final = {
    "ConfigMap": _config_map,
    "Event": _event,
    "Lease": _lease,
    "Namespace": _namespace,
    "Node": _node,
    "PodDisruptionBudget": _disruption_budget,
    "PriorityClass": _priority_class,
    "Secret": _secret,
    "Service": _service,
}
