"""Health endpoints: what probes get, and what people read."""

from __future__ import annotations

import pytest

from kubesched.server.health import HealthEndpoint
from kubesched.server.sources import HealthCheck
from tests.support.serving import request


def check(name: str, problem: str | None = None) -> HealthCheck:
    return HealthCheck(name, lambda: problem)


def endpoint(*checks: HealthCheck) -> tuple[HealthEndpoint, list[tuple[str, str, bool]]]:
    seen: list[tuple[str, str, bool]] = []
    return HealthEndpoint("readyz", checks, lambda *each: seen.append(each)), seen


def ask(target: str, *checks: HealthCheck) -> tuple[int, str]:
    answer = endpoint(*checks)[0].all(request(target))
    return answer.code, answer.body.decode()


BOTH = (check("shutdown"), check("sched-handler-sync"))
BROKEN = (check("shutdown"), check("sched-handler-sync", "handlers are not synchronized"))


@pytest.mark.parametrize(
    ("target", "checks", "code", "text"),
    [
        ("/readyz", BOTH, 200, "ok"),
        ("/readyz", (), 200, "ok"),
        ("/readyz?verbose", (), 200, "[+]ping ok\nreadyz check passed\n"),
        (
            "/readyz?verbose",
            BOTH,
            200,
            "[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n",
        ),
        (
            "/readyz?verbose&exclude=shutdown",
            BOTH,
            200,
            "[+]shutdown excluded: ok\n[+]sched-handler-sync ok\nreadyz check passed\n",
        ),
        (
            '/readyz?exclude=x&verbose=1&exclude=a"b',
            (check("ping"),),
            200,
            (
                "[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "
                '"a\\"b","x"\nreadyz check passed\n'
            ),
        ),
        (
            "/readyz",
            BROKEN,
            500,
            "[+]shutdown ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n",
        ),
        ("/readyz?exclude=sched-handler-sync", BROKEN, 200, "ok"),
    ],
)
def test_the_root_answers_for_all_checks(
    target: str, checks: tuple[HealthCheck, ...], code: int, text: str
) -> None:
    assert ask(target, *checks) == (code, text)


def test_a_check_of_its_own_gives_its_reason() -> None:
    readyz, _ = endpoint(*BROKEN)

    assert readyz.one(BROKEN[0]).body == b"ok"

    failed = readyz.one(BROKEN[1])
    assert failed.code == 500
    assert failed.body == b"internal server error: handlers are not synchronized\n"


def test_each_check_that_is_made_is_counted() -> None:
    readyz, seen = endpoint(*BROKEN, check("third"))
    readyz.all(request("/readyz?exclude=third"))

    assert seen == [("shutdown", "readyz", True), ("sched-handler-sync", "readyz", False)]
