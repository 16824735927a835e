"""Documents are taken apart for shrinking, and put together again."""

from __future__ import annotations

import random

import pytest

from .configurations import leaves_of, rebuilt
from .drawn_configurations import DrawnConfigurations


@pytest.mark.parametrize("seed", range(20))
def test_all_leaves_are_the_document(seed: int) -> None:
    document = DrawnConfigurations(random.Random(seed)).document()
    assert rebuilt(list(leaves_of(document))) == document


def test_what_is_left_of_a_list_moves_up() -> None:
    leaves = list(leaves_of({"a": [{"b": 1}, {"b": 2}], "c": []}))
    assert rebuilt(leaves[1:]) == {"a": [{"b": 2}], "c": []}


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_always_draws_the_same(seed: int) -> None:
    first, second = (DrawnConfigurations(random.Random(seed)).document() for _ in range(2))
    assert first == second
