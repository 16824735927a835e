"""What a pod's claims ask for, compiled once for all claims that ask the same.

Claims that are made from one template differ in name only. So requests and constraints are all
that a `Wanted` knows; names are filled in when a message is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from kubesched.api.core import QuantityText
from kubesched.api.meta import ApiStruct
from kubesched.api.resource import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from kubesched.cluster.device_table import DeviceTable
from kubesched.cluster.devices import Devices
from kubesched.errors import KubeschedError
from kubesched.plugins.derived_attributes import DerivedAttributes
from kubesched.plugins.device_columns import columns_of
from kubesched.plugins.device_match import (
    ANY_TAINT,
    SHARING,
    Compile,
    DeviceMatch,
    LocatedSelector,
    blind,
)
from kubesched.plugins.device_rules import SearchRules

#: A claim gets so many devices at most.
MAX_RESULTS: Final = 32
_NO_CAPACITIES: Final = "has capacity requests, but the DRAConsumableCapacity feature is disabled"


class AllocationError(KubeschedError):
    """A claim or class that cannot be served on any node, or a search that timed out."""

    def __init__(self, text: str, *, claim: int | None = None, before: str = "claim ") -> None:
        """`text` follows the name of a claim, by its number, if there is one."""
        super().__init__(text)
        self._text = text
        self._claim = claim
        self._before = before

    def message(self, claims: Sequence[str]) -> str:
        """Return the message, given the names of the claims."""
        if self._claim is None:
            return self._text
        return f"{self._before}{claims[self._claim]}{self._text}"


class AskedFor(ApiStruct, frozen=True):
    """The part of a claim that decides which devices can serve it."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()


_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_decode: Final = msgspec.json.Decoder(AskedFor).decode


def asked_for(claim: ResourceClaim) -> bytes:
    """Return what two claims must have in common to be served by the same devices."""
    devices = claim.spec.devices
    return _encode(AskedFor(requests=devices.requests, constraints=devices.constraints))


class WantedRequest:
    """A request, or one of the alternatives of a request."""

    __slots__ = (
        "alternative",
        "capacity",
        "class_name",
        "count",
        "derived",
        "device_class",
        "is_admin",
        "is_all",
        "match",
        "name",
        "problem",
        "tolerations",
    )

    def __init__(self, match: DeviceMatch, name: str, alternative: str = "") -> None:
        #: which devices may serve it
        self.match = match
        #: of the request, and of the alternative if it is one
        self.name = name
        self.alternative = alternative
        self.class_name = ""
        self.device_class: DeviceClass | None = None
        self.count = 0
        #: whether it requests all devices that match
        self.is_all = False
        #: whether devices may be in use by others
        self.is_admin = False
        self.capacity: Mapping[str, QuantityText] = {}
        self.tolerations: tuple[DeviceToleration, ...] = ()
        #: full name → attribute that is derived from others
        self.derived: Mapping[str, DerivedAttributes] = {}
        #: what is wrong with it, behind the name of the claim; "" if nothing is
        self.problem = ""

    @property
    def own_name(self) -> str:
        """The name that messages have."""
        return self.alternative or self.name

    @property
    def full_name(self) -> str:
        """The name that results have."""
        return f"{self.name}/{self.alternative}" if self.alternative else self.name


class WantedClaim(NamedTuple):
    """What one claim requests."""

    #: request → its alternatives; one if there is no choice
    requests: tuple[tuple[WantedRequest, ...], ...]
    #: request → whether it has alternatives, of which the first one that can be had is taken
    has_alternatives: tuple[bool, ...]
    constraints: tuple[DeviceConstraint, ...]


def _attribute_of(constraint: DeviceConstraint) -> str:
    return constraint.match_attribute or constraint.distinct_attribute or ""


class Wanted:
    """What the claims of a pod ask for together."""

    def __init__(self, claims: tuple[WantedClaim, ...]) -> None:
        self.claims = claims
        everything = [each for claim in claims for group in claim.requests for each in group]
        #: which devices may serve requests, each once
        self.matches = tuple(dict.fromkeys(each.match for each in everything))
        #: full names of attributes that constraints compare, each once
        self.compared = tuple(
            dict.fromkeys(_attribute_of(each) for claim in claims for each in claim.constraints)
        )
        #: attributes that requests derive and constraints compare, each once
        self.derived = tuple(
            dict.fromkeys(
                each.derived[name]
                for name in self.compared
                for each in everything
                if name in each.derived
            )
        )
        #: whether nodes are scored by the alternatives that they have
        self.has_alternatives = any(any(claim.has_alternatives) for claim in claims)

    def refresh(self) -> None:
        """Refresh the device states."""
        for match in self.matches:
            match.refresh()


class _RequestParts(NamedTuple):
    """What requests that are compiled together share."""

    #: selectors and tolerations → which devices they allow
    matches: dict[bytes, DeviceMatch]
    #: expression → the attribute it derives
    derived: dict[str, DerivedAttributes]

    def derived_by(self, expression: str, table: DeviceTable) -> DerivedAttributes:
        """Return the attribute that an expression derives."""
        found = self.derived.get(expression)
        if found is None:
            found = self.derived[expression] = DerivedAttributes(table, expression)
        return found


class RequestCompiler:
    """Compiles what claims ask for, given the classes that there are."""

    def __init__(
        self, devices: Devices, compile_selector: Compile, *, taints: bool, rules: SearchRules
    ) -> None:
        self._devices = devices
        self._compile = compile_selector
        self._columns = columns_of(devices.table)
        #: whether taints count
        self._taints = taints
        self._rules = rules

    def compile(self, asked: tuple[bytes, ...]) -> Wanted:
        """Compile what several claims ask for."""
        parts = _RequestParts({}, {})
        return Wanted(tuple(self._claim(_decode(each), parts) for each in asked))

    def _claim(self, asked: AskedFor, parts: _RequestParts) -> WantedClaim:
        groups, has_alternatives = [], []
        for request in asked.requests:
            name = request.name
            has_alternatives.append(bool(request.first_available))
            if request.first_available:
                made = [
                    self._request(each, parts, name, each.name) for each in request.first_available
                ]
                # This is looked for in all alternatives before anything else in the first one.
                disabled = (each.problem for each in made if _NO_CAPACITIES in each.problem)
                made[0].problem = next(disabled, made[0].problem)
                groups.append(tuple(made))
            else:
                exactly = request.exactly or ExactDeviceRequest()
                groups.append((self._request(exactly, parts, name),))
        return WantedClaim(tuple(groups), tuple(has_alternatives), asked.constraints)

    def _request(
        self,
        spec: ExactDeviceRequest | DeviceSubRequest,
        parts: _RequestParts,
        name: str,
        alternative: str = "",
    ) -> WantedRequest:
        device_class = self._devices.classes.get(spec.device_class_name)
        made = WantedRequest(self._match(device_class, spec, parts), name, alternative)
        made.class_name = spec.device_class_name
        made.device_class = device_class
        # What an API server fills in, for objects that come from files.
        made.is_all = spec.allocation_mode == "All"
        made.count = 0 if made.is_all else spec.count or 1
        made.is_admin = isinstance(spec, ExactDeviceRequest) and bool(spec.admin_access)
        made.capacity = spec.capacity.requests if spec.capacity is not None else {}
        made.tolerations = spec.tolerations
        made.derived = {
            each.name: parts.derived_by(each.expression, self._devices.table)
            for each in spec.derived_attributes
        }
        made.problem = self._problem(made, spec)
        return made

    def _problem(self, made: WantedRequest, spec: ExactDeviceRequest | DeviceSubRequest) -> str:
        """Return the first error in a request, "" if it is valid."""
        kind = "subrequest" if made.alternative else "request"
        unknown = [index for index, each in enumerate(spec.selectors) if each.cel is None]
        name = spec.device_class_name
        problems = {
            _NO_CAPACITIES: (
                spec.capacity is not None
                and not self._rules.consumable
                and not self._rules.is_stable
            ),
            "cannot handle request with derived attributes, the feature is disabled": (
                bool(spec.derived_attributes) and not self._rules.derived_attributes
            ),
            "CEL expression empty (unsupported selector type?)": bool(unknown),
            "missing device class name (unsupported request type?)": not name,
            f"could not retrieve device class {name}: deviceclass.resource.k8s.io "
            f'"{name}" not found': made.device_class is None,
            f"unsupported count mode {spec.allocation_mode}": (
                spec.allocation_mode not in ("", "ExactCount", "All")
            ),
        }
        found = next((text for text, is_so in problems.items() if is_so), "")
        if not found:
            return ""
        if found.startswith("CEL"):
            return f", request {made.own_name}, selector #{unknown[0]}: {found}"
        where = kind if found == _NO_CAPACITIES else "request"
        return f", {where} {made.own_name}: {found}"

    def _match(
        self,
        device_class: DeviceClass | None,
        spec: ExactDeviceRequest | DeviceSubRequest,
        parts: _RequestParts,
    ) -> DeviceMatch:
        of_class = () if device_class is None else device_class.spec.selectors
        selectors = (
            *_selectors(of_class, spec.device_class_name),
            *_selectors(spec.selectors, ""),
        )
        tolerations = spec.tolerations if self._taints else (ANY_TAINT,)
        key = _encode((selectors, tolerations))
        match = parts.matches.get(key)
        if match is None:
            # The stable allocator does not tell expressions that a device can be shared.
            is_blind = self._rules.is_stable and any(SHARING in each[2] for each in selectors)
            match = parts.matches[key] = DeviceMatch(
                self._devices.table,
                selectors=selectors,
                tolerations=tolerations,
                compile_selector=blind(self._compile) if is_blind else self._compile,
                evaluate_all=None if is_blind else self._columns.evaluate,
            )
        return match


def _selectors(selectors: Sequence[DeviceSelector], class_name: str) -> list[LocatedSelector]:
    return [
        LocatedSelector(class_name, index, each.cel.expression)
        for index, each in enumerate(selectors)
        if each.cel is not None
    ]
