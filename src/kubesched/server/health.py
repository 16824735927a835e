"""``/healthz``, ``/livez``, ``/readyz``: runs checks, and formats their results.

The root path reports all checks but withholds reasons, because it is public. The path of a single
check reports its reason; it is not public.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from kubesched.go_text import quoted
from kubesched.server import answers
from kubesched.server.answers import ServerAnswer
from kubesched.server.request import ServerRequest
from kubesched.server.sources import PING, HealthCheck

_log = logging.getLogger(__name__)


class HealthEndpoint:
    """All checks of one endpoint."""

    def __init__(
        self,
        name: str,
        checks: Sequence[HealthCheck],
        observe: Callable[[str, str, bool], None],
    ) -> None:
        #: ``healthz``, ``livez`` or ``readyz``
        self.name = name
        self.checks = tuple(checks) or (PING,)
        self._observe = observe

    def all(self, request: ServerRequest) -> ServerAnswer:
        """Run all checks but the excluded ones."""
        excluded = set(request.query.get("exclude", ()))
        failures: dict[str, str] = {}
        lines = [self._line(check, excluded, failures) for check in self.checks]
        if unknown := sorted(excluded - {check.name for check in self.checks}):
            names = ",".join(map(quoted, unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        if failures:
            _log.debug("%s check failed: %s", self.name, failures)
            return answers.plain_error("".join([*lines, f"{self.name} check failed"]), 500)
        if "verbose" not in request.query:
            lines = ["ok"]
        else:
            lines.append(f"{self.name} check passed\n")
        return ServerAnswer("".join(lines).encode(), headers=answers.NO_SNIFF)

    def one(self, check: HealthCheck) -> ServerAnswer:
        """Run one check, and report the reason."""
        problem = check.check()
        if problem is not None:
            return answers.plain_error(f"internal server error: {problem}", 500)
        return answers.text("ok")

    def _line(self, check: HealthCheck, excluded: set[str], failures: dict[str, str]) -> str:
        if check.name in excluded:
            return f"[+]{check.name} excluded: ok\n"
        problem = check.check()
        self._observe(check.name, self.name, problem is None)
        if problem is None:
            return f"[+]{check.name} ok\n"
        failures[check.name] = problem
        return f"[-]{check.name} failed: reason withheld\n"
