"""Which paths there are."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from kubesched.clock import RealClock
from kubesched.server.answers import ServerAnswer
from kubesched.server.routes import Routes
from kubesched.server.sources import HealthCheck, MetricsPage, Sources, StatusPage
from tests.support.serving import request

EVERYTHING = Sources(
    readyz=(HealthCheck("shutdown", lambda: None),),
    metrics=MetricsPage(lambda: b"a 1\n"),
    resource_metrics=MetricsPage(lambda: None),
    sli_metrics=MetricsPage(lambda: b"b 1\n"),
    configuration=lambda: b"{}",
    flags=lambda: {"v": "2"},
    status=StatusPage("1.37.1", "1.37"),
    set_verbosity=lambda _level: None,
    profiling=True,
)


def ask(target: str, sources: Sources = EVERYTHING, **headers: str) -> ServerAnswer:
    routes = Routes(sources, started=0, clock=RealClock())
    return asyncio.run(routes.answer(request(target, headers=headers)))


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/healthz", 200),
        ("/healthz/ping", 200),
        ("/healthz/", 404),
        ("/livez", 200),
        ("/livez/ping", 200),
        ("/readyz", 200),
        ("/readyz/shutdown", 200),
        ("/readyz/ping", 404),
        ("/metrics", 200),
        ("/metrics/", 404),
        ("/metrics/resources", 200),
        ("/metrics/slis", 200),
        ("/configz", 200),
        ("/flagz", 200),
        ("/statusz", 200),
        ("/debug/pprof", 302),
        ("/debug/pprof/", 200),
        ("/debug/pprof/tasks", 200),
        ("/debug/pprof/nothing", 404),
        ("/debug/flags", 200),
        ("/debug/flags/", 200),
        ("/debug/flags/x", 200),
        ("/debug/flags/v", 406),
        ("/debug", 404),
        ("/", 404),
        ("/api/v1/pods", 404),
    ],
)
def test_paths(path: str, code: int) -> None:
    assert ask(path).code == code


@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/metrics/resources",
        "/metrics/slis",
        "/configz",
        "/flagz",
        "/statusz",
        "/debug/pprof",
        "/debug/pprof/",
        "/debug/pprof/profile",
        "/debug/flags",
        "/debug/flags/v",
    ],
)
def test_what_has_no_source_is_not_there(path: str) -> None:
    answer = ask(path, Sources(set_verbosity=lambda _level: None))

    assert (answer.code, answer.body) == (404, b"404 page not found\n")


def test_health_needs_no_source() -> None:
    for name in ("healthz", "livez", "readyz"):
        assert ask(f"/{name}?verbose", Sources()).body == (
            f"[+]ping ok\n{name} check passed\n".encode()
        )


def test_the_status_page_lists_the_pages_there_are() -> None:
    accept = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"
    paths = msgspec.json.decode(ask("/statusz", accept=accept).body)["paths"]

    assert paths == ["/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz"]
