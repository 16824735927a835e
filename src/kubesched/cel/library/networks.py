"""IP addresses and networks."""

from __future__ import annotations

import ipaddress
import re
from typing import ClassVar, Final

from kubesched.cel.functions import Function, Overload, member
from kubesched.cel.types import BOOL, CIDR, INT, IP, STRING, Type
from kubesched.cel.values import NO_SUCH_OVERLOAD, Err, Object, Value
from kubesched.go_text import quoted

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_HEX: Final = re.compile(r"[0-9a-fA-F]*")


class Address(Object):
    """An IP address."""

    __slots__ = ("address",)
    type: ClassVar[Type] = IP

    def __init__(self, address: _Address) -> None:
        self.address = address

    @property
    def size(self) -> int:
        """Its length in bytes, which costs are computed from."""
        return self.address.max_prefixlen // 8

    def equals(self, other: Value) -> Value:
        """Whether both are the same address."""
        return self.address == other.address if isinstance(other, Address) else NO_SUCH_OVERLOAD


class Network(Object):
    """An address with the length of a prefix; bits after the prefix are kept."""

    __slots__ = ("address", "bits")
    type: ClassVar[Type] = CIDR

    def __init__(self, address: _Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    @property
    def size(self) -> int:
        """The length of its prefix in bytes, which costs are computed from."""
        return -(-self.bits // 8)

    def equals(self, other: Value) -> Value:
        """Whether both are written the same way, bits after the prefix included."""
        if not isinstance(other, Network):
            return NO_SUCH_OVERLOAD
        return self.address == other.address and self.bits == other.bits

    def masked(self) -> Network:
        """Return the network without bits after the prefix."""
        shift = self.address.max_prefixlen - self.bits
        number = int(self.address) >> shift << shift
        return Network(type(self.address)(number), self.bits)

    def has_prefix_of(self, address: _Address) -> bool:
        """Whether an address is in the network."""
        shift = self.address.max_prefixlen - self.bits
        return (
            address.version == self.address.version
            and int(address) >> shift == int(self.address) >> shift
        )


class AddressError(Exception):
    """An address that cannot be read; the text is Go's."""

    def __init__(self, text: str, problem: str, at: str = "") -> None:
        where = f" (at {quoted(at)})" if at else ""
        super().__init__(f"ParseAddr({quoted(text)}): {problem}{where}")


def parse_ip(text: str) -> Address | Err:
    """Return the address that a text spells; no zone, no IPv4 within IPv6."""
    try:
        address, zone = parse_address(text)
    except AddressError as error:
        shown = quoted(text)
        return Err(f"IP Address {shown} parse error during conversion from string: {error}")
    if zone:
        return Err(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(address):
        return Err(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Address(address)


def parse_cidr(text: str) -> Network | Err:
    """Return the network that a text spells."""
    problem = _cidr_problem(text)
    if problem is not None:
        prefix = "network address parse error during conversion from string: "
        return Err(f"{prefix}{problem}")
    address, _, bits = text.rpartition("/")
    return Network(parse_address(address)[0], int(bits))


def _cidr_problem(text: str) -> str | None:  # noqa: PLR0911 - one line a problem
    address_text, slash, bits = text.rpartition("/")
    head = (
        "network address parse error during conversion from string: "
        f"netip.ParsePrefix({quoted(text)}): "
    )
    if not slash:
        return f"{head}no '/'"
    try:
        address, zone = parse_address(address_text)
    except AddressError as error:
        return f"{head}{error}"
    if zone:
        return f"{head}IPv6 zones cannot be present in a prefix"
    if not re.fullmatch(r"[0-9]|[1-9][0-9]{1,17}", bits):
        return f"{head}bad bits after slash: {quoted(bits)}"
    if int(bits) > address.max_prefixlen:
        return f"{head}prefix length out of range"
    if _is_mapped(address):
        return f"IPv4-mapped IPv6 address {quoted(text)} is not allowed"
    return None


def _is_mapped(address: _Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def parse_address(text: str) -> tuple[_Address, str]:
    """Return the address that a text spells, and its zone; raises AddressError."""
    for char in text:
        if char == ".":
            return ipaddress.IPv4Address(bytes(_ipv4_fields(text, text))), ""
        if char == ":":
            return _parse_ipv6(text)
        if char == "%":
            raise AddressError(text, "missing IPv6 address")
    raise AddressError(text, "unable to parse IP")


def _ipv4_fields(text: str, part: str) -> list[int]:
    fields: list[int] = []
    digits = ""
    for index, char in enumerate(part):
        if char in "0123456789":
            if digits == "0":
                raise AddressError(text, "IPv4 field has octet with leading zero")
            digits += char
            if int(digits) > 255:
                raise AddressError(text, "IPv4 field has value >255")
        elif char == ".":
            if index in (0, len(part) - 1) or part[index - 1] == ".":
                raise AddressError(text, "IPv4 field must have at least one digit", part[index:])
            if len(fields) == 3:
                raise AddressError(text, "IPv4 address too long")
            fields.append(int(digits))
            digits = ""
        else:
            raise AddressError(text, "unexpected character", part[index:])
    if len(fields) < 3:
        raise AddressError(text, "IPv4 address too short")
    return [*fields, int(digits or "0")]


def _parse_ipv6(text: str) -> tuple[_Address, str]:  # noqa: PLR0912 - one grammar, read once
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise AddressError(text, "zone must be a non-empty string")
    found = bytearray()
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
    while rest and len(found) < 16:
        group = _HEX.match(rest)
        digits = group.group() if group else ""
        if len(digits) > 4:
            raise AddressError(text, "each group must have 4 or less digits", rest)
        if not digits:
            problem = "each colon-separated field must have at least one digit"
            raise AddressError(text, problem, rest)
        if rest[len(digits) : len(digits) + 1] == ".":
            if ellipsis < 0 and len(found) != 12:
                problem = "embedded IPv4 address must replace the final 2 fields of the address"
                raise AddressError(text, problem, rest)
            if len(found) > 12:
                problem = "too many hex fields to fit an embedded IPv4 at the end of the address"
                raise AddressError(text, problem, rest)
            found += bytes(_ipv4_fields(text, rest))
            rest = ""
            break
        found += int(digits, 16).to_bytes(2, "big")
        rest = rest[len(digits) :]
        if not rest:
            break
        if rest[0] != ":":
            raise AddressError(text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise AddressError(text, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise AddressError(text, "multiple :: in address", rest)
            ellipsis, rest = len(found), rest[1:]
            if not rest:
                break
    if rest:
        raise AddressError(text, "trailing garbage after address", rest)
    if len(found) < 16:
        if ellipsis < 0:
            raise AddressError(text, "address string too short")
        found[ellipsis:ellipsis] = bytes(16 - len(found))
    elif ellipsis >= 0:
        raise AddressError(text, "the :: must expand to at least one field of zeros")
    return ipaddress.IPv6Address(bytes(found)), zone


def _text(address: _Address) -> str:
    return str(address)


def _is_canonical(text: str) -> Value:
    parsed = parse_ip(text)
    return parsed if isinstance(parsed, Err) else _text(parsed.address) == text


def _is_link_local_multicast(address: _Address) -> bool:
    if address.version == 4:
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return int(address) >> 112 & 0xFF0F == 0xFF02


def _is_global_unicast(address: _Address) -> bool:
    if address.version == 4 and int(address) in (0, 0xFFFFFFFF):
        return False
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


def _contains_ip(network: Network, other: Value) -> Value:
    address = parse_ip(other) if isinstance(other, str) else other
    if isinstance(address, Err):
        # Upstream hands the error on as if it were an address of a wrong type.
        return NO_SUCH_OVERLOAD
    return network.has_prefix_of(address.address)


def _contains_cidr(network: Network, other: Value) -> Value:
    inner = parse_cidr(other) if isinstance(other, str) else other
    if isinstance(inner, Err):
        return inner
    return network.bits <= inner.bits and network.has_prefix_of(inner.address)


FUNCTIONS: Final = [
    Function(
        "ip",
        (
            Overload("string_to_ip", (STRING,), IP, parse_ip),
            member("cidr_ip", (CIDR,), IP, lambda it: Address(it.address)),
        ),
    ),
    Function("family", (member("ip_family", (IP,), INT, lambda it: it.address.version),)),
    Function("ip.isCanonical", (Overload("ip_is_canonical", (STRING,), BOOL, _is_canonical),)),
    Function(
        "isUnspecified",
        (member("ip_is_unspecified", (IP,), BOOL, lambda it: it.address.is_unspecified),),
    ),
    Function(
        "isLoopback", (member("ip_is_loopback", (IP,), BOOL, lambda it: it.address.is_loopback),)
    ),
    Function(
        "isLinkLocalMulticast",
        (
            member(
                "ip_is_link_local_multicast", (IP,), BOOL,
                lambda it: _is_link_local_multicast(it.address),
            ),
        ),
    ),
    Function(
        "isLinkLocalUnicast",
        (member("ip_is_link_local_unicast", (IP,), BOOL, lambda it: it.address.is_link_local),),
    ),
    Function(
        "isGlobalUnicast",
        (
            member(
                "ip_is_global_unicast", (IP,), BOOL, lambda it: _is_global_unicast(it.address)
            ),
        ),
    ),
    Function(
        "isIP",
        (Overload("is_ip", (STRING,), BOOL, lambda it: isinstance(parse_ip(it), Address)),),
    ),
    Function(
        "string",
        (
            Overload("ip_to_string", (IP,), STRING, lambda it: _text(it.address)),
            Overload(
                "cidr_to_string", (CIDR,), STRING, lambda it: f"{_text(it.address)}/{it.bits}"
            ),
        ),
    ),
    Function("cidr", (Overload("string_to_cidr", (STRING,), CIDR, parse_cidr),)),
    Function(
        "containsIP",
        (
            member("cidr_contains_ip_string", (CIDR, STRING), BOOL, _contains_ip),
            member("cidr_contains_ip_ip", (CIDR, IP), BOOL, _contains_ip),
        ),
    ),
    Function(
        "containsCIDR",
        (
            member("cidr_contains_cidr_string", (CIDR, STRING), BOOL, _contains_cidr),
            member("cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr),
        ),
    ),
    Function(
        "prefixLength", (member("cidr_prefix_length", (CIDR,), INT, lambda it: it.bits),)
    ),
    Function("masked", (member("cidr_masked", (CIDR,), CIDR, lambda it: it.masked()),)),
    Function(
        "isCIDR",
        (Overload("is_cidr", (STRING,), BOOL, lambda it: _cidr_problem(it) is None),),
    ),
]  # fmt: skip
