"""Counting requests to the API server."""

from __future__ import annotations

from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import Counter, Histogram


class RestMetrics:
    """Hears of every answer, and counts it by code, method and host."""

    def __init__(self, metrics: Metrics, host: str) -> None:
        self._metrics = metrics
        self._host = host
        self._counters: dict[tuple[str, int], Counter] = {}
        self._durations: dict[str, Histogram] = {}

    def on_answer(self, method: str, code: int, duration_s: float) -> None:
        """An answer came after that long; code 0: none came."""
        counter = self._counters.get((method, code))
        if counter is None:
            text = str(code) if code else "<error>"
            counter = self._metrics.rest_client_requests.labels(text, method, self._host)
            self._counters[method, code] = counter
        counter.value += 1
        duration = self._durations.get(method)
        if duration is None:
            duration = self._metrics.rest_client_request_duration.labels(method, self._host)
            self._durations[method] = duration
        duration.observe(duration_s)
