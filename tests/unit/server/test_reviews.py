"""Questions to the API server: what is asked, what is remembered, what is tried again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from kubesched.client.rest import ApiClient
from kubesched.clock import VirtualClock
from kubesched.errors import ClientError, ForbiddenError
from kubesched.server.options import AuthorizationOptions
from kubesched.server.reviews import AccessReviews, TokenReviews
from kubesched.server.users import ANONYMOUS_USER, User
from tests.support.servers import ScriptedServer, answer, failure
from tests.support.serving import Reviewer

from .conftest import Run

ANN = {"username": "ann", "uid": "7", "groups": ["g1", "g2"], "extra": {"k": ["v"]}}


class Heard:
    """Writes down what the cache of tokens does."""

    def __init__(self) -> None:
        self.answers: list[bool] = []
        self.questions: list[bool] = []
        self.waiting: list[tuple[int, int]] = []

    def on_answered(self, *, known: bool, duration_s: float) -> None:
        assert duration_s >= 0
        self.answers.append(known)

    def on_asked(self, *, ok: bool) -> None:
        self.questions.append(ok)

    def on_waiting(self, *, callers: int, questions: int) -> None:
        self.waiting.append((callers, questions))


class Fixture:
    """Both kinds of reviews, against one API server."""

    def __init__(self, reviewer: Reviewer, client: ApiClient) -> None:
        self.reviewer = reviewer
        self.clock = VirtualClock()
        self.pauses: list[float] = []
        self.heard = Heard()
        self.tokens = TokenReviews(
            client, ttl_s=10, clock=self.clock, sleep=self._sleep, observer=self.heard
        )
        options = AuthorizationOptions(allow_cache_ttl_s=20, deny_cache_ttl_s=5)
        self.access = AccessReviews(client, options, clock=self.clock, sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def reviews(reviewer: Reviewer) -> AsyncIterator[Fixture]:
    async with ScriptedServer(reviewer) as api, ApiClient(api.access) as client:
        yield Fixture(reviewer, client)


def test_whose_a_token_is(run: Run) -> None:
    async def main() -> None:
        async with reviews(Reviewer(tokens={"t": ANN})) as fixture:
            assert await fixture.tokens.user_of("t") == User(
                username="ann", uid="7", groups=("g1", "g2"), extra={"k": ("v",)}
            )
            assert await fixture.tokens.user_of("x") is None
            assert fixture.reviewer.token_reviews == [{"token": "t"}, {"token": "x"}]

    run(main())


def test_answers_about_tokens_are_kept_for_their_time(run_once: Run) -> None:
    async def main() -> None:
        async with reviews(Reviewer(tokens={"t": ANN})) as fixture:
            for advance, asked in ((0, 2), (9, 2), (2, 4), (1, 4)):
                fixture.clock.advance(advance)
                await fixture.tokens.user_of("t")
                await fixture.tokens.user_of("wrong")
                assert len(fixture.reviewer.token_reviews) == asked

    run_once(main())


def test_a_token_is_asked_about_once_at_a_time(run_once: Run) -> None:
    async def main() -> None:
        async with reviews(Reviewer(tokens={"t": ANN})) as fixture:
            users = await asyncio.gather(*(fixture.tokens.user_of("t") for _ in range(10)))
            assert len({user.username for user in users if user}) == 1
            assert len(fixture.reviewer.token_reviews) == 1

    run_once(main())


def test_others_who_wait_get_the_answer_that_one_gave_up_on(run_once: Run) -> None:
    async def main() -> None:
        async with reviews(Reviewer(tokens={"t": ANN})) as fixture:
            impatient = asyncio.create_task(fixture.tokens.user_of("t"))
            patient = asyncio.create_task(fixture.tokens.user_of("t"))
            await asyncio.sleep(0)
            impatient.cancel()
            user = await patient
            assert user is not None
            assert user.username == "ann"

    run_once(main())


def test_what_an_observer_hears(run_once: Run) -> None:
    broken = answer({"status": {"error": "no such issuer"}}, status=201)

    async def main() -> None:
        async with reviews(Reviewer(tokens={"t": ANN}, failures=[broken])) as fixture:
            heard = fixture.heard
            with pytest.raises(ClientError):
                await fixture.tokens.user_of("t")
            assert (heard.answers, heard.questions) == ([False], [False])
            await asyncio.gather(*(fixture.tokens.user_of("t") for _ in range(3)))
            await fixture.tokens.user_of("t")
            await fixture.tokens.user_of("unknown")
            assert heard.answers == [False, *[False] * 3, True, False]
            assert heard.questions == [False, True, True]
            assert max(heard.waiting) == (3, 1)
            assert heard.waiting[-1] == (0, 0)

    run_once(main())


def test_an_error_in_the_review_is_an_error_and_not_kept(run_once: Run) -> None:
    broken = answer({"status": {"error": "no such issuer"}}, status=201)

    async def main() -> None:
        async with reviews(Reviewer(tokens={"t": ANN}, failures=[broken])) as fixture:
            with pytest.raises(ClientError, match="no such issuer"):
                await fixture.tokens.user_of("t")
            assert await fixture.tokens.user_of("t") is not None

    run_once(main())


def test_what_is_asked_about_rights(run: Run) -> None:
    ann = User(username="ann", uid="7", groups=("g1",), extra={"k": ("v",)})

    async def main() -> None:
        async with reviews(Reviewer(rights={("ann", "/metrics")})) as fixture:
            assert (await fixture.access.verdict(ann, "get", "/metrics")).allowed
            assert not (await fixture.access.verdict(ANONYMOUS_USER, "get", "/metrics")).allowed
            assert fixture.reviewer.access_reviews == [
                {
                    "user": "ann",
                    "uid": "7",
                    "groups": ["g1"],
                    "extra": {"k": ["v"]},
                    "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
                },
                {
                    "user": "system:anonymous",
                    "groups": ["system:unauthenticated"],
                    "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
                },
            ]

    run(main())


def test_yes_and_no_are_kept_for_times_of_their_own(run_once: Run) -> None:
    ann = User(username="ann")

    async def main() -> None:
        async with reviews(Reviewer(rights={("ann", "/a")})) as fixture:
            asked = fixture.reviewer.access_reviews
            for advance, count in ((0, 2), (4, 2), (2, 3), (15, 5)):
                fixture.clock.advance(advance)
                await fixture.access.verdict(ann, "get", "/a")
                await fixture.access.verdict(ann, "get", "/b")
                assert len(asked) == count

    run_once(main())


def test_another_verb_path_or_group_is_another_question(run_once: Run) -> None:
    async def main() -> None:
        async with reviews(Reviewer()) as fixture:
            for user, verb, path in (
                (User(username="ann"), "get", "/a"),
                (User(username="ann"), "put", "/a"),
                (User(username="ann"), "get", "/b"),
                (User(username="ann", groups=("g",)), "get", "/a"),
                (User(username="ann", extra={"k": ("v",)}), "get", "/a"),
            ):
                await fixture.access.verdict(user, verb, path)
            assert len(fixture.reviewer.access_reviews) == 5

    run_once(main())


def test_a_very_long_path_is_not_remembered(run_once: Run) -> None:
    async def main() -> None:
        async with reviews(Reviewer()) as fixture:
            for _ in range(2):
                await fixture.access.verdict(ANONYMOUS_USER, "get", "/" + "x" * 10_000)
            assert len(fixture.reviewer.access_reviews) == 2

    run_once(main())


def test_passing_trouble_is_waited_out(run_once: Run) -> None:
    trouble = [failure(500, "InternalError", "etcd"), failure(504, "Timeout", "slow")]

    async def main() -> None:
        async with reviews(Reviewer(tokens={"t": ANN}, failures=trouble)) as fixture:
            assert await fixture.tokens.user_of("t") is not None
            first, second = fixture.pauses
            assert 0.5 <= first <= 0.6
            assert 0.75 <= second <= 0.9

    run_once(main())


def test_trouble_that_stays_is_an_error(run_once: Run) -> None:
    trouble = [failure(500, "InternalError", "etcd is gone")] * 9

    async def main() -> None:
        async with reviews(Reviewer(failures=trouble)) as fixture:
            with pytest.raises(ClientError, match="etcd is gone"):
                await fixture.access.verdict(ANONYMOUS_USER, "get", "/metrics")
            assert len(fixture.reviewer.failures) == 4

    run_once(main())


def test_what_is_refused_is_not_asked_again(run_once: Run) -> None:
    refused = failure(403, "Forbidden", "not for you")

    async def main() -> None:
        async with reviews(Reviewer(failures=[refused] * 2)) as fixture:
            with pytest.raises(ForbiddenError, match="not for you"):
                await fixture.tokens.user_of("t")
            assert fixture.pauses == []

    run_once(main())
