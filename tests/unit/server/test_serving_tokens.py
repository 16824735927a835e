"""Callers with tokens: the API server says who they are and what they may."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.server.options import (
    AuthenticationOptions,
    AuthorizationOptions,
)
from kubesched.server.sources import MetricsPage, Sources
from tests.support.servers import failure
from tests.support.serving import Reply, Reviewer, reviewing, served

from .conftest import Run
from .delegation import delegated

CALLS = {
    ("", "/healthz"): 200,
    ("", "/healthz/ping"): 403,
    ("", "/metrics"): 403,
    ("", "/nothing"): 403,
    ("wrong", "/metrics"): 401,
    ("wrong", "/healthz"): 401,
    ("eve's", "/healthz"): 200,
    ("eve's", "/metrics"): 403,
    ("ann's", "/metrics"): 200,
    ("ann's", "/configz"): 403,
    ("root's", "/metrics"): 200,
    ("root's", "/healthz/ping"): 200,
    ("root's", "/nothing"): 404,
}


def test_callers_with_tokens(run: Run, reviewer: Reviewer, tmp_path: Path) -> None:
    async def main() -> dict[tuple[str, str], Reply]:
        async with delegated(reviewer, tmp_path) as target:
            return {(token, path): await target.ask(path, token=token) for token, path in CALLS}

    replies = run(main())

    assert {call: reply.code for call, reply in replies.items()} == CALLS
    for (_, path), reply in replies.items():
        assert reply.headers["cache-control"] == "no-cache, private"
        assert ("up 1" in reply.text) is (reply.code == 200 and path == "/metrics")


def test_forms_of_a_token(run_once: Run, reviewer: Reviewer, tmp_path: Path) -> None:
    forms = {
        "Bearer ann's": 200,
        "bearer ann's": 200,
        "  Bearer ann's  ": 200,
        "Bearer ann's more": 200,
        "Bearer": 403,
        "Bearer ": 403,
        "Bearer  ann's": 403,
        "Basic YTpi": 403,
        "ann's": 403,
    }

    async def main() -> dict[str, int]:
        async with delegated(reviewer, tmp_path) as target:
            return {
                form: (await target.ask("/metrics", headers={"Authorization": form})).code
                for form in forms
            }

    assert run_once(main()) == forms


def test_who_has_no_rights_learns_nothing_but_that(
    run_once: Run, reviewer: Reviewer, tmp_path: Path
) -> None:
    async def main() -> list[Reply]:
        async with delegated(reviewer, tmp_path) as target:
            paths = ("/metrics", "/nothing")
            return [await target.ask(path, token="eve's") for path in paths]

    there, not_there = run_once(main())

    assert there.text == not_there.text.replace("/nothing", "/metrics")
    assert there.text == (
        '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":'
        '"forbidden: User \\"eve\\" cannot get path \\"/metrics\\"","reason":"Forbidden",'
        '"details":{},"code":403}\n'
    )


def test_the_verb_and_the_decoded_path_are_what_is_authorized(
    run_once: Run, reviewer: Reviewer, tmp_path: Path
) -> None:
    async def main() -> tuple[Reply, Reply]:
        async with delegated(reviewer, tmp_path) as target:
            encoded = await target.ask("/%6detrics?x=/healthz", token="ann's")
            strange = await target.ask("/metrics%3Cb%3E", "DELETE", token="ann's")
            return encoded, strange

    encoded, strange = run_once(main())

    assert encoded.code == 200
    assert 'cannot delete path \\"/metrics\\u0026lt;b\\u0026gt;\\"' in strange.text
    asked = [each["nonResourceAttributes"] for each in reviewer.access_reviews]
    assert asked == [
        {"path": "/metrics", "verb": "get"},
        {"path": "/metrics<b>", "verb": "delete"},
    ]


def test_answers_about_callers_are_kept(run_once: Run, reviewer: Reviewer, tmp_path: Path) -> None:
    async def main() -> None:
        async with delegated(reviewer, tmp_path) as target:
            for _ in range(5):
                await target.ask("/metrics", token="ann's")

    run_once(main())

    assert len(reviewer.token_reviews) == len(reviewer.access_reviews) == 1


def test_an_api_server_that_cannot_tell_whose_a_token_is(
    run_once: Run, reviewer: Reviewer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reviewer.failures = [failure(403, "Forbidden", "tokenreviews is forbidden")]

    async def main() -> Reply:
        async with delegated(reviewer, tmp_path) as target:
            return await target.ask("/metrics", token="ann's")

    assert run_once(main()).code == 401
    assert "tokenreviews is forbidden" in caplog.text


def test_an_api_server_that_cannot_tell_who_may(
    run_once: Run, reviewer: Reviewer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reviewer.failures = [failure(403, "Forbidden", "subjectaccessreviews is forbidden")]

    async def main() -> Reply:
        async with delegated(reviewer, tmp_path) as target:
            return await target.ask("/metrics")

    reply = run_once(main())

    assert reply.code == 500
    assert reply.text == (
        'Internal Server Error: "/metrics": the authorization cannot be checked\n'
    )
    assert "subjectaccessreviews is forbidden" in caplog.text


def test_without_kubeconfigs_only_open_paths_are_open(
    run_once: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    async def main() -> list[int]:
        async with served(authorization=AuthorizationOptions()) as target:
            asked = (("/healthz", ""), ("/metrics", ""), ("/metrics", "any"))
            return [(await target.ask(path, token=token)).code for path, token in asked]

    assert run_once(main()) == [200, 403, 403]
    assert "so client certificate authentication won't work." in caplog.text
    assert "so SubjectAccessReview of authorization tokens won't work." in caplog.text


# --- who hears of callers


def test_callers_are_observed(run_once: Run, reviewer: Reviewer, tmp_path: Path) -> None:
    class Heard:
        def __init__(self) -> None:
            self.names: list[str] = []
            self.decisions: list[tuple[bool, bool]] = []
            self.answers: list[tuple[str, str, int]] = []

        def on_authenticated(self, username: str, *, duration_s: float) -> None:
            assert duration_s >= 0
            self.names.append(username)

        def on_authorized(self, *, allowed: bool, failed: bool, duration_s: float) -> None:
            assert duration_s >= 0
            self.decisions.append((allowed, failed))

    class Requests:
        def __init__(self, purpose: str) -> None:
            self._purpose = purpose

        def on_answer(
            self,
            method: str,
            code: int,
            duration_s: float | None,
            *,
            sizes: tuple[int, int] = (0, 0),
        ) -> None:
            assert duration_s is not None
            assert min(sizes) > 0
            heard.answers.append((self._purpose, method, code))

        def on_limited(self, method: str, waited_s: float) -> None:
            assert method == "POST"
            assert waited_s < 1

    heard = Heard()
    sources = Sources(
        metrics=MetricsPage(lambda: b"up 1\n"),
        observe_callers=heard,
        observe_requests=lambda purpose, host: Requests(purpose) if host else None,
    )

    async def main() -> None:
        async with reviewing(reviewer, tmp_path) as kubeconfig:
            who = AuthenticationOptions(kubeconfig=kubeconfig, skip_lookup=True)
            may = AuthorizationOptions(kubeconfig=kubeconfig)
            async with served(sources, authentication=who, authorization=may) as target:
                for token in ("ann's", "eve's", "wrong", "ann's"):
                    await target.ask("/metrics", token=token)
                reviewer.failures = [failure(400, "BadRequest", "no")]
                await target.ask("/configz", token="ann's")

    run_once(main())

    assert heard.names == ["ann", "eve", "", "ann", "ann"]
    assert heard.decisions == [(True, False), (False, False), (True, False), (False, True)]
    assert heard.answers == [
        ("authentication", "POST", 201),
        ("authorization", "POST", 201),
        ("authentication", "POST", 201),
        ("authorization", "POST", 201),
        ("authentication", "POST", 201),
        ("authorization", "POST", 400),
    ]
