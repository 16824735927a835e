"""Who asks, by the certificates of a chain, by headers and by tokens."""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import ssl

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kubesched.clock import RealClock, VirtualClock
from kubesched.server.authentication import AuthenticationFailure, Authenticator
from kubesched.server.request import ServerRequest
from kubesched.server.trust import Authorities, FrontProxy, Trust
from kubesched.server.users import ANONYMOUS_USER, User
from tests.support.serving import request

UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")


def authorities(*of: trustme.CA) -> Authorities:
    return Authorities.parse(b"".join(each.cert_pem.bytes() for each in of))


def der(pem: trustme.Blob) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.bytes().decode())


def chain(authority: trustme.CA, common_name: str, organization: str = "") -> tuple[bytes, ...]:
    """A client's certificate and the authority that TLS found for it."""
    leaf = authority.issue_cert(
        "client.test",
        common_name=common_name or None,
        organization_name=organization or None,
    )
    return der(leaf.cert_chain_pems[0]), der(authority.cert_pem)


def ask(
    asked: ServerRequest, trust: Trust, *, at: float | None = None
) -> User | AuthenticationFailure:
    clock = RealClock() if at is None else VirtualClock(at)
    return asyncio.run(Authenticator(lambda: trust, None, clock=clock).authenticate(asked))


def refusal(asked: ServerRequest, trust: Trust, *, at: float | None = None) -> str:
    found = ask(asked, trust, at=at)
    assert isinstance(found, AuthenticationFailure), found
    return found.reason


@pytest.fixture
def trust(client_authority: trustme.CA, proxy_authority: trustme.CA) -> Trust:
    return Trust(
        clients=authorities(client_authority),
        front_proxy=FrontProxy(
            authorities(proxy_authority),
            allowed_names=("front-proxy",),
            username_headers=("X-Remote-User", "x-user"),
            uid_headers=("X-Remote-Uid",),
            group_headers=("X-Remote-Group",),
            extra_header_prefixes=("X-Remote-Extra-",),
        ),
    )


# ---------------------------------------------------------------------- client certificates


def test_nothing_shown_is_nobody(trust: Trust) -> None:
    assert ask(request(), trust) == ANONYMOUS_USER


def test_a_certificate_says_name_and_groups(trust: Trust, client_authority: trustme.CA) -> None:
    shown = chain(client_authority, "ann", "admins")
    fingerprint = hashlib.sha256(shown[0]).hexdigest()

    assert ask(request(certificates=shown), trust) == User(
        username="ann",
        groups=("admins", "system:authenticated"),
        extra={"authentication.kubernetes.io/credential-id": (f"X509SHA256={fingerprint}",)},
    )


def test_a_certificate_without_a_name_is_nobody(client_authority: trustme.CA) -> None:
    trust = Trust(clients=authorities(client_authority))

    assert ask(request(certificates=chain(client_authority, "")), trust) == ANONYMOUS_USER


def test_a_certificate_of_an_authority_that_was_dropped(
    client_authority: trustme.CA, strange_authority: trustme.CA
) -> None:
    """The connection is older than what we trust now."""
    shown = request(certificates=chain(client_authority, "ann"))

    assert "certificate signed by unknown authority" in refusal(
        shown, Trust(clients=authorities(strange_authority))
    )
    assert ask(shown, Trust()) == ANONYMOUS_USER


@pytest.mark.parametrize("years", [-40, 990])
def test_a_certificate_out_of_its_time(
    trust: Trust, client_authority: trustme.CA, years: int
) -> None:
    at = (dt.datetime.now(dt.UTC) + dt.timedelta(days=365 * years)).timestamp()
    shown = request(certificates=chain(client_authority, "ann"))

    assert "expired or is not yet valid" in refusal(shown, trust, at=at)


def test_an_authority_above_or_between_is_enough(client_authority: trustme.CA) -> None:
    between = client_authority.create_child_ca()
    leaf = between.issue_cert("client.test", common_name="ann")
    whole = (der(leaf.cert_chain_pems[0]), der(between.cert_pem), der(client_authority.cert_pem))
    for trusted in (client_authority, between):
        for shown in (whole, whole[:2]):
            found = ask(request(certificates=shown), Trust(clients=authorities(trusted)))
            assert isinstance(found, User)
            assert found.username == "ann"


def test_a_resumed_connection_shows_the_certificate_alone(
    trust: Trust, client_authority: trustme.CA, strange_authority: trustme.CA
) -> None:
    found = ask(request(certificates=chain(client_authority, "ann")[:1]), trust)
    assert isinstance(found, User)
    assert found.username == "ann"

    strange = request(certificates=chain(strange_authority, "ann")[:1])
    assert "unknown authority" in refusal(strange, trust)


def certificate_with_uids(*uids: str) -> tuple[bytes, Trust]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, "ann")]
        + [x509.NameAttribute(UID, uid) for uid in uids]
    )
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + dt.timedelta(hours=1))
    ).sign(key, hashes.SHA256())
    trust = Trust(clients=Authorities.parse(certificate.public_bytes(Encoding.PEM)))
    return certificate.public_bytes(Encoding.DER), trust


def test_a_certificate_may_carry_a_uid() -> None:
    shown, trust = certificate_with_uids("1234")
    found = ask(request(certificates=(shown,)), trust)

    assert isinstance(found, User)
    assert found.uid == "1234"


def test_a_certificate_of_two_uids_is_none() -> None:
    shown, trust = certificate_with_uids("1", "2")

    assert refusal(request(certificates=(shown,)), trust) == (
        "expected 1 UID, but found multiple: [1 2]"
    )


# ---------------------------------------------------------------------- front proxies


def test_a_proxy_says_for_whom_it_asks(trust: Trust, proxy_authority: trustme.CA) -> None:
    shown = chain(proxy_authority, "front-proxy")
    asked = request(
        headers={
            "X-Remote-User": "ann",
            "X-Remote-Uid": "7",
            "X-Remote-Group": "g1",
            "X-Remote-Extra-Scopes%2FKube": "a",
            "X-Other": "b",
        },
        certificates=shown,
    )

    assert ask(asked, trust) == User(
        username="ann",
        uid="7",
        groups=("g1", "system:authenticated"),
        extra={"scopes/kube": ("a",)},
    )


def test_all_groups_of_a_proxy_count(trust: Trust, proxy_authority: trustme.CA) -> None:
    shown = chain(proxy_authority, "front-proxy")
    asked = request(headers={"x-user": "ann", "X-Remote-Group": "g1"}, certificates=shown)
    asked._scope["headers"].append((b"x-remote-group", b"g2"))

    found = ask(asked, trust)
    assert isinstance(found, User)
    assert found.groups == ("g1", "g2", "system:authenticated")


def test_headers_alone_say_nothing(trust: Trust, client_authority: trustme.CA) -> None:
    headers = {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}

    assert ask(request(headers=headers), trust) == ANONYMOUS_USER

    shown = chain(client_authority, "eve", "strangers")
    found = ask(request(headers=headers, certificates=shown), trust)
    assert isinstance(found, User)
    assert (found.username, found.groups) == ("eve", ("strangers", "system:authenticated"))


def test_a_proxy_that_is_not_on_the_list(trust: Trust, proxy_authority: trustme.CA) -> None:
    shown = chain(proxy_authority, "other-proxy")
    asked = request(headers={"X-Remote-User": "ann"}, certificates=shown)

    assert refusal(asked, trust).startswith(
        "x509: subject with cn=other-proxy is not in the allowed list, "
    )


def test_a_proxy_that_names_nobody_is_not_a_user_itself(
    trust: Trust, proxy_authority: trustme.CA
) -> None:
    asked = request(certificates=chain(proxy_authority, "front-proxy"))

    assert "unknown authority" in refusal(asked, trust)


def test_without_a_list_every_proxy_of_the_authority_counts(proxy_authority: trustme.CA) -> None:
    proxy = FrontProxy(authorities(proxy_authority), username_headers=("x-remote-user",))
    shown = chain(proxy_authority, "any")
    found = ask(
        request(headers={"X-Remote-User": "ann"}, certificates=shown), Trust(front_proxy=proxy)
    )

    assert isinstance(found, User)
    assert found.username == "ann"


# ---------------------------------------------------------------------- users


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        (User(username="ann"), ("system:authenticated",)),
        (User(username="ann", groups=("g",)), ("g", "system:authenticated")),
        (User(username="ann", groups=("system:authenticated",)), ("system:authenticated",)),
        (User(username="ann", groups=("system:unauthenticated",)), ("system:unauthenticated",)),
        (ANONYMOUS_USER, ("system:unauthenticated",)),
    ],
)
def test_somebody_who_is_known_is_authenticated(user: User, groups: tuple[str, ...]) -> None:
    assert user.authenticated().groups == groups


def test_tokens_are_ignored_if_nobody_can_review_them(trust: Trust) -> None:
    assert ask(request(headers={"Authorization": "Bearer t"}), trust) == ANONYMOUS_USER
