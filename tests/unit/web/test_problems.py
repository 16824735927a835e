"""An error is one line: JSON for scripts, a page for readers."""

from __future__ import annotations

import msgspec

from kubesched.server.answers import ServerAnswer
from kubesched.web.problems import JSON, for_reader, problem

from .harness import request

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_scripts_get_json() -> None:
    answer = for_reader(request("/ui/api/x", headers={"Accept": "*/*"}), problem("a\n b", 404))

    assert (answer.code, answer.content_type) == (404, JSON)
    assert msgspec.json.decode(answer.body) == {"error": "a b"}


def test_readers_get_a_page_with_the_same_code_and_nothing_that_runs() -> None:
    answer = for_reader(request("/ui/x", headers=BROWSER), problem("there is no <b>", 404))
    text = answer.body.decode()

    assert (answer.code, answer.content_type) == (404, "text/html; charset=utf-8")
    assert "<h1>There is no &lt;b&gt;</h1>" in text
    assert '<a href="/ui/">' in text
    assert "<script" not in text


def test_without_the_token_there_is_no_way_to_the_page() -> None:
    answer = for_reader(request("/ui/", headers=BROWSER), problem("no token", 401))

    assert b"<a " not in answer.body


def test_answers_stay_as_they_are() -> None:
    good = ServerAnswer(b"{}", 200, JSON)

    assert for_reader(request("/ui/api/x", headers=BROWSER), good) is good
