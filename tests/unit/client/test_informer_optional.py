"""An informer of a resource that some API servers do not serve."""

from __future__ import annotations

import logging

import pytest

from kubesched.client.informer import NOT_SERVED_PAUSE_S
from tests.support.servers import failure
from tests.support.waiting import eventually

from .conftest import Run
from .objects import thing
from .running_informer import Api, listed, running

ABSENT = failure(404, "NotFound", "the server could not find the requested resource")


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
        "the API server does not serve things; going on without",
        "the API server serves things now",
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


def test_one_that_may_not_be_listed_is_waited_for(run: Run) -> None:
    api = Api()
    api.lists = [failure(403, "Forbidden", "no things for you"), ABSENT]

    async def scenario() -> None:
        async with running(api, optional=True) as fixture:
            await eventually(lambda: fixture.informer.trouble != "")
            assert "no things for you" in fixture.informer.trouble
            assert not fixture.informer.has_synced
            await fixture.informer.synced.wait()
            assert fixture.informer.trouble == ""

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
