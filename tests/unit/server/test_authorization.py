"""Who may see what, before and without the API server's word."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.errors import ConfigError
from kubesched.server.authorization import ALLOWED, FORBIDDEN, AllowedPaths, Authorizer
from kubesched.server.users import ANONYMOUS_USER, User

DEFAULTS = AllowedPaths(("/healthz", "/readyz", "/livez"))


@pytest.mark.parametrize(
    ("paths", "path", "allowed"),
    [
        (("/healthz",), "/healthz", True),
        (("healthz",), "/healthz", True),
        (("/healthz",), "/healthz/ping", False),
        (("/healthz",), "/healthz/", False),
        (("/healthz",), "/Healthz", False),
        (("/healthz*",), "/healthz/ping", True),
        (("/healthz/*",), "/healthz", False),
        (("/healthz/*",), "/healthz/ping", True),
        (("*",), "/anything", True),
        (("/",), "/", True),
        (("/",), "/metrics", False),
        (("",), "/", True),
        ((), "/", False),
    ],
)
def test_paths_that_need_no_permission(paths: tuple[str, ...], path: str, allowed: bool) -> None:
    assert (path in AllowedPaths(paths)) is allowed


@pytest.mark.parametrize("path", ["/a*b", "*/metrics", "/**"])
def test_a_star_is_for_the_end(path: str) -> None:
    with pytest.raises(ConfigError) as refused:
        AllowedPaths((path,))

    assert str(refused.value) == f'only trailing * allowed in "{path.removeprefix("/")}"'


@pytest.mark.parametrize(
    ("user", "path", "decision"),
    [
        (ANONYMOUS_USER, "/healthz", ALLOWED),
        (ANONYMOUS_USER, "/metrics", FORBIDDEN),
        (User(username="eve", groups=("system:authenticated",)), "/metrics", FORBIDDEN),
        (User(username="root", groups=("system:masters",)), "/metrics", ALLOWED),
    ],
)
def test_without_an_api_server(user: User, path: str, decision: object) -> None:
    assert asyncio.run(Authorizer(DEFAULTS, None).decide(user, "get", path)) == decision
