"""What is written into a claim: the devices it gets, how to configure them, and for which nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final
from uuid import uuid4

from msgspec.structs import replace

from kubesched.api import labels, names
from kubesched.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequestAllocationResult,
)
from kubesched.cluster.device_table import DeviceTable
from kubesched.errors import ObjectError
from kubesched.plugins.device_requests import WantedRequest
from kubesched.plugins.device_rules import SearchRules
from kubesched.plugins.device_search import Pick

FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"
#: How many node selectors for single nodes are cached.
_NODES: Final = 8192


def allocation_result(
    spec: DeviceClaim,
    picks: Sequence[Pick],
    chosen: Sequence[WantedRequest],
    *,
    table: DeviceTable,
    node_name: str,
    rules: SearchRules,
) -> AllocationResult:
    """Return what a claim gets on a node: devices, for the alternatives that were chosen.

    Raises ObjectError if a slice selects nodes in a way that cannot be written.
    """
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(_result(each, table, rules) for each in picks),
            config=_configuration(spec, chosen),
        ),
        node_selector=_node_selector([each.row for each in picks], table, node_name, rules),
    )


def _result(pick: Pick, table: DeviceTable, rules: SearchRules) -> DeviceRequestAllocationResult:
    driver, pool, name = table.keys[pick.row]
    device = table.device_at(pick.row)
    return DeviceRequestAllocationResult(
        request=pick.request.full_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if pick.request.is_admin else None,
        tolerations=pick.request.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=None if pick.share is None else str(uuid4()),
        consumed_capacity=pick.share or {},
        skip_node_operations=table.skipped[pick.row] if rules.is_experimental else (),
    )


def _configuration(
    spec: DeviceClaim, chosen: Sequence[WantedRequest]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Return the configuration of classes, each once, and then that of the claim."""
    by_class: dict[str, list[str]] = {}
    for each in chosen:
        by_class.setdefault(each.class_name, []).append(each.full_name)
    classes = {each.class_name: each.device_class for each in chosen}
    found = [
        DeviceAllocationConfiguration(
            source=FROM_CLASS, requests=tuple(requests), opaque=each.opaque
        )
        for name, requests in by_class.items()
        if (device_class := classes[name]) is not None
        for each in device_class.spec.config
    ]
    found += [
        DeviceAllocationConfiguration(source=FROM_CLAIM, requests=each.requests, opaque=each.opaque)
        for each in spec.config
        if not each.requests or any(_is_named(request, each.requests) for request in chosen)
    ]
    # What is for all requests names none.
    return tuple(
        replace(each, requests=())
        if all(_is_named(request, each.requests) for request in chosen)
        else each
        for each in found
    )


def _is_named(request: WantedRequest, requests: Sequence[str]) -> bool:
    return request.name in requests or request.full_name in requests


def _node_selector(
    rows: Iterable[int], table: DeviceTable, node_name: str, rules: SearchRules
) -> NodeSelector | None:
    """Return the nodes on which all devices can be used; None for all nodes."""
    expressions: list[NodeSelectorRequirement] = []
    fields: list[NodeSelectorRequirement] = []
    for row in rows:
        reach = table.reach[row]
        binds = table.device_at(row).binds_to_node and not rules.is_stable
        if reach.node_name is not None or binds:
            return _only(node_name)
        terms = () if reach.selector is None else reach.selector.node_selector_terms
        if len(terms) > 1:
            raise ObjectError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _extend(expressions, term.match_expressions)
            _extend(fields, term.match_fields)
    if not expressions and not fields:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


@lru_cache(maxsize=_NODES)
def _only(node_name: str) -> NodeSelector:
    is_it = NodeSelectorRequirement(
        key=names.FIELD_NODE_NAME, operator=labels.IN, values=(node_name,)
    )
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(is_it,)),))


def _extend(known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for each in more:
        if not any(_are_alike(each, other) for other in known):
            known.append(each)


def _are_alike(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (one.key, one.operator, set(one.values)) == (
        other.key,
        other.operator,
        set(other.values),
    )
