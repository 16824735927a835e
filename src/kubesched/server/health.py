"""``/healthz``, ``/livez``, ``/readyz``: checks in, the texts that probes and people read out.

The root answers for all checks and keeps reasons to itself, because everybody may ask it. A single
check's own path gives its reason; it is not open to everybody.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from kubesched.server import answers
from kubesched.server.answers import Answer
from kubesched.server.go_text import quoted
from kubesched.server.request import Request
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

    def all(self, request: Request) -> Answer:
        """Answer for all checks but the excluded ones."""
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
        return Answer("".join(lines).encode(), headers=answers.NO_SNIFF)

    def one(self, check: HealthCheck) -> Answer:
        """Answer for one check, with the reason."""
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
