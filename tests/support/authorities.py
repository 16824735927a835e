"""Fixtures that are certificate authorities: made once, as making one takes a while.

A package's conftest imports those that its tests use.
"""

from __future__ import annotations

import ssl

import pytest
import trustme


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """The certificate authority of the tests' cluster."""
    return trustme.CA(organization_name="cluster")


@pytest.fixture(scope="session")
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    """What a server on 127.0.0.1 shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "kubernetes.default").configure_cert(context)
    return context


@pytest.fixture
def authority_pem(authority: trustme.CA) -> str:
    """The authority's certificate."""
    return authority.cert_pem.bytes().decode()


@pytest.fixture(scope="session")
def client_authority() -> trustme.CA:
    """The authority of the cluster's clients."""
    return trustme.CA(organization_name="clients")


@pytest.fixture(scope="session")
def proxy_authority() -> trustme.CA:
    """The authority of front proxies."""
    return trustme.CA(organization_name="proxies")


@pytest.fixture(scope="session")
def strange_authority() -> trustme.CA:
    """An authority that nobody here trusts."""
    return trustme.CA(organization_name="strangers")
