"""Counting requests to the API server."""

from __future__ import annotations

from typing import NamedTuple

from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import Counter, Histogram


class _OfMethod(NamedTuple):
    """What is recorded of the requests of one method."""

    durations: Histogram
    sent_bytes: Histogram
    received_bytes: Histogram
    limited: Histogram


class RestMetrics:
    """Hears of every answer, and counts it by code, method and host."""

    def __init__(self, metrics: Metrics, host: str) -> None:
        self._metrics = metrics
        self._host = host
        self._counters: dict[tuple[str, int], Counter] = {}
        self._by_method: dict[str, _OfMethod] = {}

    def on_answer(
        self, method: str, code: int, duration_s: float | None, *, sizes: tuple[int, int] = (0, 0)
    ) -> None:
        """An answer came after that long; code 0: none came, duration None: it goes on coming."""
        counter = self._counters.get((method, code))
        if counter is None:
            text = str(code) if code else "<error>"
            counter = self._metrics.rest_client_requests.labels(text, method, self._host)
            self._counters[method, code] = counter
        counter.value += 1
        if duration_s is not None:
            of_method = self._of(method)
            of_method.durations.observe(duration_s)
            of_method.sent_bytes.observe(sizes[0])
            of_method.received_bytes.observe(sizes[1])

    def on_limited(self, method: str, waited_s: float) -> None:
        """The rate limiter let a request go after that long."""
        self._of(method).limited.observe(waited_s)

    def _of(self, method: str) -> _OfMethod:
        found = self._by_method.get(method)
        if found is None:
            metrics, labels = self._metrics, (method, self._host)
            found = self._by_method[method] = _OfMethod(
                metrics.rest_client_request_duration.labels(*labels),
                metrics.rest_client_request_size_bytes.labels(*labels),
                metrics.rest_client_response_size_bytes.labels(*labels),
                metrics.rest_client_rate_limiter_duration.labels(*labels),
            )
        return found
