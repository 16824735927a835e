"""Counting what the API server is asked about callers of the HTTPS port.

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
    """Hears of every answer to a review, and counts it by its code."""

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
        """An answer came after that long; code 0: none came, duration None: it goes on coming."""
        super().on_answer(method, code, duration_s, sizes=sizes)
        # What is read are certificate authorities; reviews are posted.
        if method == "POST" and duration_s is not None:
            label = str(code) if code else "<error>"
            self._requests.labels(label).inc()
            self._review_durations.labels(label).observe(duration_s)


class TokenCacheMetrics:
    """Hears how often callers are known already."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def on_answered(self, *, known: bool, duration_s: float) -> None:
        """Somebody who asked about a token has their answer, or an error."""
        label = "hit" if known else "miss"
        self._metrics.authentication_token_cache_request.labels(label).inc()
        durations = self._metrics.authentication_token_cache_request_duration
        durations.labels(label).observe(duration_s)

    def on_asked(self, *, ok: bool) -> None:
        """The API server was asked about a token."""
        self._metrics.authentication_token_cache_fetch.labels("ok" if ok else "error").inc()

    def on_waiting(self, *, callers: int, questions: int) -> None:
        """So many callers wait now, for so many answers of the API server."""
        active = self._metrics.authentication_token_cache_active_fetch_count
        active.labels("blocked").set(callers)
        active.labels("in_flight").set(questions)


class CallerMetrics:
    """Hears of everybody who asks for something, and counts them without their names."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def on_authenticated(self, username: str, *, duration_s: float) -> None:
        """We know who it is; "" if their credentials are no good."""
        result = "success" if username else "error"
        if username:
            self._metrics.authenticated_user_requests.labels(user_label(username)).inc()
        self._metrics.authentication_attempts.labels(result).inc()
        self._metrics.authentication_duration.labels(result).observe(duration_s)

    def on_authorized(self, *, allowed: bool, failed: bool, duration_s: float) -> None:
        """They may, or may not; or nobody could tell."""
        # Kubernetes' roles only allow: what they do not mention is nobody's opinion.
        result = "allowed" if allowed else "error" if failed else "no-opinion"
        self._metrics.authorization_attempts.labels(result).inc()
        self._metrics.authorization_duration.labels(result).observe(duration_s)
