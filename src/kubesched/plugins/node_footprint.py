"""Whether nodes have what the devices of a pod take of their own resources.

Where the same devices serve the pod's claims, they take the same: nodes are looked at in groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from kubesched.api import names
from kubesched.api.requests import pod_requests
from kubesched.api.resource import AllocationResult, Device, DeviceRequestAllocationResult
from kubesched.cluster.arrays import BoolArray, IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.device_pools import Place, PoolSlice
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import Claimed
from kubesched.cluster.visible_devices import usable_on
from kubesched.errors import ObjectError
from kubesched.framework.status import Status, error
from kubesched.framework.verdict import Verdict, first_of, reject
from kubesched.plugins.node_allocatable import (
    UsedClaim,
    UsedDevice,
    claim_statuses,
    uncovered,
    with_claims,
)
from kubesched.plugins.node_resources_fit import insufficient
from kubesched.plugins.pod_devices import PodDevices

_CHECKED: Final = (names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE)

#: Number of a claim → its devices.
Used = Mapping[int, tuple[UsedDevice, ...]]


class NodeGroup(NamedTuple):
    """Nodes on which the same devices serve the claims of a pod."""

    nodes: BoolArray
    used: Used


class Footprints:
    """What pods take of nodes for the sake of their devices."""

    def __init__(self, cluster: Cluster, *, pod_level: bool) -> None:
        self._devices = cluster.devices
        #: the gate PodLevelResources
        self._pod_level = pod_level

    @property
    def are_needed(self) -> bool:
        """Whether some device takes something of its node at all."""
        return self._devices.table.takers > 0

    def is_mapped(self, allocation: AllocationResult) -> bool:
        """Return whether a device is an amount of its node's resource: then one pod can have it."""
        return any(
            takes.mapping is not None
            for result in allocation.devices.results
            for _, row in self._published(result)[:1]
            for takes in self._devices.table.device_at(row).node_allocatable_resources.values()
        )

    def verdict(self, devices: PodDevices, groups: Sequence[NodeGroup], nodes: NodeRows) -> Verdict:
        """Reject nodes that lack what devices take of them."""
        parts: list[Verdict] = []
        for mask, used in self._all_used(devices, groups, nodes):
            claimed = self._claimed(devices, used)
            if isinstance(claimed, Status):
                parts.append(reject(mask, claimed))
            elif claimed:
                parts.append(self._fitting(devices, claimed, mask, nodes))
        return first_of(*parts)

    def claimed(self, devices: PodDevices, group: NodeGroup, nodes: NodeRows) -> Claimed:
        """Return what the claims of a pod take of the only node, which was found to fit."""
        for _, used in self._all_used(devices, [group], nodes):
            claimed = self._claimed(devices, used)
            return () if isinstance(claimed, Status) else claimed
        return ()

    def _claimed(self, devices: PodDevices, used: Used) -> Claimed | Status:
        claims = [UsedClaim(devices.claims[number], used[number]) for number in sorted(used)]
        try:
            claimed = claim_statuses(devices.pod, claims, devices.uids)
        except ObjectError as unknown:
            return error(str(unknown))
        if self._pod_level:
            return uncovered(with_claims(devices.pod, claimed)) or claimed
        return claimed

    def _fitting(
        self, devices: PodDevices, claimed: Claimed, mask: BoolArray, nodes: NodeRows
    ) -> Verdict:
        pod = with_claims(devices.pod, claimed)
        wanted = pod_requests(pod, pod_level=self._pod_level, claims=True)
        pages = sorted(name for name in wanted if name.startswith(names.HUGEPAGES_PREFIX))
        lacking: list[tuple[str, BoolArray]] = []
        impossible: BoolArray | None = None
        for name in (*_CHECKED, *pages):
            amount = wanted.get(name, 0)
            number = nodes.table.resources.find(name)
            allocatable = np.zeros(len(nodes), dtype=np.int64)
            left = allocatable
            if number is not None:
                allocatable = nodes.allocatable(number)
                left = allocatable - nodes.requested(number)
            short = mask & (amount > left) & (amount > 0 or name in pages)
            if np.count_nonzero(short):
                lacking.append((f"Insufficient {name}", short))
                too_large = short & (amount > allocatable)
                impossible = too_large if impossible is None else impossible | too_large
        return insufficient(lacking, impossible)

    # --- devices of claims that are allocated already -------------------------------------------

    def _all_used(
        self, devices: PodDevices, groups: Sequence[NodeGroup], nodes: NodeRows
    ) -> Iterator[NodeGroup]:
        """Divide groups of nodes further, by what they see of devices that are allocated."""
        fixed = {number: allocation.devices.results for number, allocation in devices.fixed.items()}
        found = [
            (number, each, *self._seen(each, nodes)) for number in fixed for each in fixed[number]
        ]
        columns = [column for *_, column in found]
        keys = np.stack(columns) if columns else np.zeros((1, len(nodes)), dtype=np.intp)
        kinds, of_node = np.unique(keys, axis=1, return_inverse=True)
        for mask, used in groups:
            for kind in np.unique(of_node[mask]).tolist():
                more: dict[int, list[UsedDevice]] = {number: [] for number in fixed}
                for (number, result, said, _), which in zip(found, kinds[:, kind], strict=False):
                    key = (result.driver, result.pool, result.device)
                    consumed = result.consumed_capacity or None
                    more[number].append(UsedDevice(key, consumed, said[which]))
                together = {**used, **{number: tuple(each) for number, each in more.items()}}
                yield NodeGroup(mask & (of_node == kind), together)

    def _seen(
        self, result: DeviceRequestAllocationResult, nodes: NodeRows
    ) -> tuple[list[Device | str], IndexArray]:
        """Return the possible descriptions of a device, and for each node the index of its own."""
        missing = (
            f"device {result.device} not found in pool {result.pool} for driver {result.driver}"
        )
        elsewhere = f"device {result.device} does not match node"
        said: list[Device | str] = [missing, elsewhere]
        which = np.zeros(len(nodes), dtype=np.intp)
        is_open = np.ones(len(nodes), dtype=np.bool_)
        for each, row in self._published(result):
            place = each.place
            if place is not None:
                sees = is_open & usable_on(place, nodes)
                which[sees] = len(said)
            else:
                sees = is_open.copy()
                which[sees] = np.where(usable_on(_own_place(each, row), nodes)[sees], len(said), 1)
            said.append(self._devices.table.device_at(row))
            is_open &= ~sees
        return said, which

    def _published(self, result: DeviceRequestAllocationResult) -> list[tuple[PoolSlice, int]]:
        """Return the slices that have a device, and its row there."""
        return [
            (each, row)
            for each in self._devices.slices_of((result.driver, result.pool))
            for row, device in zip(each.rows, each.spec.devices, strict=True)
            if device.name == result.device
        ]


def _own_place(each: PoolSlice, row: int) -> Place:
    places = each.device_places
    if places is None:
        raise ValueError("the slice says where all of its devices are")
    return places[each.rows.index(row)]
