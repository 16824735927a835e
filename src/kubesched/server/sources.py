"""What the endpoints show, as callables that whoever puts the process together fills in.

The server asks them in the event loop's thread, each time somebody looks, and knows nothing else
of the program that it belongs to. A page that is None does not exist: 404.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kubesched.client.requester import RequestObserver
from kubesched.server.answers import Answer
from kubesched.server.request import Request
from kubesched.server.reviews import TokenCacheObserver


class HealthCheck(NamedTuple):
    """A named question; the answer is what is wrong, or None."""

    name: str
    check: Callable[[], str | None]


PING = HealthCheck("ping", lambda: None)


class MetricsPage(NamedTuple):
    """A page in Prometheus' text format."""

    #: None shows an empty page, e.g. as long as another replica leads; what takes long to write
    #: comes in pieces, between which the event loop does something else
    render: Callable[[], bytes | AsyncIterator[bytes] | None]
    #: what DELETE does; without it DELETE is answered like GET
    reset: Callable[[], None] | None = None


class Finding(NamedTuple):
    """Something that an operator should know of, and that kube-scheduler's page does not have."""

    title: str
    #: what objects call it, under ``kubesched``
    field: str
    #: one line each; without any, the page does not speak of it
    lines: Callable[[], list[str]]


class StatusPage(NamedTuple):
    """What ``/statusz`` says of the program, besides times and paths."""

    #: e.g. 1.36.4
    binary_version: str
    #: e.g. 1.36
    emulation_version: str = ""
    findings: tuple[Finding, ...] = ()


class CallerObserver(Protocol):
    """Hears of everybody who asks for something."""

    def on_authenticated(self, username: str, *, duration_s: float) -> None:
        """We know who it is; "" if their credentials are no good."""

    def on_authorized(self, *, allowed: bool, failed: bool, duration_s: float) -> None:
        """They may, or may not; or nobody could tell."""


def _unobserved(_purpose: str, _host: str) -> None:
    """Let nobody hear of requests."""


def _ignore(_name: str, _endpoint: str, _passed: bool) -> None:
    """Count nothing."""


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Everything that the endpoints show."""

    #: the program's name in /flagz and /statusz
    component: str = "kube-scheduler"
    #: no checks at all mean ``ping``
    healthz: tuple[HealthCheck, ...] = ()
    livez: tuple[HealthCheck, ...] = ()
    readyz: tuple[HealthCheck, ...] = ()
    #: hears of each check that an endpoint made: its name, ``healthz`` or the like, passed or not
    observe_check: Callable[[str, str, bool], None] = _ignore
    #: gives who hears of the requests to the API server that find out about callers, by what they
    #: are for (``authentication``, ``authorization``) and by whom they go to
    observe_requests: Callable[[str, str], RequestObserver | None] = _unobserved
    observe_callers: CallerObserver | None = None
    #: hears how often callers are known already
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
    #: whether /flagz and /statusz can be had as CBOR
    cbor: bool = False
    #: PUT /debug/flags/v; only with profiling
    set_verbosity: Callable[[int], None] | None = None
    #: whether /debug/pprof and /debug/flags exist
    profiling: bool = False
    #: answers everything under /ui/
    web_page: Callable[[Request], Awaitable[Answer]] | None = None
