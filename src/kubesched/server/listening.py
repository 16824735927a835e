"""The listening socket: addresses, families, sharing."""

from __future__ import annotations

import contextlib
import ipaddress
import socket

from kubesched.errors import ConfigError
from kubesched.go_text import quoted
from kubesched.server.options import ServingOptions

_BACKLOG = 2048
_LARGEST_PORT = 65535


def address_of(options: ServingOptions) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address to listen on, None for all; raises ConfigError if it is invalid."""
    try:
        address = ipaddress.ip_address(options.bind_address or "0.0.0.0")  # noqa: S104 (default)
    except ValueError:
        raise ConfigError(
            f"--bind-address: failed to parse IP: {quoted(options.bind_address)}"
        ) from None
    return None if address.is_unspecified else address


def listen(options: ServingOptions) -> socket.socket:
    """Open the socket; raises ConfigError if the address is not available."""
    port = options.secure_port
    if not 0 <= port <= _LARGEST_PORT:
        raise ConfigError(
            f"--secure-port {port} must be between 0 and 65535, inclusive. "
            "0 for turning off secure port"
        )
    address = address_of(options)
    shown = f"[{address}]" if address is not None and address.version == 6 else address
    try:
        if address is None:
            return _listen_everywhere(options, port)
        family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        return _listen(options, family, (str(address), port))
    except OSError as error:
        where = f"{shown or options.bind_address or '0.0.0.0'}:{port}"  # noqa: S104 (default)
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(
            f"failed to create listener: failed to listen on {where}: {reason}; "
            "choose another with --secure-port and --bind-address"
        ) from None


def _listen_everywhere(options: ServingOptions, port: int) -> socket.socket:
    """Listen on all addresses of both families; of IPv4 alone where there is no IPv6."""
    if socket.has_dualstack_ipv6():
        return _listen(options, socket.AF_INET6, ("::", port))
    return _listen(options, socket.AF_INET, ("0.0.0.0", port))  # noqa: S104 (what was asked for)


def _listen(
    options: ServingOptions, family: socket.AddressFamily, address: tuple[str, int]
) -> socket.socket:
    with contextlib.ExitStack() as on_failure:
        listener = on_failure.enter_context(socket.socket(family, socket.SOCK_STREAM))
        # Go always sets this one, regardless of --permit-address-sharing: a restarted scheduler
        # must not wait for connections of its predecessor.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if options.permit_port_sharing:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            everything = address[0] == "::"
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if everything else 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        on_failure.pop_all()
    return listener
