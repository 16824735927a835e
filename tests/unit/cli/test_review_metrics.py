"""Counting what the API server is asked about callers, and who they are."""

from __future__ import annotations

import pytest

from kubesched.cli.review_metrics import CallerMetrics, ReviewMetrics, TokenCacheMetrics
from kubesched.metrics.recorder import Metrics
from tests.support.exposed_metrics import Exposed
from tests.support.scheduling import DEFAULT_GATES


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(DEFAULT_GATES)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return Exposed(metrics.render()).value(name, **labels)


@pytest.mark.parametrize(
    ("purpose", "family", "other"),
    [("authentication", "authn", "authz"), ("authorization", "authz", "authn")],
)
def test_reviews_are_counted_by_purpose_and_code(
    metrics: Metrics, purpose: str, family: str, other: str
) -> None:
    reviews = ReviewMetrics(metrics, "host:1", purpose=purpose)
    for method, code in (("POST", 201), ("POST", 201), ("POST", 500), ("POST", 0), ("GET", 200)):
        reviews.on_answer(method, code, 0.5)
    name = f"apiserver_delegated_{family}_request"
    counted = {c: value(metrics, f"{name}_total", code=c) for c in ("201", "500", "<error>", "200")}
    assert counted == {"201": 2, "500": 1, "<error>": 1, "200": None}
    assert value(metrics, f"{name}_duration_seconds_sum", code="201") == 1.0
    assert value(metrics, f"apiserver_delegated_{other}_request_total", code="201") is None
    # They are requests like others, too.
    labels = {"code": "201", "method": "POST", "host": "host:1"}
    assert value(metrics, "rest_client_requests_total", **labels) == 2


def test_tokens_that_are_known(metrics: Metrics) -> None:
    tokens = TokenCacheMetrics(metrics)
    for known in (False, True, True):
        tokens.on_answered(known=known, duration_s=0.25)
    for ok in (True, False, True):
        tokens.on_asked(ok=ok)
    tokens.on_waiting(callers=3, questions=1)
    name = "authentication_token_cache"
    assert value(metrics, f"{name}_request_total", status="hit") == 2
    assert value(metrics, f"{name}_request_duration_seconds_sum", status="miss") == 0.25
    assert value(metrics, f"{name}_fetch_total", status="ok") == 2
    assert value(metrics, f"{name}_fetch_total", status="error") == 1
    assert value(metrics, f"{name}_active_fetch_count", status="blocked") == 3
    assert value(metrics, f"{name}_active_fetch_count", status="in_flight") == 1


def test_callers_are_counted_without_their_names(metrics: Metrics) -> None:
    callers = CallerMetrics(metrics)
    for name in ("admin", "somebody", "else", "ann@example.com", ""):
        callers.on_authenticated(name, duration_s=0.5)
    users = {
        label: value(metrics, "authenticated_user_requests", username=label)
        for label in ("admin", "other", "email_id")
    }
    assert users == {"admin": 1, "other": 2, "email_id": 1}
    assert value(metrics, "authentication_attempts", result="success") == 4
    assert value(metrics, "authentication_attempts", result="error") == 1
    assert value(metrics, "authentication_duration_seconds_sum", result="error") == 0.5


def test_decisions(metrics: Metrics) -> None:
    callers = CallerMetrics(metrics)
    for allowed, failed in ((True, False), (False, False), (False, True)):
        callers.on_authorized(allowed=allowed, failed=failed, duration_s=0.5)
    for result in ("allowed", "no-opinion", "error"):
        assert value(metrics, "authorization_attempts_total", result=result) == 1
        assert value(metrics, "authorization_duration_seconds_sum", result=result) == 0.5
