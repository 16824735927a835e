"""A simulated driver of devices: it publishes a slice for each of its nodes.

    SimulatedDriver("gpu.example.com", {"pool": "gpu"}, devices)

A node that has the labels has the devices; when it goes, so does its slice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubesched.embedded.following import follow
from kubesched.embedded.registry import ObjectRegistry, Where
from kubesched.embedded.resources import BY_KIND, NODES

JsonObject = dict[str, Any]

SLICES: Final = BY_KIND["resource.k8s.io/v1", "ResourceSlice"]


@dataclass(frozen=True)
class SimulatedDriver:
    """A driver: its name, the nodes that it runs on, and the devices that each of them has."""

    name: str
    node_labels: Mapping[str, str]
    #: as in a ResourceSlice
    devices: Sequence[JsonObject]

    def runs_on(self, node: JsonObject) -> bool:
        """Tell whether a node has the devices."""
        labels = node["metadata"].get("labels") or {}
        return all(labels.get(key) == value for key, value in self.node_labels.items())

    def slice_of(self, node: JsonObject) -> JsonObject:
        """Return what the driver publishes for a node."""
        name, uid = node["metadata"]["name"], node["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": True}
        return {
            "metadata": {"name": f"{name}-{self.name}", "ownerReferences": [owner]},
            "spec": {
                "driver": self.name,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [dict(device) for device in self.devices],
            },
        }


class SliceController:
    """Publishes the slices of all drivers."""

    def __init__(self, registry: ObjectRegistry, drivers: Sequence[SimulatedDriver]) -> None:
        self._registry = registry
        self._store = registry.store
        self._drivers = tuple(drivers)

    async def run(self) -> None:
        """Work until cancelled."""
        await follow(self._store, NODES, self.look_at_node)

    def look_at_node(self, name: str) -> None:
        """Publish the slices of a node, or withdraw them."""
        node = self._store.get(NODES, name)
        for driver in self._drivers:
            published = self._store.get(SLICES, f"{name}-{driver.name}")
            wanted = node is not None and driver.runs_on(node.obj)
            if published is not None and not wanted:
                self._store.remove(SLICES, published)
            elif published is None and node is not None and wanted:
                self._registry.create(Where(SLICES, ""), driver.slice_of(node.obj))
