"""An API server that says who callers are, and a server that asks it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubesched.server.options import (
    AuthenticationOptions,
    AuthorizationOptions,
)
from tests.support.serving import Reviewer, Target, reviewing, served

ANN = {"username": "ann", "groups": ["people"]}
EVE = {"username": "eve"}
ROOT = {"username": "root", "groups": ["system:masters"]}


@pytest.fixture
def reviewer() -> Reviewer:
    return Reviewer(
        tokens={"ann's": ANN, "eve's": EVE, "root's": ROOT},
        rights={("ann", "/metrics"), ("proxied", "/metrics"), ("certified", "/metrics")},
    )


@contextlib.asynccontextmanager
async def delegated(
    reviewer: Reviewer, folder: Path, **authentication: object
) -> AsyncIterator[Target]:
    """A server whose callers are known to an API server."""
    async with reviewing(reviewer, folder) as kubeconfig:
        options = AuthenticationOptions(kubeconfig=kubeconfig, **authentication)  # type: ignore[arg-type]  # by name
        rights = AuthorizationOptions(kubeconfig=kubeconfig)
        async with served(authentication=options, authorization=rights) as target:
            yield target
