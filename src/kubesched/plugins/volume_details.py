"""The claims, volumes and classes behind rejections of VolumeBinding.

the pod as a whole    claims that do not exist, or wait for a volume
nodes                 volumes that they cannot reach, classes that do not provision for them
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesched.api import labels
from kubesched.api.core import NodeSelector
from kubesched.api.storage import PersistentVolumeClaim, StorageClass, TopologySelectorTerm
from kubesched.cluster.arrays import BoolArray, IndexArray
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_selector import SelectorMatch
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.storage import Storage
from kubesched.framework.detail import Detail
from kubesched.plugins.volume_claims import LOST, PodClaims, is_fully_bound
from kubesched.plugins.volume_matching import STORAGE, required_nodes
from kubesched.plugins.volume_placement import (
    BIND_CONFLICT,
    NO_SUCH_VOLUME,
    NODE_CONFLICT,
    NOT_ENOUGH_SPACE,
    REASONS,
    VolumePlacement,
    selected_node,
)
from kubesched.plugins.volume_provisioning import (
    NO_PROVISIONER,
    NO_SPACE,
    Provisioning,
    volume_limit,
)

# --- the pod's claims ---------------------------------------------------------------------------


def unusable_claims(pod: PodInfo, storage: Storage) -> Iterator[Detail]:
    """Yield claims that do not exist, or have no volume yet and do not wait for the pod."""
    for mount in pod.volumes.mounts:
        name = f"{mount.namespace}/{mount.name}"
        claim = storage.claims.get(*mount.key)
        if claim is None:
            text = f"PersistentVolumeClaim {name} does not exist"
            yield Detail(text, {"claim": name, "exists": False})
        elif claim.status.phase == LOST:
            text = f"PersistentVolume {claim.spec.volume_name} of claim {name} does not exist"
            yield Detail(text, _of_claim(claim))
        elif not is_fully_bound(claim):
            yield Detail(f"PersistentVolumeClaim {name} {_waits(claim, storage)}", _of_claim(claim))


def _waits(claim: PersistentVolumeClaim, storage: Storage) -> str:
    """Return what a claim waits for, by its class and its volume."""
    if claim.spec.volume_name:
        return f"waits to be bound to PersistentVolume {claim.spec.volume_name}"
    size = f" of {requested_size(claim)}" if requested_size(claim) else ""
    if not claim.storage_class:
        return f"has no StorageClass and waits for a PersistentVolume{size}"
    known = storage.classes.get(claim.storage_class)
    if known is None:
        return f"waits: StorageClass {claim.storage_class} does not exist"
    if known.provisioner in ("", NO_PROVISIONER):
        return f"waits for a PersistentVolume{size} of class {claim.storage_class}"
    return f"waits for {known.provisioner} to make a volume{size} of class {claim.storage_class}"


def _of_claim(claim: PersistentVolumeClaim) -> dict[str, Any]:
    found: dict[str, Any] = {"claim": _name(claim)}
    if claim.storage_class:
        found["storageClass"] = claim.storage_class
    if claim.spec.volume_name:
        found["volume"] = claim.spec.volume_name
    if requested_size(claim):
        found["requested"] = requested_size(claim)
    return found


def _name(claim: PersistentVolumeClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def requested_size(claim: PersistentVolumeClaim) -> str:
    """Return how much storage a claim requests, as its author wrote it."""
    resources = claim.spec.resources
    requests = (resources and resources.requests) or {}
    return str(requests.get(STORAGE, ""))


# --- nodes --------------------------------------------------------------------------------------


class VolumeDetails:
    """Why nodes cannot have the volumes of a pod."""

    def __init__(
        self, claims: PodClaims, placement: VolumePlacement, storage: Storage, nodes: NodeRows
    ) -> None:
        self._claims = claims
        self._placement = placement
        self._storage = storage
        self._table = nodes.table
        self._rows = nodes.row_numbers()

    def __iter__(self) -> Iterator[Detail]:
        yield from self._bound()
        for claim in self._claims.delayed:
            yield from self._selected(claim)
        for where, needed in self._placement.provisions:
            yield from self._not_provisioned(where, needed)

    def _with(self, bit: int) -> IndexArray:
        return self._rows[(self._placement.reasons[self._rows] & bit) > 0]

    def _detail(
        self, claim: PersistentVolumeClaim, bit: int, rows: IndexArray, text: str, **more: object
    ) -> Iterator[Detail]:
        if len(rows):
            reason = REASONS[bit.bit_length() - 1]
            values = {**_of_claim(claim), **more}
            yield Detail(f"claim {_name(claim)}: {text}", values, reason, tuple(rows.tolist()))

    def _bound(self) -> Iterator[Detail]:
        for claim in self._claims.bound:
            name = claim.spec.volume_name
            volume = self._storage.volumes.get(name)
            if volume is None:
                text = f"PersistentVolume {name} does not exist"
                yield from self._detail(claim, NO_SUCH_VOLUME, self._with(NO_SUCH_VOLUME), text)
                continue
            selector = required_nodes(volume)
            if selector is None:
                continue
            rows = self._with(NODE_CONFLICT)
            missed = rows[~SelectorMatch(None, selector)(NodeRows(self._table, rows))]
            where = _conditions(selector)
            text = f"PersistentVolume {name} is only for nodes with {where}"
            yield from self._detail(claim, NODE_CONFLICT, missed, text, nodeAffinity=where)

    def _selected(self, claim: PersistentVolumeClaim) -> Iterator[Detail]:
        node = selected_node(claim)
        if node is not None:
            rows = self._with(BIND_CONFLICT)
            elsewhere = rows[rows != self._table.row_of(node)]
            text = f"its volume is being provisioned for node {node}"
            yield from self._detail(claim, BIND_CONFLICT, elsewhere, text, node=node)

    def _not_provisioned(self, where: Provisioning, needed: BoolArray) -> Iterator[Detail]:
        claim, size = where.claim, requested_size(where.claim)
        known = self._storage.classes.get(claim.storage_class)
        if known is None:
            return
        if where.allowed is not None:
            rows = self._with(BIND_CONFLICT)
            rows = rows[needed[rows] & ~where.allowed[rows]]
            yield from self._detail(claim, BIND_CONFLICT, rows, _not_allowed(known, size))
        if where.space is not None:
            rows = self._with(NOT_ENOUGH_SPACE)
            rows = rows[needed[rows] & (where.space.numbers[rows] == NO_SPACE)]
            largest = self._largest(claim.storage_class)
            rest = f"; the largest volume that it reports anywhere is {largest}" if largest else ""
            text = f"{size} requested, {known.provisioner} reports less for the node{rest}"
            more = {"driver": known.provisioner, "largest": largest}
            yield from self._detail(claim, NOT_ENOUGH_SPACE, rows, text, **more)

    def _largest(self, class_name: str) -> str:
        """Return the largest volume that some node could have, as its driver wrote it."""
        found = [
            (limit, str(each.maximum_volume_size or each.capacity))
            for each in self._storage.capacities.of_class(class_name)
            if (limit := volume_limit(each)) is not None
        ]
        return max(found)[1] if found else ""


def _not_allowed(storage_class: StorageClass, size: str) -> str:
    name = storage_class.metadata.name
    if storage_class.provisioner in ("", NO_PROVISIONER):
        size = f" of {size} or more" if size else ""
        return f"no free PersistentVolume{size} of class {name} is for the node"
    where = _allowed(storage_class.allowed_topologies)
    return f"StorageClass {name} provisions only on nodes with {where}"


def _conditions(selector: NodeSelector) -> str:
    terms = labels.node_selector_terms(selector)
    return " or ".join(
        ", ".join(map(str, (*term.labels, *term.fields))) or "(nothing)" for term in terms
    )


def _allowed(terms: tuple[TopologySelectorTerm, ...]) -> str:
    return " or ".join(
        ", ".join(
            f"{each.key} in ({','.join(each.values)})" for each in term.match_label_expressions
        )
        for term in terms
    )
