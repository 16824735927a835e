"""An informer of a resource that some API servers do not serve."""

from __future__ import annotations

import logging

import pytest

from kubesched.client.informer import NOT_SERVED_PAUSE_S
from tests.support.servers import answer, failure
from tests.support.waiting import eventually

from .conftest import Run
from .objects import thing
from .running_informer import Api, listed, running

ABSENT = failure(404, "NotFound", "the server could not find the requested resource")
ASKING_AGAIN = "asking again every 60 s"
FORBIDDEN = failure(403, "Forbidden", "no things for you")


def test_what_is_not_served_is_said_once_and_does_not_hold_up_others(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    api = Api()
    api.lists = [
        ABSENT,
        ABSENT,
        ABSENT,
        listed(thing("a", version=1), version=2),
    ]

    async def scenario() -> None:
        async with running(api, optional=True) as fixture:
            await fixture.informer.synced.wait()
            await fixture.hears("add a@1")
            assert fixture.pauses[:3] == [NOT_SERVED_PAUSE_S] * 3
            assert fixture.informer.failing_since is None

    with caplog.at_level(logging.INFO):
        run(scenario())
    assert [record.message for record in caplog.records] == [
        f"the API server does not serve things in version v1; going on without, {ASKING_AGAIN}",
        "the API server serves things in version v1 now",
    ]


def test_objects_of_what_is_served_no_more_are_gone(run: Run) -> None:
    api = Api()
    api.lists = [listed(thing("a", version=1), version=2), ABSENT]
    api.watches = [ABSENT]

    async def scenario() -> None:
        async with running(api, optional=True) as fixture:
            await fixture.hears("initial a@1", "delete a@1")
            assert fixture.informer.resource_version == ""

    run(scenario())


@pytest.mark.parametrize(
    "discovered",
    [
        pytest.param(ABSENT, id="not the version"),
        pytest.param(answer({"resources": [{"name": "others"}]}), id="not the resource"),
    ],
)
def test_a_server_may_forbid_what_it_does_not_serve(
    run: Run, caplog: pytest.LogCaptureFixture, discovered: bytes
) -> None:
    """Its roles were made without the resource, and it looks at rights before it looks at paths."""
    api = Api()
    api.discovered = discovered
    api.lists = [FORBIDDEN, FORBIDDEN, listed(thing("a", version=1), version=2)]

    async def scenario() -> None:
        async with running(api, optional=True) as fixture:
            await fixture.informer.synced.wait()
            await fixture.hears("add a@1")
            assert fixture.pauses[:2] == [NOT_SERVED_PAUSE_S] * 2
            assert fixture.informer.failing_since is None

    with caplog.at_level(logging.INFO):
        run(scenario())
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_one_that_is_served_and_may_not_be_listed_is_waited_for(run: Run) -> None:
    api = Api()
    api.lists = [FORBIDDEN, ABSENT]

    async def scenario() -> None:
        async with running(api, optional=True) as fixture:
            await eventually(lambda: fixture.informer.trouble != "")
            assert "no things for you" in fixture.informer.trouble
            assert not fixture.informer.has_synced
            await fixture.informer.synced.wait()
            assert fixture.informer.trouble == ""

    run(scenario())


def test_one_of_which_nothing_can_be_learnt_is_waited_for(run: Run) -> None:
    api = Api()
    api.lists = [FORBIDDEN, ABSENT]
    api.discovered = failure(500, "InternalError", "no discovery now")

    async def scenario() -> None:
        async with running(api, optional=True) as fixture:
            await eventually(lambda: "no things for you" in fixture.informer.trouble)
            assert not fixture.informer.has_synced
            await fixture.informer.synced.wait()

    run(scenario())


def test_any_other_resource_is_waited_for(run: Run) -> None:
    api = Api()
    api.lists = [ABSENT]

    async def scenario() -> None:
        async with running(api) as fixture:
            await eventually(lambda: len(fixture.pauses) > 0)
            assert not fixture.informer.has_synced
            assert fixture.pauses[0] < NOT_SERVED_PAUSE_S

    run(scenario())
