"""Changes that give a pod the devices that it claims: other claims, or fewer users of devices.

count         as many devices as some node has
selectors     without one part of one
taints        tolerate the one that excludes devices
constraints   without one
evictions     pods that use devices which the pod could have
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from kubesched.api.resource import (
    CELDeviceSelector,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from kubesched.cluster.pod_info import PodInfo
from kubesched.explain.case import Case, Kind, Proposal
from kubesched.explain.device_words import conjuncts, readable, taint_text
from kubesched.explain.devices import Holders, asked_devices
from kubesched.explain.surroundings import eviction
from kubesched.plugins.device_census import CountedRequest, DeviceCensus
from kubesched.plugins.device_ledger import Obstacle
from kubesched.plugins.dynamic_resources import DynamicResources

COST_FEWER = 0.2
COST_TOLERATED_DEVICE = 0.4
COST_SELECTOR = 0.3
COST_CONSTRAINT = 0.3

#: So many of the closest nodes are looked at, and so many users of their devices.
_NODES = 12
_USERS = 32
#: What other pods can end by going.
_BY_OTHERS = (Obstacle.IN_USE, Obstacle.CAPACITY, Obstacle.COUNTER)

Request = ExactDeviceRequest | DeviceSubRequest
Change = Callable[[Request], Request]


def proposals(case: Case) -> Iterator[Proposal]:
    """Propose changes for a pod whose claims cannot be served somewhere."""
    for census in asked_devices(case):
        counting = _Closest(case, census)
        yield from _fewer(case, counting)
        yield from _tolerations(case, counting)
        yield from _selectors(case, counting)
        yield from _constraints(case, census)
        yield from _evictions(case, counting)


class _Closest:
    """The nodes on which fewest devices are missing."""

    def __init__(self, case: Case, census: DeviceCensus) -> None:
        self.census = census
        alone = set(case.reasons.rows_only_by(DynamicResources.name).tolist())
        found = []
        for number, rows in census.rows_with_devices().items():
            mine = [row for row in rows if row in alone]
            if mine:
                counted = census.count(number)
                found.append((sum(each.missing for each in counted), number, mine[0], counted))
        found.sort(key=lambda each: each[:3])
        self.nodes = [(number, row, counted) for _, number, row, counted in found[:_NODES]]
        #: over all nodes, by request
        self.requests: list[list[CountedRequest]] = [
            [counted[position] for *_, counted in found]
            for position in range(len(list(census.requests())))
        ]


# --- other claims -----------------------------------------------------------------------------


def _with_request(claim: ResourceClaim, name: str, change: Change) -> ResourceClaim:
    """Return a claim of which one request, or one alternative, is another."""
    own, _, alternative = name.partition("/")

    def changed(request: DeviceRequest) -> DeviceRequest:
        if request.name != own:
            return request
        if request.exactly is not None:
            return replace(request, exactly=change(request.exactly))
        several = tuple(
            change(each) if each.name == alternative else each for each in request.first_available
        )
        return replace(request, first_available=several)

    asked = claim.spec.devices
    asked = replace(asked, requests=tuple(map(changed, asked.requests)))
    return replace(claim, spec=replace(claim.spec, devices=asked))


def _proposal(case: Case, claim: ResourceClaim, kind: Kind, title: str, cost: float) -> Proposal:
    return Proposal(kind=kind, title=title, cost=cost, pod=case.pod, claims=(claim,))


def _fewer(case: Case, closest: _Closest) -> Iterator[Proposal]:
    census = closest.census
    for position, (number, request) in enumerate(census.requests()):
        if request.is_all or request.count < 2:
            continue
        most = max(
            (census.most(each, counted[position]) for each, _, counted in closest.nodes), default=0
        )
        if 0 < most < request.count:
            claim = _with_request(census.claims[number], request.full_name, _counting(most))
            title = f"claim {most} devices instead of {request.count} in request {request.name}"
            cost = COST_FEWER + (request.count - most) / request.count
            yield _proposal(case, claim, "deviceCount", title, cost)


def _counting(count: int) -> Change:
    return lambda request: replace(request, count=count)


def _tolerations(case: Case, closest: _Closest) -> Iterator[Proposal]:
    census = closest.census
    for position, (number, request) in enumerate(census.requests()):
        taints: dict[DeviceTaint, None] = {}
        for counted in closest.requests[position]:
            for row, obstacle in counted.obstacles.items():
                taint = request.match.untolerated(row) if obstacle is Obstacle.TAINT else None
                if taint is not None:
                    taints[replace(taint, time_added=None)] = None
        for taint in taints:
            claim = _with_request(census.claims[number], request.full_name, _tolerating(taint))
            title = f"tolerate device taint {taint_text(taint)} in request {request.name}"
            yield _proposal(case, claim, "deviceToleration", title, COST_TOLERATED_DEVICE)


def _tolerating(taint: DeviceTaint) -> Change:
    operator = "Equal" if taint.value else "Exists"
    toleration = DeviceToleration(
        key=taint.key, operator=operator, value=taint.value, effect=taint.effect
    )
    return lambda request: replace(request, tolerations=(*request.tolerations, toleration))


def _selectors(case: Case, closest: _Closest) -> Iterator[Proposal]:
    census = closest.census
    for number, request in census.requests():
        spec = _spec_of(census.claims[number], request.full_name)
        for index, selector in enumerate(spec.selectors if spec is not None else ()):
            expression = selector.cel.expression if selector.cel is not None else ""
            parts = conjuncts(expression) if expression else ()
            for position, part in enumerate(parts):
                rest = [*parts[:position], *parts[position + 1 :]]
                change = _selecting(index, " && ".join(rest))
                claim = _with_request(census.claims[number], request.full_name, change)
                title = f"drop device selector {readable(part)} of request {request.name}"
                yield _proposal(case, claim, "deviceSelector", title, COST_SELECTOR)


def _selecting(index: int, expression: str) -> Change:
    """Give a request another expression in place of one; none if it is empty."""
    instead = (DeviceSelector(cel=CELDeviceSelector(expression=expression)),) if expression else ()

    def change(request: Request) -> Request:
        before, after = request.selectors[:index], request.selectors[index + 1 :]
        return replace(request, selectors=(*before, *instead, *after))

    return change


def _spec_of(claim: ResourceClaim, name: str) -> Request | None:
    own, _, alternative = name.partition("/")
    for request in claim.spec.devices.requests:
        if request.name == own and request.exactly is not None:
            return request.exactly
        if request.name == own:
            return next((e for e in request.first_available if e.name == alternative), None)
    return None


def _constraints(case: Case, census: DeviceCensus) -> Iterator[Proposal]:
    for claim in census.claims:
        constraints = claim.spec.devices.constraints
        for index, each in enumerate(constraints):
            rest = (*constraints[:index], *constraints[index + 1 :])
            asked = replace(claim.spec.devices, constraints=rest)
            changed = replace(claim, spec=replace(claim.spec, devices=asked))
            attribute = each.match_attribute or each.distinct_attribute
            which = "the same" if each.match_attribute else "different"
            title = f"drop the constraint that devices have {which} {attribute}"
            yield _proposal(case, changed, "deviceConstraint", title, COST_CONSTRAINT)


# --- users of devices -------------------------------------------------------------------------


def _evictions(case: Case, closest: _Closest) -> Iterator[Proposal]:
    """Propose to evict the fewest users of devices, the least important first."""
    holders = Holders(case)
    found: list[tuple[tuple[int, int, str], tuple[PodInfo, ...], int]] = []
    for _, row, counted in closest.nodes:
        victims = _needed(case, _users(case, closest.census, holders, counted))
        if victims:
            rank = max(each.priority for each in victims), len(victims), case.table.name_at(row)
            found.append((rank, victims, row))
    if found:
        _, victims, row = min(found, key=lambda each: each[0])
        yield eviction(case, victims, row)


def _users(
    case: Case, census: DeviceCensus, holders: Holders, counted: Sequence[CountedRequest]
) -> list[PodInfo]:
    """Return the pods that use devices which requests could have, the least important first."""
    rows = {
        row: None
        for each in counted
        for row, obstacle in each.obstacles.items()
        if obstacle in _BY_OTHERS
    }
    # Counters are drawn on by devices that may not serve the request themselves.
    if any(Obstacle.COUNTER in each.obstacles.values() for each in counted):
        rows |= {row: None for each in counted for row in each.obstacles}
    uids = {
        user.uid: None
        for row in rows
        for claim in holders.claims(census.table.keys[row])
        for user in claim.status.reserved_for
    }
    pods = [pod for uid in uids if (pod := case.world.cluster.pod(uid)) is not None]
    moving = [pod for pod in pods if not case.would_come_back(pod)]
    return sorted(moving, key=lambda pod: (pod.priority, pod.full_name))


def _needed(case: Case, users: Sequence[PodInfo]) -> tuple[PodInfo, ...]:
    """Return as few of some users as have to go for the pod to fit, none if all do not help."""
    chosen: list[PodInfo] = []
    for user in users[:_USERS]:
        chosen.append(user)
        if case.fits_without(chosen):
            break
    else:
        return ()
    for user in tuple(chosen):
        rest = [each for each in chosen if each is not user]
        if case.fits_without(rest):
            chosen = rest
    return tuple(chosen)
