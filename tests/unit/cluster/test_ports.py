"""Host ports in use, and which of them conflict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cluster.ports import ANY_ADDRESS, HostPort, HostPorts


@pytest.mark.parametrize(
    ("wanted", "taken", "conflict"),
    [
        pytest.param("10.0.0.1", "10.0.0.1", True, id="same address"),
        pytest.param("10.0.0.1", "10.0.0.2", False, id="other address"),
        pytest.param(ANY_ADDRESS, "10.0.0.2", True, id="all addresses include this one"),
        pytest.param("10.0.0.1", ANY_ADDRESS, True, id="this address is one of all"),
        pytest.param(ANY_ADDRESS, ANY_ADDRESS, True, id="all and all"),
    ],
)
def test_addresses(wanted: str, taken: str, conflict: bool) -> None:
    ports = HostPorts()
    ports.add(7, [HostPort("TCP", 80, taken)])
    found = ports.rows_in_conflict([HostPort("TCP", 80, wanted)])
    assert found == ({7} if conflict else set())


def test_another_protocol_or_port_is_another_socket() -> None:
    ports = HostPorts()
    ports.add(0, [HostPort("TCP", 80, ANY_ADDRESS)])
    assert ports.rows_in_conflict([HostPort("UDP", 80, ANY_ADDRESS)]) == set()
    assert ports.rows_in_conflict([HostPort("TCP", 81, ANY_ADDRESS)]) == set()


def test_one_taken_port_of_several_is_a_conflict() -> None:
    ports = HostPorts()
    ports.add(2, [HostPort("TCP", 81, ANY_ADDRESS)])
    wanted = [HostPort("TCP", 80, ANY_ADDRESS), HostPort("TCP", 81, ANY_ADDRESS)]
    assert ports.rows_in_conflict(wanted) == {2}


def test_a_port_is_free_when_the_last_pod_that_has_it_is_gone() -> None:
    ports = HostPorts()
    port = HostPort("TCP", 80, ANY_ADDRESS)
    ports.add(1, [port])
    ports.add(1, [port])
    ports.remove(1, [port])
    assert ports.rows_in_conflict([port]) == {1}
    ports.remove(1, [port])
    assert ports.rows_in_conflict([port]) == set()
    assert ports.snapshot() == {}


_PORTS = st.builds(
    HostPort,
    st.sampled_from(["TCP", "UDP"]),
    st.integers(1, 2),
    st.sampled_from([ANY_ADDRESS, "10.0.0.1", "10.0.0.2"]),
)


@given(
    pods=st.lists(st.tuples(st.integers(0, 3), st.lists(_PORTS, max_size=3)), max_size=8),
    gone=st.sets(st.integers(0, 7)),
    wanted=st.lists(_PORTS, max_size=3),
)
def test_conflicts_are_those_of_the_pods_that_are_there(
    pods: list[tuple[int, list[HostPort]]], gone: set[int], wanted: list[HostPort]
) -> None:
    ports = HostPorts()
    for row, taken in pods:
        ports.add(row, taken)
    for index, (row, taken) in enumerate(pods):
        if index in gone:
            ports.remove(row, taken)
    want = {
        row
        for index, (row, taken) in enumerate(pods)
        if index not in gone
        for one in taken
        for other in wanted
        if (one.protocol, one.port) == (other.protocol, other.port)
        and (one.address == other.address or ANY_ADDRESS in (one.address, other.address))
    }
    assert ports.rows_in_conflict(wanted) == want
