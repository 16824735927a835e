"""Amounts are short, exact where they must be, and never made equal by rounding."""

from __future__ import annotations

import pytest

from kubesched.api.amounts import compared, quantity, readable

MI, GI = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("resource", "amounts", "texts"),
    [
        ("cpu", (1500, 4000, 0), ["1500m", "4", "0"]),
        ("memory", (8 * GI, 6349 * MI), ["8Gi", "6.2Gi"]),
        ("memory", (700 * MI, 512), ["700Mi", "512"]),
        ("memory", (8 * GI, 8 * GI), ["8Gi", "8Gi"]),
        ("nvidia.com/gpu", (2, 1), ["2", "1"]),
        # One decimal would make them equal.
        ("memory", (8 * GI, 8 * GI - 20 * MI), ["8Gi", "7.98Gi"]),
        ("memory", (8 * GI, 8 * GI - 1), ["8Gi", "8589934591"]),
    ],
)
def test_amounts_that_differ_look_different(
    resource: str, amounts: tuple[int, ...], texts: list[str]
) -> None:
    assert compared(resource, *amounts) == texts


def test_a_quantity_is_exact_and_a_readable_one_says_what_it_comes_to() -> None:
    assert quantity("memory", 6349 * MI) == "6349Mi"
    assert readable("memory", 6349 * MI) == "6349Mi (6.2Gi)"
