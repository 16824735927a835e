"""URLs, as Go's net/url reads them."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from kubesched.cel.functions import Function, Overload, member
from kubesched.cel.library.networks import AddressError, parse_address
from kubesched.cel.types import BOOL, STRING, URL, Type, list_of, map_of
from kubesched.cel.values import NO_SUCH_OVERLOAD, Err, Map, Object, Value
from kubesched.go_text import quoted

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_USER_INFO: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_UNRESERVED: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
)
_PLAIN_IN_PATH: Final = _UNRESERVED | frozenset(b"$&+,/:;=@")
_PLAIN_IN_HOST: Final = _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\"")
_VALID_IN_PATH: Final = _PLAIN_IN_PATH | frozenset(b"!$&'()*+,;=:@[]%")
_PLAIN_IN_FRAGMENT: Final = _UNRESERVED | frozenset(b"$&+,/:;=?@!()*'")


class _UrlError(Exception):
    """A URL that cannot be read; the text is Go's."""


class Url(Object):
    """A URL in its parts."""

    __slots__ = (
        "force_query", "fragment", "host", "omit_host", "opaque", "path", "query", "raw_path",
        "scheme", "user",
    )  # fmt: skip
    type: ClassVar[Type] = URL

    def __init__(self) -> None:
        self.scheme = self.opaque = self.host = self.query = self.fragment = self.raw_path = ""
        self.user: str | None = None
        self.path = b""
        self.force_query = self.omit_host = False

    def equals(self, other: Value) -> Value:
        """Whether both are written the same way, in their normal form."""
        return str(self) == str(other) if isinstance(other, Url) else NO_SUCH_OVERLOAD

    def escaped_path(self) -> str:
        """Return the path as it was written if that is right, else escaped."""
        if self.raw_path and all(byte in _VALID_IN_PATH for byte in self.raw_path.encode()):
            return self.raw_path
        return "*" if self.path == b"*" else _escape(self.path, _PLAIN_IN_PATH)

    def host_and_port(self) -> tuple[str, str]:
        """Return the host without brackets, and the port."""
        host, colon, port = self.host.rpartition(":")
        if not colon or not _PORT.fullmatch(":" + port):
            host, port = self.host, ""
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    def __str__(self) -> str:
        parts = [f"{self.scheme}:" if self.scheme else ""]
        if self.opaque:
            parts.append(self.opaque)
        else:
            path = self.escaped_path()
            has_authority = bool(self.scheme or self.host) or self.user is not None
            if has_authority and not (self.omit_host and not self.host and self.user is None):
                if self.host or self.path or self.user is not None:
                    parts.append("//")
                if self.user is not None:
                    parts.append(f"{self.user}@")
                parts.append(_escape(self.host.encode(), _PLAIN_IN_HOST))
            if path and path[0] != "/" and self.host:
                parts.append("/")
            if not any(parts) and ":" in path.split("/", 1)[0]:
                parts.append("./")
            parts.append(path)
        if self.force_query or self.query:
            parts.append(f"?{self.query}")
        if self.fragment:
            parts.append(f"#{_escape(_unescape(self.fragment), _PLAIN_IN_FRAGMENT)}")
        return "".join(parts)


def parse_url(text: str) -> Url | Err:
    """Return the URL that a text spells: an absolute one, or an absolute path."""
    problem = request_uri_problem(text)
    if problem is None:
        # A fragment is not split off where a request is read.
        before, _, fragment = text.partition("#")
        try:
            url = _parse(before, via_request=False)
            url.fragment = fragment
            _unescape(fragment)
        except _UrlError as error:
            problem = f"parse {quoted(text)}: {error}"
        else:
            return url
    return Err(f"URL parse error during conversion from string: {problem}")


def request_uri_problem(text: str) -> str | None:
    """Return why a text is no URI that a request could be for, or None if it is one."""
    try:
        _parse(text, via_request=True)
    except _UrlError as error:
        return f"parse {quoted(text)}: {error}"
    return None


def _parse(text: str, *, via_request: bool) -> Url:
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        raise _UrlError("net/url: invalid control character in URL")
    if not text and via_request:
        raise _UrlError("empty url")
    url = Url()
    if text == "*":
        url.path = b"*"
        return url
    if text.startswith(":"):
        raise _UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    rest = text[match.end() :] if match else text
    url.scheme = match.group()[:-1].lower() if match else ""
    if rest.endswith("?") and rest.count("?") == 1:
        url.force_query, rest = True, rest[:-1]
    else:
        rest, _, url.query = rest.partition("?")
    if not rest.startswith("/"):
        if url.scheme:
            url.opaque = rest
            return url
        if via_request:
            raise _UrlError("invalid URI for request")
        if ":" in rest.split("/", 1)[0]:
            raise _UrlError("first path segment in URL cannot contain colon")
    may_have_host = bool(url.scheme) or (not via_request and not rest.startswith("///"))
    if may_have_host and rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        _parse_authority(url, authority)
    elif url.scheme and rest.startswith("/"):
        url.omit_host = True
    url.path = _unescape(rest)
    url.raw_path = "" if _escape(url.path, _PLAIN_IN_PATH) == rest else rest
    return url


def _parse_authority(url: Url, authority: str) -> None:
    user, at, host = authority.rpartition("@")
    url.host = _parse_host(url.scheme, host)
    if at:
        if not _USER_INFO.fullmatch(user):
            raise _UrlError("net/url: invalid userinfo")
        _unescape(user)
        url.user = user


def _parse_host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise _UrlError("invalid IP-literal")
    if bracket == 0:
        return _parse_ip_literal(host)
    first, last = host.find(":"), host.rfind(":")
    if first >= 0:
        at = first if scheme in ("http", "https") else last
        if not _PORT.fullmatch(host[at:]):
            raise _UrlError(f"invalid port {quoted(host[at:])} after host")
    return _unescape_host(host)


def _parse_ip_literal(host: str) -> str:
    end = host.rfind("]")
    if end < 0:
        raise _UrlError("missing ']' in host")
    port = host[end + 1 :]
    if not _PORT.fullmatch(port):
        raise _UrlError(f"invalid port {quoted(port)} after host")
    name = host[1:end]
    zone = name.find("%25")
    if zone >= 0:
        unescaped = _unescape_host(name[:zone]) + _unescape(name[zone:]).decode(errors="replace")
    else:
        unescaped = _unescape_host(name)
    try:
        address, _ = parse_address(unescaped)
    except AddressError as error:
        raise _UrlError(f"invalid host: {error}") from None
    if address.version == 4:
        raise _UrlError("invalid IP-literal")
    return f"[{unescaped}]{port}"


def _unescape_host(text: str) -> str:
    for match in re.finditer(r"%(..)?", text, re.DOTALL):
        escape = match.group()
        if not re.fullmatch(r"%[0-9a-fA-F]{2}", escape):
            raise _UrlError(f"invalid URL escape {quoted(text[match.start() :][:3])}")
        if int(escape[1], 16) < 8 and escape != "%25":
            raise _UrlError(f"invalid URL escape {quoted(escape)}")
    for char in re.sub(r"%..", "", text):
        if char.isascii() and ord(char) not in _PLAIN_IN_HOST:
            raise _UrlError(f"invalid character {quoted(char)} in host name")
    return _unescape(text).decode(errors="surrogateescape")


def _unescape(text: str, *, plus_is_space: bool = False) -> bytes:
    result = bytearray()
    raw = text.encode()
    at = 0
    while at < len(raw):
        if raw[at : at + 1] == b"%":
            digits = raw[at + 1 : at + 3]
            if not re.fullmatch(rb"[0-9a-fA-F]{2}", digits):
                shown = raw[at : at + 3].decode(errors="replace")
                raise _UrlError(f"invalid URL escape {quoted(shown)}")
            result.append(int(digits, 16))
            at += 3
            continue
        byte = raw[at]
        result.append(0x20 if plus_is_space and byte == 0x2B else byte)
        at += 1
    return bytes(result)


def _escape(value: bytes, plain: frozenset[int]) -> str:
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in value)


def _query(url: Url) -> Value:
    values: dict[str, list[Value]] = {}
    for part in url.query.split("&"):
        if not part or ";" in part:
            continue
        key, _, value = part.partition("=")
        try:
            decoded = [
                _unescape(it, plus_is_space=True).decode(errors="replace") for it in (key, value)
            ]
        except _UrlError:
            continue
        values.setdefault(decoded[0], []).append(decoded[1])
    return Map(values.items())


_QUERY = map_of(STRING, list_of(STRING))

FUNCTIONS: Final = [
    Function("url", (Overload("string_to_url", (STRING,), URL, parse_url),)),
    Function("getScheme", (member("url_get_scheme", (URL,), STRING, lambda it: it.scheme),)),
    Function("getHost", (member("url_get_host", (URL,), STRING, lambda it: it.host),)),
    Function(
        "getHostname",
        (member("url_get_hostname", (URL,), STRING, lambda it: it.host_and_port()[0]),),
    ),
    Function(
        "getPort", (member("url_get_port", (URL,), STRING, lambda it: it.host_and_port()[1]),)
    ),
    Function(
        "getEscapedPath",
        (member("url_get_escaped_path", (URL,), STRING, lambda it: it.escaped_path()),),
    ),
    Function("getQuery", (member("url_get_query", (URL,), _QUERY, _query),)),
    Function(
        "isURL",
        (Overload("is_url_string", (STRING,), BOOL, lambda it: request_uri_problem(it) is None),),
    ),
]
