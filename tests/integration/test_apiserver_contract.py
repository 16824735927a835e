"""One contract, two API servers: the embedded one must answer as kube-apiserver does."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from .contract import Api
from .contract_bindings import BindingContract, PodDeletionContract
from .contract_deletes import DeleteContract
from .contract_devices import ClaimContract, DeviceContract
from .contract_events import EventContract
from .contract_lists import ListContract, PageContract, SelectorContract
from .contract_objects import (
    CreateContract,
    ReadContract,
    ScaleContract,
    UpdateContract,
)
from .contract_patches import ApplyContract, PatchContract
from .contract_pod_rules import PodValidationContract, PriorityContract
from .contract_pods import PodCreationContract, PodUpdateContract
from .contract_servers import EmbeddedServer, embedded_api, real_api
from .contract_status import NamespaceContract, StatusContract
from .contract_tables import DiscoveryContract, TableContract
from .contract_watches import ForgettingContract, WatchContract


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


class TestBinding(BindingContract):
    pass


class TestPodDeletion(PodDeletionContract):
    pass


class TestDelete(DeleteContract):
    pass


class TestClaim(ClaimContract):
    pass


class TestDevice(DeviceContract):
    pass


class TestEvent(EventContract):
    pass


class TestList(ListContract):
    pass


class TestPage(PageContract):
    pass


class TestSelector(SelectorContract):
    pass


class TestCreate(CreateContract):
    pass


class TestRead(ReadContract):
    pass


class TestScale(ScaleContract):
    pass


class TestUpdate(UpdateContract):
    pass


class TestStatus(StatusContract):
    pass


class TestNamespace(NamespaceContract):
    pass


class TestPatch(PatchContract):
    pass


class TestApply(ApplyContract):
    pass


class TestPriority(PriorityContract):
    pass


class TestPodValidation(PodValidationContract):
    pass


class TestPodCreation(PodCreationContract):
    pass


class TestPodUpdate(PodUpdateContract):
    pass


class TestTable(TableContract):
    pass


class TestDiscovery(DiscoveryContract):
    pass


class TestWatch(WatchContract):
    pass


class TestForgetting(ForgettingContract):
    pass
