"""The proxy for an API server: ``proxy-url``, or the environment's.

Schemes: ``http://`` and ``https://`` (CONNECT for TLS servers, absolute URLs for plain ones) and
``socks5://``. Without ``proxy-url``, HTTPS_PROXY, HTTP_PROXY and NO_PROXY count, as in Go programs.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from kubesched.errors import KubeconfigError

_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class Proxy(Struct, frozen=True, kw_only=True):
    """A proxy's address and credentials."""

    scheme: str
    host: str
    port: int
    username: str = ""
    password: str = ""

    @property
    def is_socks(self) -> bool:
        """Whether it speaks SOCKS 5 and not HTTP."""
        return self.scheme.startswith("socks5")

    @property
    def address(self) -> str:
        """``host:port``, for messages: never with the password."""
        return f"{self.host}:{self.port}"

    @property
    def authorization(self) -> str | None:
        """Value of ``Proxy-Authorization``, None if no user name was given."""
        if not self.username:
            return None
        pair = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode('ascii')}"


def parse(url: str, *, where: str) -> Proxy:
    """Parse a proxy's URL; ``where`` names the field for the error message."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise KubeconfigError(f"{where}: {url!r} is not a URL: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise KubeconfigError(
            f"{where}: unsupported scheme {parts.scheme!r}, must be http, https, or socks5"
        )
    if not parts.hostname:
        raise KubeconfigError(f"{where}: the proxy's host is missing, want http://host:port")
    return Proxy(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or _DEFAULT_PORTS[parts.scheme],
        username=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


def from_environment(
    environment: Mapping[str, str], *, scheme: str, host: str, port: int
) -> Proxy | None:
    """Return the environment's proxy for a server, None: connect directly."""
    name = "HTTPS_PROXY" if scheme == "https" else "HTTP_PROXY"
    url = environment.get(name) or environment.get(name.lower())
    if not url or _is_exempt(environment, host, port):
        return None
    return parse(url if "://" in url else f"http://{url}", where=name)


def _is_exempt(environment: Mapping[str, str], host: str, port: int) -> bool:
    address = _ip(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    exempt = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    entries = (entry.strip().lower() for entry in exempt.split(","))
    return any(entry and _matches(entry, host.lower(), port, address) for entry in entries)


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _matches(
    entry: str,
    host: str,
    port: int,
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None,
) -> bool:
    """Match an entry of NO_PROXY: ``*``, a network, an address or a domain; port optional."""
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _is_in_network(entry, address)
    name, entry_port = _split_port(entry)
    if entry_port is not None and entry_port != port:
        return False
    if address is not None:
        return _ip(name) == address
    domain = name.removeprefix("*")
    # ".example.org" means its subdomains only, "example.org" those and itself.
    return host.endswith(f".{domain.lstrip('.')}") or host == domain


def _is_in_network(network: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _split_port(entry: str) -> tuple[str, int | None]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, int(rest[1:]) if rest[1:].isdigit() else None
    name, colon, port = entry.rpartition(":")
    if colon and ":" not in name and port.isdigit():
        return name, int(port)
    return entry, None
