"""The contract about groups, with a kube-apiserver that has their gate on."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from .contract import Api
from .contract_groups import GroupContract, WorkloadContract
from .contract_servers import EmbeddedServer, embedded_api, real_api
from .control_plane import ControlPlane


@pytest.fixture(scope="module")
def control_plane(assets: Path) -> Iterator[ControlPlane]:
    """A control plane that serves pod groups."""
    with ControlPlane(
        assets,
        feature_gates="GenericWorkload=true",
        runtime_config="scheduling.k8s.io/v1beta1=true",
    ) as plane:
        yield plane


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedServer]:
    server = EmbeddedServer()
    yield server
    server.close()


@pytest.fixture(params=["embedded", "kube-apiserver"])
def api(request: pytest.FixtureRequest) -> Iterator[Api]:
    """The server under test, with a new namespace."""
    name = f"contract-{secrets.token_hex(4)}"
    if request.param == "embedded":
        with embedded_api(request.getfixturevalue("embedded"), name) as found:
            yield found
    else:
        with real_api(request.getfixturevalue("control_plane"), name) as found:
            yield found


class TestGroup(GroupContract):
    pass


class TestWorkload(WorkloadContract):
    pass
