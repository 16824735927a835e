"""Discovery: whether an API server serves a resource in a version."""

from __future__ import annotations

import pytest

from kubesched.client import discovery, resources
from kubesched.client.rest import ApiClient
from tests.support.servers import Script, ScriptedServer, answer, failure

from .conftest import Run

THINGS = resources.grouped("example.com/v1", "things", namespaced=True)
PATH = "/apis/example.com/v1"


@pytest.mark.parametrize(
    ("response", "served"),
    [
        (answer({"resources": [{"name": "things"}, {"name": "things/status"}]}), True),
        (answer({"resources": [{"name": "others"}]}), False),
        (answer({"resources": []}), False),
        (failure(404, "NotFound", "the server could not find the requested resource"), False),
    ],
    ids=["served", "another resource", "an empty group", "no such group"],
)
def test_a_resource_is_served_if_its_group_version_lists_it(
    run: Run, response: bytes, served: bool
) -> None:
    async def test() -> None:
        async with (
            ScriptedServer(Script().on("GET", PATH, response)) as server,
            ApiClient(server.access) as client,
        ):
            assert await discovery.serves(client, THINGS) is served

    run(test())
