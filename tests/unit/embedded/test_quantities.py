"""Canonical quantities, as kube-apiserver answered them."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.embedded.quantities import canonical, canonical_amounts
from kubesched.errors import QuantityError


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("1", "1"),
        ("1000", "1k"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1.2345", "1235m"),
        ("1n", "1m"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("10e5", "1e6"),
        ("1e4", "10e3"),
        ("2.5e3", "2500"),
        ("12e6", "12e6"),
        ("1Ki", "1Ki"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("1.5Ki", "1536"),
        ("0.1Gi", "107374182400m"),
        ("0.001Ki", "1024m"),
        ("1023Ki", "1023Ki"),
        ("1500000", "1500k"),
        ("128974848", "128974848"),
        ("0", "0"),
        ("0Ki", "0"),
        ("-1", "-1"),
        ("8Ei", "9223372036854775807"),
        (5, "5"),
        (1.5, "1500m"),
    ],
)
def test_one_spelling(given: str | float, stored: str) -> None:
    assert canonical(given) == stored


def test_what_is_no_quantity() -> None:
    with pytest.raises(QuantityError):
        canonical("much")


def test_maps_that_are_canonical_are_left_alone() -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}
    holder: dict[str, Any] = {"requests": amounts, "limits": {"cpu": "1000m"}}

    canonical_amounts(holder, "requests", "limits", "missing")

    assert holder["requests"] is amounts
    assert holder["limits"] == {"cpu": "1"}
