"""Service level indicators: what health checks answered."""

from __future__ import annotations

import pytest

from kubesched.metrics.process import start_time_s
from kubesched.metrics.slis import HealthSlis
from tests.support.exposed_metrics import Exposed


def test_last_answer_and_number_of_answers() -> None:
    slis = HealthSlis()
    slis.observe("leaderElection", "healthz", healthy=True)
    slis.observe("leaderElection", "healthz", healthy=True)
    slis.observe("leaderElection", "healthz", healthy=False)
    slis.observe("ping", "livez", healthy=True)
    text = Exposed(slis.render())
    election = {"name": "leaderElection", "type": "healthz"}
    assert text.value("kubernetes_healthcheck", **election) == 0
    assert text.value("kubernetes_healthcheck", name="ping", type="livez") == 1
    assert text.value("kubernetes_healthchecks_total", **election, status="success") == 2
    assert text.value("kubernetes_healthchecks_total", **election, status="error") == 1


def test_a_check_that_recovers_is_healthy_again() -> None:
    slis = HealthSlis()
    slis.observe("shutdown", "readyz", healthy=False)
    slis.observe("shutdown", "readyz", healthy=True)
    text = Exposed(slis.render())
    assert text.value("kubernetes_healthcheck", name="shutdown", type="readyz") == 1


def test_start_of_the_process_lets_readers_recognise_a_restart() -> None:
    text = Exposed(HealthSlis().render())
    assert text.types == {"process_start_time_seconds": "gauge"}
    assert text.value("process_start_time_seconds") == pytest.approx(start_time_s())


def test_reset_forgets_how_often_each_answer_was_given() -> None:
    slis = HealthSlis()
    slis.observe("ping", "healthz", healthy=True)
    slis.reset()
    text = Exposed(slis.render())
    assert "kubernetes_healthchecks_total" not in text.types
    assert text.value("kubernetes_healthcheck", name="ping", type="healthz") == 1
