"""The contents of the endpoints, as callables that the composition root provides.

The server calls them in the event loop's thread on each request, and does not depend on the rest of
the program. A page that is None does not exist: 404.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct

from kubesched.client.requester import RequestObserver
from kubesched.server.answers import ServerAnswer
from kubesched.server.request import ServerRequest
from kubesched.server.reviews import TokenCacheObserver


class HealthCheck(NamedTuple):
    """A named check; returns an error, or None."""

    name: str
    check: Callable[[], str | None]


PING = HealthCheck("ping", lambda: None)


class MetricsPage(NamedTuple):
    """A page in Prometheus' text format."""

    #: None gives an empty page, e.g. while another replica leads; a long page is streamed in
    #: chunks, between which the event loop runs other tasks
    render: Callable[[], bytes | AsyncIterator[bytes] | None]
    #: what DELETE does; without it DELETE is answered like GET
    reset: Callable[[], None] | None = None


class StatusFinding(NamedTuple):
    """A finding for operators that kube-scheduler's page does not have."""

    title: str
    #: its field in the JSON form, under ``kubesched``
    field: str
    #: one line each; the page omits it if empty
    lines: Callable[[], list[str]]


class StatusPage(NamedTuple):
    """The program's part of ``/statusz``."""

    #: e.g. 1.36.4
    binary_version: str
    #: e.g. 1.36
    emulation_version: str = ""
    findings: tuple[StatusFinding, ...] = ()


class CallerObserver(Protocol):
    """Receives the results of authentication and authorization."""

    def on_authenticated(self, username: str, *, duration_s: float) -> None:
        """A caller was authenticated; "" if its credentials are invalid."""

    def on_authorized(self, *, allowed: bool, failed: bool, duration_s: float) -> None:
        """A request was authorized or not; or that could not be decided."""


def _unobserved(_purpose: str, _host: str) -> None:
    """Return no observer."""


def _ignore(_name: str, _endpoint: str, _passed: bool) -> None:
    """Ignore a check."""


class Sources(Struct, frozen=True, kw_only=True):
    """The contents of all endpoints."""

    #: the program's name in /flagz and /statusz
    component: str = "kube-scheduler"
    #: without checks, ``ping`` is the only one
    healthz: tuple[HealthCheck, ...] = ()
    livez: tuple[HealthCheck, ...] = ()
    readyz: tuple[HealthCheck, ...] = ()
    #: called with each check that an endpoint made: its name, the endpoint, passed or not
    observe_check: Callable[[str, str, bool], None] = _ignore
    #: returns the observer of requests about callers, by purpose (``authentication``,
    #: ``authorization``) and host
    observe_requests: Callable[[str, str], RequestObserver | None] = _unobserved
    observe_callers: CallerObserver | None = None
    #: receives cache hits of tokens
    observe_tokens: TokenCacheObserver | None = None
    #: /metrics
    metrics: MetricsPage | None = None
    #: /metrics/resources
    resource_metrics: MetricsPage | None = None
    #: /metrics/slis
    sli_metrics: MetricsPage | None = None
    #: /configz: the configuration as JSON
    configuration: Callable[[], bytes] | None = None
    #: /flagz: all flags and their values, without the dashes
    flags: Callable[[], Mapping[str, str]] | None = None
    #: /statusz
    status: StatusPage | None = None
    #: whether /flagz and /statusz support CBOR
    cbor: bool = False
    #: PUT /debug/flags/v; only with profiling
    set_verbosity: Callable[[int], None] | None = None
    #: whether /debug/pprof and /debug/flags exist
    profiling: bool = False
    #: handles everything under /ui/
    web_page: Callable[[ServerRequest], Awaitable[ServerAnswer]] | None = None
