"""What speaks against the devices that a pod claims: in the cluster, and on the closest nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from kubesched.api.resource import ResourceClaim
from kubesched.cluster.device_table import DeviceKey
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_selector import SelectorMatch
from kubesched.explain.case import Case
from kubesched.explain.device_words import lacking, readable, taint_text
from kubesched.explain.report import (
    ClaimAnswer,
    DeviceCause,
    DeviceExplanation,
    DeviceRequestAnswer,
    NodeDeviceAnswer,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import listed
from kubesched.plugins.device_census import CountedRequest, DeviceCensus
from kubesched.plugins.device_ledger import Obstacle
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.pod_claims import shown

_CLOSEST = 5
_NAMED = 3
#: For so many of the closest nodes it is found out how many devices can be had together.
_SEARCHED = 24


#: Whether something else speaks against the node, how many devices are missing, its name.
_Rank = tuple[bool, int, str]


class _Cause(Struct, frozen=True):
    """What excludes a device, in words."""

    obstacle: Obstacle
    text: str


def explain_devices(case: Case) -> DeviceExplanation | None:
    """Return what speaks against devices; None for a pod that claims none, or whose claims lack."""
    asked = asked_devices(case)
    allocated = _allocated(case)
    if not asked and not allocated:
        return None
    found = [_Counting(case, census) for census in asked]
    closest = sorted((each for one in found for each in one.nodes()), key=lambda pair: pair[0])
    rows = {row for one in found for row in one.rows}
    return DeviceExplanation(
        devices=len({row for one in found for row in one.device_rows}),
        nodes=len(rows),
        requests=tuple(answer for one in found for answer in one.requests()),
        closest=tuple(_without_alike([answer for _, answer in closest])[:_CLOSEST]),
        allocated=allocated,
    )


def asked_devices(case: Case) -> list[DeviceCensus]:
    """Return the census of the pod's claims that have no devices yet."""
    plugin = next(
        (each for each in case.framework.plugins.filter if isinstance(each, DynamicResources)), None
    )
    if plugin is None:
        return []
    state = CycleState()
    everywhere = NodeRows.all_of(case.table)
    if not plugin.pre_filter(state, case.info, everywhere).status.ok:
        return []
    return plugin.census(state)


class Holders:
    """Which pods use which devices."""

    def __init__(self, case: Case) -> None:
        self._claims: dict[DeviceKey, list[ResourceClaim]] = {}
        for claim in case.world.cluster.devices.claims:
            allocation = claim.status.allocation
            for result in allocation.devices.results if allocation is not None else ():
                if not result.admin_access:
                    key = (result.driver, result.pool, result.device)
                    self._claims.setdefault(key, []).append(claim)

    def claims(self, key: DeviceKey) -> Sequence[ResourceClaim]:
        """Return the claims that have a device."""
        return self._claims.get(key, ())

    def names(self, keys: Iterable[DeviceKey]) -> list[str]:
        """Return the pods that use devices, and claims that no pod uses."""
        found: dict[str, None] = {}
        for key in keys:
            for claim in self.claims(key):
                namespace = claim.metadata.namespace
                pods = [f"{namespace}/{each.name}" for each in claim.status.reserved_for]
                found.update(dict.fromkeys(pods or [f"claim {shown(claim)}"]))
        return list(found)


class _Counting:
    """The devices for one set of claims."""

    def __init__(self, case: Case, census: DeviceCensus) -> None:
        self._case = case
        self._census = census
        self._table = census.table
        self._holders = Holders(case)
        self._rows_of = census.rows_with_devices()
        self._counted = {number: census.count(number) for number in self._rows_of}
        self.rows = [row for rows in self._rows_of.values() for row in rows]
        self.device_rows = {row for each in self._rows_of for row in census.sees(each).rows}
        #: what is told of devices with the same properties
        self._told: dict[bytes, _Cause] = {}

    # --- all devices ------------------------------------------------------------------------

    def requests(self) -> list[DeviceRequestAnswer]:
        """Return an answer for each request, over all devices that nodes see."""
        return [self._request(position) for position, _ in enumerate(self._census.requests())]

    def _request(self, position: int) -> DeviceRequestAnswer:
        merged: dict[int, Obstacle | None] = {}
        problem = ""
        for counted in (each[position] for each in self._counted.values()):
            problem = problem or counted.problem
            for row, obstacle in counted.obstacles.items():
                # A device that several nodes see may be out of reach of some of them only.
                if row not in merged or merged[row] is Obstacle.NODE:
                    merged[row] = obstacle
        claim, request = list(self._census.requests())[position]
        whole = CountedRequest(claim, request, merged, problem)
        return DeviceRequestAnswer(
            claim=shown(self._census.claims[claim]),
            request=request.full_name,
            device_class=request.class_name,
            count=0 if request.is_all else request.count,
            devices=len(merged),
            usable=len(whole.usable),
            causes=self._causes(whole),
            problem=problem,
        )

    def _causes(self, counted: CountedRequest) -> tuple[DeviceCause, ...]:
        rows_by: dict[_Cause, list[int]] = {}
        for row, obstacle in counted.obstacles.items():
            if obstacle is not None:
                rows_by.setdefault(self._cause(counted, row, obstacle), []).append(row)
        order = list(Obstacle)
        found = [
            DeviceCause(
                cause=cause.obstacle.value,
                text=cause.text,
                devices=len(rows),
                pods=tuple(self._holders.names(self._table.keys[row] for row in rows))
                if cause.obstacle is Obstacle.IN_USE
                else (),
            )
            for cause, rows in rows_by.items()
        ]
        return tuple(sorted(found, key=lambda each: (order.index(Obstacle(each.cause)), each.text)))

    def _cause(self, counted: CountedRequest, row: int, obstacle: Obstacle) -> _Cause:
        match = counted.request.match
        if obstacle is Obstacle.SELECTOR:
            device, driver = self._table.device_at(row), self._table.keys[row][0]
            properties = (device.attributes, device.capacity, device.allow_multiple_allocations)
            key = msgspec.json.encode((driver, properties, id(match)))
            told = self._told.get(key)
            if told is None:
                told = self._told[key] = self._rejected(counted, row)
            return told
        taint = match.untolerated(row) if obstacle is Obstacle.TAINT else None
        if taint is not None:
            return _Cause(obstacle, f"have taint {taint_text(taint)}")
        return _Cause(obstacle, _TEXTS[obstacle])

    def _rejected(self, counted: CountedRequest, row: int) -> _Cause:
        selector = counted.request.match.rejecting(row)
        if selector is None:
            return _Cause(Obstacle.SELECTOR, "have no answer to a selector")
        device, driver = self._table.device_at(row), self._table.keys[row][0]
        part = lacking(selector.expression, device, driver)
        if selector.class_name:
            text = f"are not of class {selector.class_name} ({readable(part)})"
            return _Cause(Obstacle.SELECTOR, text)
        return _Cause(Obstacle.SELECTOR, f"lack {readable(part)}")

    # --- nodes ------------------------------------------------------------------------------

    def nodes(self) -> list[tuple[_Rank, NodeDeviceAnswer]]:
        """Return the closest nodes, each with what they are sorted by."""
        others = set(self._case.reasons.rows_only_by(DynamicResources.name).tolist())
        ranked = []
        for number, rows in self._rows_of.items():
            missing = sum(each.missing for each in self._counted[number])
            for row in rows:
                name = self._case.table.name_at(row)
                ranked.append(((row not in others, missing, name), number, row))
        ranked.sort()
        answers = []
        for place, number, row in ranked[:_SEARCHED]:
            worst, most = self._worst(number)
            answer = self._node(number, row, worst, most)
            answers.append(((place[0], worst.wanted - most, answer.node), answer))
        return answers

    def _worst(self, number: int) -> tuple[CountedRequest, int]:
        """Return the request that misses most devices, and how many it could have."""
        found = [(each, self._census.most(number, each)) for each in self._counted[number]]
        return max(found, key=lambda pair: pair[0].wanted - pair[1])

    def _node(self, number: int, row: int, counted: CountedRequest, most: int) -> NodeDeviceAnswer:
        causes = self._causes(counted)
        devices = len(self._census.sees(number).rows)
        return NodeDeviceAnswer(
            node=self._case.table.name_at(row),
            claim=shown(self._census.claims[counted.claim]),
            request=counted.request.full_name,
            devices=devices,
            wanted=counted.wanted,
            usable=most,
            text=self._sentence(counted, most, devices, causes),
            causes=causes,
        )

    def _sentence(
        self, counted: CountedRequest, most: int, devices: int, causes: Sequence[DeviceCause]
    ) -> str:
        parts = [f"{len(counted.usable)} of {devices} usable"]
        parts += [sentence(each) for each in causes]
        if most < min(len(counted.usable), counted.wanted):
            constraints = self._census.claims[counted.claim].spec.devices.constraints
            names = [each.match_attribute or each.distinct_attribute or "" for each in constraints]
            why = f", by the constraints on {', '.join(names)}" if names else ", by shared counters"
            parts.append(f"at most {most} together{why}")
        elif most == counted.wanted:
            parts.append("but not beside the other requests")
        return ", ".join(parts)


_TEXTS = {
    Obstacle.NODE: "are for other nodes",
    Obstacle.TAINT: "have a taint",
    Obstacle.IN_USE: "are in use",
    Obstacle.CAPACITY: "have too little capacity left",
    Obstacle.COUNTER: "would overdraw a counter that devices share",
    Obstacle.CONSTRAINT: "lack an attribute that a constraint compares",
}


_SINGULAR = {"lack": "lacks", "have": "has", "are": "is"}


def sentence(cause: DeviceCause) -> str:
    """Return how many devices a cause excludes, and what is so of them."""
    verb, _, rest = cause.text.partition(" ")
    verb = _SINGULAR.get(verb, verb) if cause.devices == 1 else verb
    by = f" by {listed(cause.pods)}" if cause.pods else ""
    return f"{cause.devices} {verb} {rest}{by}"


def _without_alike(answers: list[NodeDeviceAnswer]) -> list[NodeDeviceAnswer]:
    """Return the first of nodes that differ in name only."""
    firsts: dict[tuple[str, str, str], NodeDeviceAnswer] = {}
    for each in answers:
        firsts.setdefault((each.claim, each.request, each.text), each)
    return list(firsts.values())


def _allocated(case: Case) -> tuple[ClaimAnswer, ...]:
    """Return the claims of the pod that have their devices already."""
    found = []
    everywhere = NodeRows.all_of(case.table)
    for claim in case.world.cluster.devices.claims.of_pod(case.pod):
        allocation = claim.status.allocation
        if allocation is None:
            continue
        selector = allocation.node_selector
        names: list[str] = []
        if selector is not None:
            mask = SelectorMatch(None, selector)(everywhere) & case.reasons.valid
            names = [case.table.name_at(row) for row in everywhere.row_numbers()[mask].tolist()]
        namespace = claim.metadata.namespace
        found.append(
            ClaimAnswer(
                claim=shown(claim),
                devices=tuple(
                    f"{each.driver}/{each.pool}/{each.device}"
                    for each in allocation.devices.results
                ),
                nodes=tuple(names[:_NAMED]),
                pods=tuple(f"{namespace}/{each.name}" for each in claim.status.reserved_for),
            )
        )
    return tuple(found)
