"""Client credentials: the ``Authorization`` header, and the TLS client certificate.

    request ──> authorization_header() ──> "Bearer …" │ "Basic …" │ None
    401     ──> invalidate(header)     ──> the next authorization_header() looks for a newer one

A provider nearly always answers from memory. It increments ``generation`` when the client
certificate changed, because only new connections present the new one.
"""

from __future__ import annotations

import base64
import logging
import ssl
from pathlib import Path
from typing import Protocol

from kubesched.client.file_stamp import stamp
from kubesched.client.memory_file import memory_file, path_of
from kubesched.clock import Clock, RealClock
from kubesched.errors import KubeconfigError

_log = logging.getLogger(__name__)

#: Half of the time between a kubelet's refresh of a projected token and the old token's expiry.
TOKEN_FILE_PERIOD_S = 60.0
#: How often files of a client certificate are checked, as in client-go.
CERTIFICATE_FILE_PERIOD_S = 300.0


class Credentials(Protocol):
    """The credentials that the client reads before each request."""

    @property
    def generation(self) -> int:
        """A number that changes with the TLS client certificate."""

    async def authorization_header(self) -> str | None:
        """Return the ``Authorization`` header; None: send none."""

    def invalidate(self, header: str | None) -> bool:
        """Handle a 401 for ``header``; return whether a retry may use another header."""


class StaticCredentials:
    """A header that never changes: a token, basic authentication, or none."""

    def __init__(self, header: str | None = None) -> None:
        self._header = header

    @classmethod
    def token(cls, token: str) -> StaticCredentials:
        """A bearer token."""
        return cls(f"Bearer {token}")

    @classmethod
    def basic(cls, username: str, password: str) -> StaticCredentials:
        """A user name and a password."""
        pair = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
        return cls(f"Basic {pair}")

    @property
    def generation(self) -> int:
        """Never changes."""
        return 0

    async def authorization_header(self) -> str | None:
        """Return the ``Authorization`` header."""
        return self._header

    def invalidate(self, header: str | None) -> bool:  # noqa: ARG002 - the protocol's signature
        """Return False: there is no other header."""
        return False


class TokenFileCredentials:
    """A bearer token in a file that another process refreshes.

    If the file is missing or empty for a moment, the last token stays in use.
    """

    def __init__(
        self,
        path: Path,
        *,
        first_token: str = "",
        clock: Clock | None = None,
        period_s: float = TOKEN_FILE_PERIOD_S,
    ) -> None:
        self._path = path
        self._clock = clock or RealClock()
        self._period_s = period_s
        self._header = f"Bearer {first_token}" if first_token else None
        #: when to read the file again
        self._due = self._clock.monotonic()

    @property
    def generation(self) -> int:
        """Always 0: tokens do not affect connections."""
        return 0

    async def authorization_header(self) -> str | None:
        """Return the token, at most a period old."""
        now = self._clock.monotonic()
        if now >= self._due:
            self._due = now + self._period_s
            self._reload()
        return self._header

    def invalidate(self, header: str | None) -> bool:
        """Read the file before the next request."""
        if header == self._header:
            self._due = self._clock.monotonic()
        return True

    def _reload(self) -> None:
        try:
            self._header = f"Bearer {read_token(self._path)}"
        except KubeconfigError as error:
            if self._header is None:
                raise
            _log.warning("%s; the last token stays in use", error)


def read_token(path: Path) -> str:
    """Return the token in a file, stripped."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"cannot read token file {path}: {reason_of(error)}") from error
    if not token:
        raise KubeconfigError(f"token file {path} is empty")
    if not token.isprintable() or not token.isascii():
        raise KubeconfigError(f"token file {path} does not hold a token: it has odd characters")
    return token


def reason_of(error: Exception) -> str:
    """Return the reason alone; the caller's message already names the path."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


class ClientCertificateFiles:
    """Certificate and key in files, reloaded when they change; headers come from ``inner``."""

    def __init__(
        self,
        inner: Credentials,
        *,
        context: ssl.SSLContext,
        certificate: Path,
        key: Path,
        clock: Clock | None = None,
    ) -> None:
        self._inner = inner
        self._context = context
        self._certificate = certificate
        self._key = key
        self._clock = clock or RealClock()
        self._due = self._clock.monotonic() + CERTIFICATE_FILE_PERIOD_S
        self._loaded = self._stamp()
        self._generation = 0
        context.load_cert_chain(certificate, key)

    @property
    def generation(self) -> int:
        """The number of reloads."""
        return self._generation

    async def authorization_header(self) -> str | None:
        """Return the inner header; check the files if it is time."""
        now = self._clock.monotonic()
        if now >= self._due:
            self._due = now + CERTIFICATE_FILE_PERIOD_S
            self._reload_if_changed()
        return await self._inner.authorization_header()

    def invalidate(self, header: str | None) -> bool:
        """Check the files before the next request."""
        before = self._generation
        self._reload_if_changed()
        return self._inner.invalidate(header) or self._generation != before

    def _stamp(self) -> object:
        return stamp(self._certificate), stamp(self._key)

    def _reload_if_changed(self) -> None:
        try:
            found = self._stamp()
            if found == self._loaded:
                return
            self._context.load_cert_chain(self._certificate, self._key)
        except (OSError, ssl.SSLError) as error:  # e.g. the certificate is new and the key not yet
            _log.warning(
                "cannot reload client certificate %s: %s; the loaded one stays in use",
                self._certificate,
                reason_of(error),
            )
            return
        self._loaded = found
        self._generation += 1


def load_certificate(context: ssl.SSLContext, certificate_pem: bytes, key_pem: bytes) -> None:
    """Load a certificate and key from memory into a TLS context.

    The ``ssl`` module reads only files, so they are in one for a moment.
    """
    with memory_file() as file:
        file.write(key_pem.rstrip() + b"\n" + certificate_pem)
        file.flush()
        context.load_cert_chain(path_of(file))
