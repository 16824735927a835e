"""Authentication: front proxy, client certificate, bearer token, else anonymous.

    request ──> front proxy ──> certificate ──> token ──> User
                    └── invalid ────┴── invalid ──┴─────> AuthenticationFailure: 401
                                                          anonymous, if there were no credentials

Invalid credentials are an error, unless others are valid.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from msgspec import Struct

from kubesched.clock import Clock
from kubesched.errors import ClientError
from kubesched.server.request import ServerRequest
from kubesched.server.reviews import TokenReviews
from kubesched.server.trust import Authorities, FrontProxy, Trust
from kubesched.server.users import ANONYMOUS_USER, User

_UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


class AuthenticationFailure(Struct, frozen=True):
    """Why credentials are invalid: for our log, not for the caller."""

    reason: str


class Authenticator:
    """Authenticates callers."""

    def __init__(
        self, trust: Callable[[], Trust], tokens: TokenReviews | None, *, clock: Clock
    ) -> None:
        """Without ``tokens``, bearer tokens are ignored."""
        self._trust = trust
        self._tokens = tokens
        self._clock = clock

    async def authenticate(self, request: ServerRequest) -> User | AuthenticationFailure:
        """Return the caller."""
        refusals: list[str] = []
        for ask in (self._proxied, self._certified, self._token):
            found = await ask(request)
            if isinstance(found, User):
                return found.authenticated()
            if found is not None:
                refusals.append(found.reason)
        return AuthenticationFailure(", ".join(refusals)) if refusals else ANONYMOUS_USER

    async def _proxied(self, request: ServerRequest) -> User | AuthenticationFailure | None:
        proxy = self._trust().front_proxy
        if proxy is None or not request.certificates:
            return None
        shown = _verified(request.certificates, proxy.authorities, self._clock)
        if isinstance(shown, AuthenticationFailure):
            return shown
        name = _common_name(shown)
        if proxy.allowed_names and name not in proxy.allowed_names:
            return AuthenticationFailure(f"x509: subject with cn={name} is not in the allowed list")
        return _user_of_headers(request, proxy)

    async def _certified(self, request: ServerRequest) -> User | AuthenticationFailure | None:
        clients = self._trust().clients
        if clients is None or not request.certificates:
            return None
        shown = _verified(request.certificates, clients, self._clock)
        return shown if isinstance(shown, AuthenticationFailure) else _user_of_certificate(shown)

    async def _token(self, request: ServerRequest) -> User | AuthenticationFailure | None:
        token = _bearer_token(request)
        if self._tokens is None or not token:
            return None
        try:
            user = await self._tokens.user_of(token)
        except ClientError as error:
            return AuthenticationFailure(str(error))
        return user or AuthenticationFailure("invalid bearer token")


def _bearer_token(request: ServerRequest) -> str:
    scheme, _, rest = request.header("authorization").strip().partition(" ")
    return rest.split(" ")[0] if scheme.lower() == "bearer" else ""


# ------------------------------------------------------------------ certificates


def _verified(
    chain: tuple[bytes, ...], authorities: Authorities, clock: Clock
) -> x509.Certificate | AuthenticationFailure:
    """Find the authorities that verify a certificate.

    The handshake proved that the client has the key, and that the chain is valid. But it knows all
    authorities, of clients and of proxies, and does not tell which one matched; and since then they
    may have changed, or the certificate may have expired.
    """
    leaf = x509.load_der_x509_certificate(chain[0])
    now = dt.datetime.fromtimestamp(clock.time(), dt.UTC)
    if not leaf.not_valid_before_utc <= now <= leaf.not_valid_after_utc:
        return AuthenticationFailure(
            f"{_described(leaf)}: certificate has expired or is not yet valid"
        )
    certificates = [leaf, *map(x509.load_der_x509_certificate, chain[1:])]
    if any(each in authorities.certificates for each in certificates):
        return leaf
    if any(_issued(certificates[-1], each) for each in authorities.certificates):
        return leaf
    return AuthenticationFailure(f"{_described(leaf)}: certificate signed by unknown authority")


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _described(certificate: x509.Certificate) -> str:
    return f"verifying certificate SN={certificate.serial_number} failed: x509"


def _user_of_certificate(certificate: x509.Certificate) -> User | AuthenticationFailure | None:
    name = _common_name(certificate)
    if not name:
        return None
    subject = certificate.subject
    uids = [str(each.value) for each in subject.get_attributes_for_oid(_UID)]
    if len(uids) > 1:
        return AuthenticationFailure(f"expected 1 UID, but found multiple: [{' '.join(uids)}]")
    if uids == [""]:
        return AuthenticationFailure("UID cannot be an empty string")
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    fingerprint = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
    return User(
        username=name,
        uid="".join(uids),
        groups=tuple(str(each.value) for each in groups),
        extra={_CREDENTIAL_ID: (f"X509SHA256={fingerprint}",)},
    )


def _common_name(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[-1].value) if names else ""


# ------------------------------------------------------------------ headers of a proxy


def _user_of_headers(request: ServerRequest, proxy: FrontProxy) -> User | None:
    name = _first_value(request, proxy.username_headers)
    if not name:
        return None
    groups = [value for key in proxy.group_headers for value in request.header_values(key) if value]
    return User(
        username=name,
        uid=_first_value(request, proxy.uid_headers),
        groups=tuple(groups),
        extra=_extra(request, proxy.extra_header_prefixes),
    )


def _first_value(request: ServerRequest, names: tuple[str, ...]) -> str:
    return next(filter(None, map(request.header, names)), "")


def _extra(request: ServerRequest, prefixes: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in prefixes:
        for name, value in request.headers:
            if name.startswith(prefix.lower()):
                key = unquote(name[len(prefix) :])
                extra[key] = (*extra.get(key, ()), value)
    return extra
