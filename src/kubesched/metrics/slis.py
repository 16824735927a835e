"""Service level indicators of health checks, for ``/metrics/slis``."""

from __future__ import annotations

from kubesched.metrics.families import CounterFamily, GaugeFamily
from kubesched.metrics.process import start_time_s
from kubesched.metrics.shared_table import HEALTH

_SUCCESS, _ERROR = "success", "error"


class HealthSlis:
    """The last result of each health check, and the count of each result."""

    def __init__(self) -> None:
        healthcheck, healthchecks, start_time = HEALTH
        self._healthcheck = GaugeFamily(healthcheck)
        self._healthchecks = CounterFamily(healthchecks)
        self._start_time = GaugeFamily(start_time)
        self._start_time.labels().set(start_time_s())

    def observe(self, name: str, endpoint: str, *, healthy: bool) -> None:
        """Record the result of a check (``leaderElection``) for an endpoint (``healthz``)."""
        self._healthcheck.labels(name, endpoint).set(healthy)
        self._healthchecks.labels(name, endpoint, _SUCCESS if healthy else _ERROR).inc()

    def render(self) -> bytes:
        """Format them; the content type is ``exposition.CONTENT_TYPE``."""
        families = (self._healthcheck, self._healthchecks, self._start_time)
        return "".join(family.text() for family in families).encode()

    def reset(self) -> None:
        """Reset the counts."""
        self._healthchecks.reset()
