"""Serving certificates: from files, from a folder, or self-signed.

--tls-cert-file, --tls-private-key-file ──> FilePair      reloaded when the files change
--cert-dir ──> kube-scheduler.crt, .key ──> FilePair      created if missing
nothing ─────────────────────────────────> MemoryPair     self-signed, never written
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import logging
import ssl
import time
from pathlib import Path
from typing import Protocol

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from kubesched.client.credentials import load_certificate, reason_of
from kubesched.client.file_stamp import stamp
from kubesched.errors import ConfigError
from kubesched.server.options import ServingOptions

_log = logging.getLogger(__name__)

PAIR_NAME = "kube-scheduler"
_HOST = "localhost"
_VALID_DAYS = 365
#: Allowance for clients whose clocks are behind.
_HEAD_START = dt.timedelta(hours=1)
_RSA_BITS = 2048


class Pair(Struct, frozen=True):
    """A certificate chain and its key, both PEM."""

    certificate: bytes
    key: bytes

    def load_into(self, context: ssl.SSLContext, where: str) -> None:
        """Load it into a context; raises ConfigError if OpenSSL rejects it."""
        try:
            load_certificate(context, self.certificate, self.key)
        except ssl.SSLError as error:
            raise ConfigError(f"{where}: cannot be served: {error.reason or error}") from None

    @property
    def leaf(self) -> x509.Certificate:
        """The certificate itself."""
        return x509.load_pem_x509_certificate(self.certificate)


class PairSource(Protocol):
    """A source of a pair."""

    @property
    def where(self) -> str:
        """Its location, for messages."""

    def changed(self) -> bool:
        """Whether ``read`` may return another pair than the last time."""

    def read(self) -> Pair:
        """Return the pair; raises ConfigError if it cannot be used."""


class MemoryPair:
    """A pair that never changes."""

    where = "the generated certificate"

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    def changed(self) -> bool:
        """Never."""
        return False

    def read(self) -> Pair:
        """Return the pair."""
        return self._pair


class FilePair:
    """A pair in two files that may be replaced."""

    def __init__(self, cert_file: str, key_file: str) -> None:
        if not cert_file or not key_file:
            raise ConfigError(
                "missing filename for serving cert: --tls-cert-file and --tls-private-key-file "
                "go together"
            )
        self._cert_file = Path(cert_file)
        self._key_file = Path(key_file)
        self._seen: object = None

    @property
    def where(self) -> str:
        """The certificate's file."""
        return str(self._cert_file)

    def changed(self) -> bool:
        """Whether a file was changed or replaced since it was last read."""
        return self._stamp() != self._seen

    def read(self) -> Pair:
        """Read both files; raises ConfigError if they do not hold a certificate and its key."""
        self._seen = self._stamp()
        certificate = _bytes_of(self._cert_file)
        key = _bytes_of(self._key_file)
        _check(certificate, key, cert_file=self._cert_file, key_file=self._key_file)
        return Pair(certificate, key)

    def _stamp(self) -> object:
        return stamp(self._cert_file), stamp(self._key_file)


def serving_pair(options: ServingOptions) -> PairSource:
    """Load or create the serving pair; raises ConfigError if flags or files are invalid."""
    if options.tls_cert_file or options.tls_private_key_file:
        return FilePair(options.tls_cert_file, options.tls_private_key_file)
    if not options.cert_dir:
        pair = self_signed(options.bind_address, with_rsa=_restricts_tls(options))
        _log.info("Generated self-signed cert in-memory")
        return MemoryPair(pair)
    cert_file = Path(options.cert_dir) / f"{PAIR_NAME}.crt"
    key_file = Path(options.cert_dir) / f"{PAIR_NAME}.key"
    readable = [_readable(file) for file in (cert_file, key_file)]
    if readable == [False, False]:
        # It is used again, and then perhaps with other flags.
        pair = self_signed(options.bind_address, with_rsa=True)
        _write(pair, cert_file, key_file)
        _log.info("Generated self-signed cert (%s, %s)", cert_file, key_file)
    elif not all(readable):
        missing = key_file if readable[0] else cert_file
        raise ConfigError(
            f"error reading {missing}, certificate and key must be supplied as a pair"
        )
    return FilePair(str(cert_file), str(key_file))


def _restricts_tls(options: ServingOptions) -> bool:
    """Whether a certificate that all clients accept by default may not do."""
    return bool(options.tls_cipher_suites or options.tls_curve_preferences)


def _readable(path: Path) -> bool:
    try:
        with path.open("rb"):
            return True
    except OSError:
        return False


def _write(pair: Pair, cert_file: Path, key_file: Path) -> None:
    try:
        cert_file.parent.mkdir(parents=True, exist_ok=True)
        key_file.touch(mode=0o600)
        key_file.write_bytes(pair.key)
        cert_file.write_bytes(pair.certificate)
    except OSError as error:
        raise ConfigError(f"--cert-dir: {error.filename}: {error.strerror}") from None


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {reason_of(error)}") from None


def _check(certificate: bytes, key: bytes, *, cert_file: Path, key_file: Path) -> None:
    """Report errors in clear words, before OpenSSL reports its own or asks for a password."""
    try:
        leaf = x509.load_pem_x509_certificate(certificate)
    except ValueError:
        raise ConfigError(f"{cert_file}: does not contain a PEM certificate") from None
    try:
        private = load_pem_private_key(key, password=None)
    except TypeError:
        raise ConfigError(
            f"{key_file}: the key is protected by a password; give one that is not"
        ) from None
    except ValueError:
        raise ConfigError(f"{key_file}: does not contain a PEM private key") from None
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if private.public_key().public_bytes(*form) != leaf.public_key().public_bytes(*form):
        raise ConfigError(
            f"{key_file}: private key does not match public key of certificate {cert_file}"
        )


# ------------------------------------------------------------------ self-signed


def self_signed(bind_address: str, *, with_rsa: bool = False) -> Pair:
    """Create a certificate for loopback and the bind address, with its own authority.

    An RSA key goes with all cipher suites that can be enabled, but takes up to a fifth of a start.
    """
    start = dt.datetime.now(dt.UTC) - _HEAD_START
    end = start + dt.timedelta(days=_VALID_DAYS)
    second = int(time.time())
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name(f"{_HOST}-ca@{second}")
    authority = (
        _builder(authority_name, authority_name, start, end)
        .public_key(authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    key = _rsa_key() if with_rsa else ec.generate_private_key(ec.SECP256R1())
    leaf = (
        _builder(_name(f"{_HOST}@{second}"), authority_name, start, end)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_names(bind_address)), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    chain = leaf.public_bytes(Encoding.PEM) + authority.public_bytes(Encoding.PEM)
    return Pair(
        chain, key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )


def _rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS)


def _names(bind_address: str) -> list[x509.GeneralName]:
    loopback = ipaddress.ip_address("127.0.0.1")
    names: list[x509.GeneralName] = [x509.DNSName(_HOST), x509.IPAddress(loopback)]
    address = ipaddress.ip_address(bind_address or "0.0.0.0")  # noqa: S104 (means: not given)
    if not address.is_unspecified and address != loopback:
        names.append(x509.IPAddress(address))
    return names


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, start: dt.datetime, end: dt.datetime
) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        serial_number=x509.random_serial_number(),
        not_valid_before=start,
        not_valid_after=end,
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
