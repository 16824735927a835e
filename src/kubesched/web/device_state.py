"""Devices where people see them: of a node, and of a pod's claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesched.api.core import Node, Pod
from kubesched.api.labels import node_selector_terms
from kubesched.api.resource import (
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from kubesched.web.report import ClaimTold, DevicePoolTold, DeviceTold
from kubesched.web.state import PageState


def devices_of(state: PageState, node: Node) -> tuple[DevicePoolTold, ...]:
    """Return the pools that a node has devices of, its own first."""
    slices = [each for each in state.objects("ResourceSlice") if _reaches(each, node)]
    if not slices:
        return ()
    users = _users(state.objects("ResourceClaim"))
    pools: dict[tuple[bool, str, str], list[DeviceTold]] = {}
    for each in _newest(slices):
        spec = each.spec
        told = pools.setdefault((spec.node_name is None, spec.driver, spec.pool.name), [])
        for device in spec.devices:
            claims = users.get((spec.driver, spec.pool.name, device.name), ())
            pods = dict.fromkeys(pod for claim in claims for pod in _pods(claim))
            told.append(DeviceTold(device.name, tuple(map(_name, claims)), tuple(pods)))
    return tuple(
        DevicePoolTold(
            driver=driver,
            pool=pool,
            shared=shared,
            total=len(devices),
            allocated=sum(1 for each in devices if each.claims),
            devices=tuple(devices),
        )
        for (shared, driver, pool), devices in sorted(pools.items())
    )


def claims_of(state: PageState, pod: Pod) -> tuple[ClaimTold, ...]:
    """Return the claims of a pod, those that are still to be made from a template included."""
    wanted = pod.spec.resource_claims
    if not wanted:
        return ()
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    namespace = pod.metadata.namespace
    there = {_name(each): each for each in state.objects("ResourceClaim")}
    told = []
    for each in wanted:
        name = each.resource_claim_name or made.get(each.name) or ""
        claim = there.get(f"{namespace}/{name}")
        told.append(ClaimTold(each.name, name) if claim is None else _told(each.name, claim))
    return tuple(told)


def _told(name: str, claim: ResourceClaim) -> ClaimTold:
    results = list(_results(claim))
    state = "pending"
    if claim.status.allocation is not None:
        state = "reserved" if claim.status.reserved_for else "allocated"
    return ClaimTold(
        name=name,
        claim=claim.metadata.name,
        state=state,
        requests=tuple(line for each in claim.spec.devices.requests for line in _request(each)),
        devices=tuple(f"{each.driver}/{each.pool}/{each.device}" for each in results),
    )


def _request(request: DeviceRequest) -> Iterator[str]:
    """Describe a request; of several alternatives each has its line."""
    if request.exactly is not None:
        yield f"{request.name}: {_amount(request.exactly)}"
    for number, each in enumerate(request.first_available):
        yield f"{request.name}: {'or ' if number else ''}{_amount(each)}"


def _amount(wanted: ExactDeviceRequest | DeviceSubRequest) -> str:
    count = "all" if wanted.allocation_mode == "All" else str(wanted.count or 1)
    selectors = [each.cel.expression for each in wanted.selectors if each.cel is not None]
    where = f" where {' and '.join(selectors)}" if selectors else ""
    return f"{count} of {wanted.device_class_name}{where}"


# --- inside -------------------------------------------------------------------------------------


def _reaches(each: ResourceSlice, node: Node) -> bool:
    """Tell whether a node has the devices of a slice; those placed one by one count for all."""
    spec = each.spec
    if spec.node_name is not None:
        return spec.node_name == node.metadata.name
    if spec.node_selector is not None:
        labels, fields = node.metadata.labels or {}, {"metadata.name": node.metadata.name}
        terms = node_selector_terms(spec.node_selector)
        return any(term.matches(labels, fields) for term in terms)
    return bool(spec.all_nodes)


def _newest(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """Return the slices of each pool's newest generation."""
    slices = list(slices)
    newest: dict[tuple[str, str], int] = {}
    for each in slices:
        key = each.spec.driver, each.spec.pool.name
        newest[key] = max(newest.get(key, 0), each.spec.pool.generation)
    return [
        each
        for each in slices
        if each.spec.pool.generation == newest[each.spec.driver, each.spec.pool.name]
    ]


def _users(claims: Iterable[ResourceClaim]) -> dict[tuple[str, str, str], list[ResourceClaim]]:
    """Return the claims that each device is allocated to."""
    users: dict[tuple[str, str, str], list[ResourceClaim]] = {}
    for claim in claims:
        for result in _results(claim):
            users.setdefault((result.driver, result.pool, result.device), []).append(claim)
    return users


def _results(claim: ResourceClaim) -> Iterable[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.results


def _pods(claim: ResourceClaim) -> Iterator[str]:
    for user in claim.status.reserved_for:
        if user.resource == "pods":
            yield f"{claim.metadata.namespace}/{user.name}"


def _name(claim: ResourceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"
