"""Where the serving certificate comes from."""

from __future__ import annotations

import ssl
from pathlib import Path

import msgspec
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from kubesched.errors import ConfigError
from kubesched.server.certificates import FilePair, Pair, self_signed, serving_pair
from kubesched.server.options import ServingOptions
from tests.support.serving import write_pair


def alternatives(pair: Pair) -> list[str]:
    extension = pair.leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return [str(name.value) for name in extension.value]


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("", ["localhost", "127.0.0.1"]),
        ("0.0.0.0", ["localhost", "127.0.0.1"]),  # noqa: S104 (a flag's value)
        ("::", ["localhost", "127.0.0.1"]),
        ("127.0.0.1", ["localhost", "127.0.0.1"]),
        ("10.1.2.3", ["localhost", "127.0.0.1", "10.1.2.3"]),
        ("fd00::1", ["localhost", "127.0.0.1", "fd00::1"]),
    ],
)
def test_a_self_signed_certificate_is_for_loopback_and_the_bind_address(
    address: str, names: list[str]
) -> None:
    assert alternatives(self_signed(address)) == names


def test_a_self_signed_certificate_is_good_for_its_own_authority() -> None:
    pair = self_signed("")
    leaf, authority = x509.load_pem_x509_certificates(pair.certificate)

    leaf.verify_directly_issued_by(authority)
    assert leaf.subject.rfc4514_string().startswith("CN=localhost@")
    assert (leaf.not_valid_after_utc - leaf.not_valid_before_utc).days == 365
    pair.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), "test")


@pytest.mark.parametrize(
    ("flags", "key"),
    [
        ({}, ec.EllipticCurvePublicKey),
        ({"tls_cipher_suites": ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",)}, rsa.RSAPublicKey),
        ({"tls_curve_preferences": (29,)}, rsa.RSAPublicKey),
    ],
)
def test_a_self_signed_certificate_has_an_rsa_key_only_where_flags_restrict_tls(
    flags: dict[str, tuple[object, ...]], key: type
) -> None:
    pair = serving_pair(msgspec.convert(flags, ServingOptions)).read()

    assert isinstance(pair.leaf.public_key(), key)


def test_a_certificate_that_is_written_has_an_rsa_key(tmp_path: Path) -> None:
    pair = serving_pair(ServingOptions(cert_dir=str(tmp_path))).read()

    assert isinstance(pair.leaf.public_key(), rsa.RSAPublicKey)


def test_nothing_is_written_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = serving_pair(ServingOptions())

    assert not source.changed()
    assert source.read() == source.read()
    assert list(tmp_path.iterdir()) == []


def test_a_pair_in_cert_dir_is_made_once_and_used_again(tmp_path: Path) -> None:
    options = ServingOptions(cert_dir=str(tmp_path / "new" / "folder"))
    first = serving_pair(options).read()
    second = serving_pair(options).read()

    assert first == second
    folder = tmp_path / "new" / "folder"
    assert sorted(each.name for each in folder.iterdir()) == [
        "kube-scheduler.crt",
        "kube-scheduler.key",
    ]
    assert (folder / "kube-scheduler.key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("missing", ["crt", "key"])
def test_half_a_pair_in_cert_dir_is_a_mistake(tmp_path: Path, missing: str) -> None:
    options = ServingOptions(cert_dir=str(tmp_path))
    serving_pair(options)
    file = tmp_path / f"kube-scheduler.{missing}"
    file.unlink()

    with pytest.raises(ConfigError) as refused:
        serving_pair(options)
    assert str(refused.value) == (
        f"error reading {file}, certificate and key must be supplied as a pair"
    )


def test_a_cert_dir_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"--cert-dir: .*file.*: "):
        serving_pair(ServingOptions(cert_dir=str(tmp_path / "file" / "folder")))


@pytest.fixture
def files(tmp_path: Path, client_authority: trustme.CA) -> ServingOptions:
    return write_pair(tmp_path, client_authority.issue_cert("localhost"))


def pair_of(options: ServingOptions) -> FilePair:
    return FilePair(options.tls_cert_file, options.tls_private_key_file)


def test_a_change_of_either_file_is_noticed(
    files: ServingOptions, tmp_path: Path, client_authority: trustme.CA
) -> None:
    source = pair_of(files)
    before = source.read()
    assert not source.changed()

    write_pair(tmp_path, client_authority.issue_cert("localhost"))

    assert source.changed()
    assert source.read() != before
    assert not source.changed()


def test_one_file_alone_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="missing filename for serving cert"):
        serving_pair(ServingOptions(tls_cert_file="/x"))
    with pytest.raises(ConfigError, match="missing filename for serving cert"):
        serving_pair(ServingOptions(tls_private_key_file="/x"))


def refusal(options: ServingOptions) -> str:
    with pytest.raises(ConfigError) as refused:
        pair_of(options).read()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_file_that_is_not_there(files: ServingOptions) -> None:
    Path(files.tls_cert_file).unlink()

    assert refusal(files) == f"{files.tls_cert_file}: No such file or directory"


def test_a_file_without_a_certificate(files: ServingOptions) -> None:
    Path(files.tls_cert_file).write_text("hello")

    assert refusal(files) == f"{files.tls_cert_file}: does not contain a PEM certificate"


def test_a_file_without_a_key(files: ServingOptions) -> None:
    Path(files.tls_private_key_file).write_bytes(Path(files.tls_cert_file).read_bytes())

    assert refusal(files) == f"{files.tls_private_key_file}: does not contain a PEM private key"


def test_a_key_of_another_certificate(files: ServingOptions, client_authority: trustme.CA) -> None:
    other = client_authority.issue_cert("localhost").private_key_pem.bytes()
    Path(files.tls_private_key_file).write_bytes(other)

    assert refusal(files) == (
        f"{files.tls_private_key_file}: private key does not match public key of certificate "
        f"{files.tls_cert_file}"
    )


def test_a_key_with_a_password_does_not_wait_for_it(files: ServingOptions) -> None:
    key_file = Path(files.tls_private_key_file)
    key = load_pem_private_key(key_file.read_bytes(), password=None)
    form = (Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    key_file.write_bytes(key.private_bytes(*form))

    assert "protected by a password" in refusal(files)
