"""Which nodes a DaemonSet's pods go to, and how a pod is tied to one."""

from __future__ import annotations

from typing import Any, Final

from kubesched.api.core import NodeSelector
from kubesched.api.decoding import convert
from kubesched.api.labels import node_selector_terms

JsonObject = dict[str, Any]

#: Taints that pods of daemons tolerate in addition to what their template says.
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def runs_on(spec: JsonObject, node: JsonObject) -> bool:
    """Tell whether a node is one that a template's pods go to."""
    labels, name = node["metadata"].get("labels") or {}, node["metadata"]["name"]
    wanted = (spec.get("nodeSelector") or {}).items()
    if not all(labels.get(key) == value for key, value in wanted):
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    if required is not None:
        terms = node_selector_terms(convert(required, NodeSelector))
        if not any(term.matches(labels, {"metadata.name": name}) for term in terms):
            return False
    tolerations = [*_usual(), *(spec.get("tolerations") or ())]
    taints = (node.get("spec") or {}).get("taints") or ()
    firm = (taint for taint in taints if taint.get("effect") != "PreferNoSchedule")
    return all(any(_tolerates(each, taint) for each in tolerations) for taint in firm)


def bound_to(spec: JsonObject, node: str) -> JsonObject:
    """Return a template's spec with an affinity to one node, for the scheduler to bind it there."""
    affinity = dict(spec.get("affinity") or {})
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    of_nodes = dict(affinity.get("nodeAffinity") or {})
    of_nodes[_REQUIRED] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity["nodeAffinity"] = of_nodes
    tolerations = [*(spec.get("tolerations") or ()), *_usual()]
    return {**spec, "affinity": affinity, "tolerations": tolerations}


def node_of(pod: JsonObject) -> str:
    """Return the node that a daemon's pod is on or tied to."""
    if name := pod["spec"].get("nodeName"):
        return str(name)
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""


def _usual() -> list[JsonObject]:
    return [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _TOLERATED]


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint.get("key"):
        return False
    same = toleration.get("value", "") == taint.get("value", "")
    return toleration.get("operator") == "Exists" or same
