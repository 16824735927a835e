"""Addresses: read as Go's netip reads them, checked against Python's ipaddress."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.library.networks import Address, parse_cidr, parse_ip
from kubesched.cel.values import Err


def is_accepted(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """IPv4 addresses within IPv6 are not."""
    return address.version == 4 or address.ipv4_mapped is None


addresses = st.ip_addresses().filter(is_accepted)


@given(addresses)
def test_every_address_is_read(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    for text in (str(address), address.exploded):
        parsed = parse_ip(text)

        assert isinstance(parsed, Address)
        assert parsed.address == address


@given(st.text("0123456789abcf:.%/", max_size=12))
def test_what_python_refuses_is_refused(text: str) -> None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        assert isinstance(parse_ip(text), Err)


@given(addresses, st.integers(0, 128))
def test_a_network_contains_its_own_address(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, bits: int
) -> None:
    bits = min(bits, address.max_prefixlen)
    network = parse_cidr(f"{address}/{bits}")

    assert not isinstance(network, Err)
    assert network.has_prefix_of(address)
    assert network.masked().has_prefix_of(address)
    assert ipaddress.ip_network(f"{address}/{bits}", strict=False).network_address == (
        network.masked().address
    )
