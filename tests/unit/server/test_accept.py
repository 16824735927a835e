"""Content negotiation."""

from __future__ import annotations

import pytest

from kubesched.server.accept import JSON, TEXT, YAML, MediaChoice, Target, negotiate


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("", JSON),
        ("  ", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("application/yaml", YAML),
        ("text/plain;q=0.5, application/yaml;q=0.4", TEXT),
        ("application/json;q=0.1,application/yaml", YAML),
        ("*/*, application/yaml", YAML),
        ("application/*, text/plain", TEXT),
        ("image/png, */*;q=0.1", JSON),
        ("application/json;q=nonsense", JSON),
        ("text/html", None),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", None),
    ],
)
def test_the_best_offer_that_the_client_takes(header: str, chosen: str | None) -> None:
    assert negotiate(header, (JSON, YAML, TEXT)) == (MediaChoice(chosen) if chosen else None)


def test_a_client_may_ask_for_a_kind() -> None:
    header = "application/json;v=v1;g=config.k8s.io;as=Statusz"
    wanted = Target("config.k8s.io", "v1", "Statusz")

    assert negotiate(header, (JSON,), allows=lambda choice: choice.target == wanted) == MediaChoice(
        JSON, wanted
    )
