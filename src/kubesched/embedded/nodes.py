"""Simulated nodes, created from a template and spread over zones.

NodeTemplate(cpu="32", zones=("a", "b")).nodes(1000)   →   node-0000 in a, node-0001 in b, …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubesched import KUBERNETES_VERSION
from kubesched.api import names

JsonObject = dict[str, Any]

_REGION: Final = "region-1"


@dataclass(frozen=True)
class NodeTemplate:
    """The common properties of the nodes."""

    cpu: str = "8"
    memory: str = "32Gi"
    pods: int = 110
    ephemeral_storage: str = "100Gi"
    #: further resources, such as {"nvidia.com/gpu": "8"}
    resources: Mapping[str, str] = field(default_factory=dict)
    #: nodes are assigned to zones in turn; without zones there is no zone label
    zones: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    #: format of the name, with the node's number
    name_format: str = "node-{:04d}"

    def nodes(self, count: int, *, start: int = 0) -> Iterator[JsonObject]:
        """Return `count` nodes, numbered from ``start``."""
        return (self.node(number) for number in range(start, start + count))

    def node(self, number: int) -> JsonObject:
        """Return one node."""
        name = self.name_format.format(number)
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": self._labels(name, number)},
            "spec": {"taints": [dict(taint) for taint in self.taints]} if self.taints else {},
            "status": self._status(name, number),
        }

    def _labels(self, name: str, number: int) -> dict[str, str]:
        labels = {
            names.LABEL_HOSTNAME: name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }
        if self.zones:
            labels[names.LABEL_ZONE] = self.zones[number % len(self.zones)]
            labels[names.LABEL_REGION] = _REGION
        return {**labels, **self.labels}

    def _status(self, name: str, number: int) -> JsonObject:
        amounts = {
            "cpu": self.cpu,
            "memory": self.memory,
            "pods": str(self.pods),
            "ephemeral-storage": self.ephemeral_storage,
            **self.resources,
        }
        address = f"10.{64 + number // 65536 % 64}.{number // 256 % 256}.{number % 256}"
        return {
            "capacity": amounts,
            "allocatable": dict(amounts),
            "conditions": [],
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "kubeletVersion": KUBERNETES_VERSION,
                "osImage": "kubesched",
                "operatingSystem": "linux",
                "architecture": "amd64",
                "kernelVersion": "",
                "containerRuntimeVersion": "",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kubeProxyVersion": "",
            },
        }


def ready_condition(now: str) -> JsonObject:
    """Return the Ready condition of a healthy node."""
    return {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
    }
