"""TLS contexts: the serving certificates, and the accepted client authorities.

    ClientHello ──sni callback──> the current context for that name ──> handshake
                                     ^ certificate files            ^ client authorities
                                     └──────── reload() ────────────┘

Contexts are rebuilt when a certificate or an authority changes, and a connection gets its context
when it begins: nothing is restarted, and existing connections stay.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence

from cryptography import x509
from cryptography.x509.oid import NameOID

from kubesched.errors import ConfigError
from kubesched.server.certificates import FilePair, Pair, PairSource
from kubesched.server.options import SniCertificate
from kubesched.server.tls_settings import TlsSettings

_log = logging.getLogger(__name__)


class NamedPair:
    """A certificate for some names."""

    def __init__(self, certificate: SniCertificate) -> None:
        self.source = FilePair(certificate.cert_file, certificate.key_file)
        #: empty: the names in the certificate
        self.names = tuple(name.lower() for name in certificate.names)


class TlsFront:
    """All contexts of one server; listen with ``context``."""

    def __init__(
        self,
        settings: TlsSettings,
        default: PairSource,
        named: Sequence[NamedPair] = (),
        *,
        own_address: str = "",
    ) -> None:
        """``own_address`` is the IP address of clients without SNI."""
        self._settings = settings
        self._default_source = default
        self._named_sources = tuple(named)
        self._own_address = own_address
        #: accepted client authorities, PEM
        self._authorities = ""
        #: the last good pair of each source
        self._pairs: dict[PairSource, Pair] = {}
        for source in self._sources():
            self._pairs[source] = source.read()
        self.context = settings.context()
        self.context.sni_callback = self._choose
        self._default, self._named = self._build()

    def trust(self, authorities: str) -> None:
        """Accept client certificates of these authorities only; "" requests none."""
        if authorities == self._authorities:
            return
        before, self._authorities = self._authorities, authorities
        try:
            self._default, self._named = self._build()
        except ssl.SSLError as error:
            self._authorities = before
            raise ConfigError(f"client certificate authorities: {error}") from None
        # Whether a certificate is requested is decided before the callback runs.
        self.context.verify_mode = ssl.CERT_OPTIONAL if authorities else ssl.CERT_NONE

    def reload(self) -> None:
        """Reload certificates from changed files; an invalid one is ignored."""
        before = dict(self._pairs)
        for source in self._sources():
            if source.changed():
                self._read_again(source)
        if self._pairs == before:
            return
        try:
            self._default, self._named = self._build()
        except ConfigError as error:
            self._pairs = before
            _log.error("cannot load the new certificate: %s; the old one stays in use", error)

    def _read_again(self, source: PairSource) -> None:
        try:
            pair = source.read()
        except ConfigError as error:
            _log.error("cannot load the new certificate: %s; the old one stays in use", error)
            return
        if pair != self._pairs[source]:
            self._pairs[source] = pair
            _log.info("Loaded a new cert/key pair: %s", source.where)

    def _sources(self) -> list[PairSource]:
        return [self._default_source, *(each.source for each in self._named_sources)]

    def _build(self) -> tuple[ssl.SSLContext, dict[str, ssl.SSLContext]]:
        default = self._context_of(self._default_source)
        explicit: dict[str, ssl.SSLContext] = {}
        extracted: dict[str, ssl.SSLContext] = {}
        for named in self._named_sources:
            context = self._context_of(named.source)
            for name in named.names:
                explicit.setdefault(name, context)
            if not named.names:
                for name in names_of(self._pairs[named.source].leaf):
                    extracted.setdefault(name, context)
        return default, {**extracted, **explicit}

    def _context_of(self, source: PairSource) -> ssl.SSLContext:
        context = self._settings.context()
        self._pairs[source].load_into(context, source.where)
        if self._authorities:
            context.load_verify_locations(cadata=self._authorities)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _choose(
        self, connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext
    ) -> None:
        connection.context = self._context_for(name or "")

    def _context_for(self, name: str) -> ssl.SSLContext:
        name = name.lower().rstrip(".") or self._own_address
        first, dot, rest = name.partition(".")
        wildcard = f"*{dot}{rest}" if first else ""
        return self._named.get(name) or self._named.get(wildcard) or self._default


def names_of(certificate: x509.Certificate) -> list[str]:
    """Return the host names of a certificate; addresses do not count, SNI has none."""
    subject = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    names = [str(attribute.value) for attribute in subject[-1:]]
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        pass
    else:
        names += alternatives.value.get_values_for_type(x509.DNSName)
    return [name.lower() for name in names if _is_host(name)]


def _is_host(name: str) -> bool:
    labels = name.removeprefix("*.").split(".")
    if name == "*":
        return True
    if all(label.isdecimal() for label in labels):  # an IPv4 address
        return False
    return all(label and label.replace("-", "").isalnum() and label.isascii() for label in labels)
