"""Routing: exact paths first, then the longest prefix, else 404."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from kubesched.clock import Clock
from kubesched.server import answers, pages, profiling
from kubesched.server.answers import ServerAnswer
from kubesched.server.health import HealthEndpoint
from kubesched.server.profiling import Profiler
from kubesched.server.request import ServerRequest
from kubesched.server.sources import HealthCheck, MetricsPage, Sources
from kubesched.server.zpages import Flagz, Statusz

Handler = Callable[[ServerRequest], ServerAnswer | Awaitable[ServerAnswer]]


class Routes:
    """All endpoints of these sources."""

    def __init__(self, sources: Sources, *, started: float, clock: Clock) -> None:
        """``started`` is when the process started, in seconds since the epoch."""
        self._sources = sources
        self._started = started
        self._exact: dict[str, Handler] = {}
        self._prefixes: dict[str, Handler] = {}
        #: the paths in /statusz: all but itself and the debug pages
        self._listed: list[str] = []
        self.profiler = Profiler()
        self._add_health()
        self._add_pages()
        if sources.profiling:
            self._add_debug()
        if sources.web_page is not None:
            self._exact["/ui"] = self._prefixes["/ui/"] = sources.web_page
        if sources.status is not None:
            self._exact["/statusz"] = Statusz(
                sources.component,
                sources.status,
                paths=lambda: self._listed,
                started=started,
                clock=clock,
                cbor=sources.cbor,
            )

    async def answer(self, request: ServerRequest) -> ServerAnswer:
        """Handle an authorized request."""
        handler = self._handler(request.path)
        if handler is None:
            return answers.not_found()
        answer = handler(request)
        return answer if isinstance(answer, ServerAnswer) else await answer

    def _handler(self, path: str) -> Handler | None:
        if path in self._exact:
            return self._exact[path]
        matching = [prefix for prefix in self._prefixes if path.startswith(prefix)]
        return self._prefixes[max(matching, key=len)] if matching else None

    def _list(self, path: str, handler: Handler) -> None:
        self._exact[path] = handler
        self._listed.append(path)

    def _add_health(self) -> None:
        sources = self._sources
        for name, checks in (
            ("healthz", sources.healthz),
            ("livez", sources.livez),
            ("readyz", sources.readyz),
        ):
            endpoint = HealthEndpoint(name, checks, sources.observe_check)
            self._list(f"/{name}", endpoint.all)
            for check in endpoint.checks:
                self._list(f"/{name}/{check.name}", partial(_one_check, endpoint, check))

    def _add_pages(self) -> None:
        sources = self._sources
        pages_of_metrics: dict[str, MetricsPage | None] = {
            "/metrics": sources.metrics,
            "/metrics/resources": sources.resource_metrics,
            "/metrics/slis": sources.sli_metrics,
        }
        for path, page in pages_of_metrics.items():
            if page is not None:
                self._list(path, pages.metrics(page, started=self._started))
        if sources.configuration is not None:
            self._list("/configz", pages.configz(sources.configuration))
        if sources.flags is not None:
            self._list("/flagz", Flagz(sources.component, sources.flags, cbor=sources.cbor))

    def _add_debug(self) -> None:
        self._exact["/debug/pprof"] = profiling.redirect
        self._prefixes[profiling.PREFIX] = self.profiler
        self._exact["/debug/flags"] = pages.flags_index
        self._prefixes["/debug/flags/"] = pages.flags_index
        if self._sources.set_verbosity is not None:
            self._exact["/debug/flags/v"] = pages.VerbosityFlag(self._sources.set_verbosity)


def _one_check(
    endpoint: HealthEndpoint, check: HealthCheck, _request: ServerRequest
) -> ServerAnswer:
    return endpoint.one(check)
