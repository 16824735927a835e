"""Metrics of requests to the API server."""

from __future__ import annotations

from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import Bundle, Counter, Histogram


class RestMetrics:
    """Counts responses by code, method and host."""

    def __init__(self, metrics: Metrics, host: str) -> None:
        self._metrics = metrics
        self._host = host
        #: method and code → counter of responses, histograms of durations and sizes
        self._answers: dict[tuple[str, int], tuple[Counter, Bundle]] = {}
        self._by_method: dict[str, Bundle] = {}
        self._limited: dict[str, Histogram] = {}

    def on_answer(
        self, method: str, code: int, duration_s: float | None, *, sizes: tuple[int, int] = (0, 0)
    ) -> None:
        """Record a response; code 0: there was none, duration None: it is a stream."""
        counter, answered = self._answers.get((method, code)) or self._of(method, code)
        counter.value += 1
        if duration_s is not None:
            answered.observe((duration_s, *sizes))

    def on_limited(self, method: str, waited_s: float) -> None:
        """Record the end of a wait for the rate limiter."""
        limited = self._limited.get(method)
        if limited is None:
            durations = self._metrics.rest_client_rate_limiter_duration
            limited = self._limited[method] = durations.labels(method, self._host)
        limited.observe(waited_s)

    def _of(self, method: str, code: int) -> tuple[Counter, Bundle]:
        metrics, labels = self._metrics, (method, self._host)
        answered = self._by_method.get(method)
        if answered is None:
            answered = self._by_method[method] = Bundle(
                metrics.rest_client_request_duration.labels(*labels),
                metrics.rest_client_request_size_bytes.labels(*labels),
                metrics.rest_client_response_size_bytes.labels(*labels),
            )
        counter = metrics.rest_client_requests.labels(str(code) if code else "<error>", *labels)
        self._answers[method, code] = counter, answered
        return counter, answered
