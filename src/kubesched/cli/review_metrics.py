"""Metrics of the reviews of callers of the HTTPS port.

review clients ──answers──> ReviewMetrics: rest_client_*, apiserver_delegated_*
token cache ──────────────> TokenCacheMetrics: authentication_token_cache_*
server ──callers──────────> CallerMetrics: authentication_*, authorization_*
"""

from __future__ import annotations

from typing import Final

from kubesched.client.rest_metrics import RestMetrics
from kubesched.metrics.label_values import user_label
from kubesched.metrics.recorder import Metrics

AUTHENTICATION: Final = "authentication"


class ReviewMetrics(RestMetrics):
    """Counts responses to reviews by code."""

    def __init__(self, metrics: Metrics, host: str, *, purpose: str) -> None:
        super().__init__(metrics, host)
        if purpose == AUTHENTICATION:
            self._requests = metrics.apiserver_delegated_authn_request
            self._review_durations = metrics.apiserver_delegated_authn_request_duration
        else:
            self._requests = metrics.apiserver_delegated_authz_request
            self._review_durations = metrics.apiserver_delegated_authz_request_duration

    def on_answer(
        self, method: str, code: int, duration_s: float | None, *, sizes: tuple[int, int] = (0, 0)
    ) -> None:
        """Record a response; code 0: there was none, duration None: it is a stream."""
        super().on_answer(method, code, duration_s, sizes=sizes)
        # GET reads certificate authorities; reviews are POST.
        if method == "POST" and duration_s is not None:
            label = str(code) if code else "<error>"
            self._requests.labels(label).inc()
            self._review_durations.labels(label).observe(duration_s)


class TokenCacheMetrics:
    """Counts cache hits of tokens."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def on_answered(self, *, known: bool, duration_s: float) -> None:
        """Record the end of a lookup of a token."""
        label = "hit" if known else "miss"
        self._metrics.authentication_token_cache_request.labels(label).inc()
        durations = self._metrics.authentication_token_cache_request_duration
        durations.labels(label).observe(duration_s)

    def on_asked(self, *, ok: bool) -> None:
        """Record a request about a token."""
        self._metrics.authentication_token_cache_fetch.labels("ok" if ok else "error").inc()

    def on_waiting(self, *, callers: int, questions: int) -> None:
        """Record the number of waiting callers, and of requests in flight."""
        active = self._metrics.authentication_token_cache_active_fetch_count
        active.labels("blocked").set(callers)
        active.labels("in_flight").set(questions)


class CallerMetrics:
    """Counts callers, without their names."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def on_authenticated(self, username: str, *, duration_s: float) -> None:
        """Record an authentication; "" if the credentials are invalid."""
        result = "success" if username else "error"
        if username:
            self._metrics.authenticated_user_requests.labels(user_label(username)).inc()
        self._metrics.authentication_attempts.labels(result).inc()
        self._metrics.authentication_duration.labels(result).observe(duration_s)

    def on_authorized(self, *, allowed: bool, failed: bool, duration_s: float) -> None:
        """Record an authorization: allowed, denied, or failed."""
        # Kubernetes' roles only allow: everything else is "no opinion".
        result = "allowed" if allowed else "error" if failed else "no-opinion"
        self._metrics.authorization_attempts.labels(result).inc()
        self._metrics.authorization_duration.labels(result).observe(duration_s)
