"""The socket."""

from __future__ import annotations

import socket

import pytest

from kubesched.errors import ConfigError
from kubesched.server.listening import address_of, listen
from kubesched.server.options import ServingOptions
from tests.support.serving import LOOPBACK


@pytest.mark.parametrize("address", ["", "0.0.0.0", "::"])  # noqa: S104 (a flag's values)
def test_no_address_means_all_of_both_families(address: str) -> None:
    assert address_of(ServingOptions(bind_address=address)) is None
    # Port 0 is asked of the system here; for the flag it means not to listen.
    with listen(ServingOptions(bind_address=address, secure_port=0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection((LOOPBACK, port)):
            pass
        if socket.has_dualstack_ipv6():
            with socket.create_connection(("::1", port)):
                pass


def test_one_address_is_listened_on_alone() -> None:
    with listen(ServingOptions(bind_address=LOOPBACK, secure_port=0)) as listener:
        assert listener.getsockname()[0] == LOOPBACK


def test_a_port_that_is_taken() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as refused:
            listen(ServingOptions(bind_address=LOOPBACK, secure_port=port))

    assert str(refused.value) == (
        f"failed to create listener: failed to listen on 127.0.0.1:{port}: address already in use; "
        "choose another with --secure-port and --bind-address"
    )


def test_a_port_that_is_shared() -> None:
    first = ServingOptions(bind_address=LOOPBACK, secure_port=0, permit_port_sharing=True)
    with listen(first) as one:
        port = one.getsockname()[1]
        second = ServingOptions(bind_address=LOOPBACK, secure_port=port, permit_port_sharing=True)
        with listen(second) as other:
            assert other.getsockname() == one.getsockname()


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_cannot_be(port: int) -> None:
    with pytest.raises(ConfigError) as refused:
        listen(ServingOptions(secure_port=port))

    assert str(refused.value) == (
        f"--secure-port {port} must be between 0 and 65535, inclusive. "
        "0 for turning off secure port"
    )


def test_an_address_that_is_none() -> None:
    with pytest.raises(ConfigError) as refused:
        listen(ServingOptions(bind_address="localhost"))

    assert str(refused.value) == '--bind-address: failed to parse IP: "localhost"'
