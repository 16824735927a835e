"""What is too large to be built counts as too expensive."""

from __future__ import annotations

import pytest

from kubesched.cel import CelDevice, compile_selector
from kubesched.cel.limits import check_characters, check_elements
from kubesched.cel.values import CostLimitExceeded
from kubesched.errors import CelRuntimeError


def test_sizes_up_to_the_bound_are_allowed() -> None:
    check_characters(10_000_000)
    check_elements(1_000_000)


def test_beyond_it_the_evaluation_ends() -> None:
    with pytest.raises(CostLimitExceeded):
        check_characters(10_000_001)
    with pytest.raises(CostLimitExceeded):
        check_elements(1_000_001)


def test_a_string_of_strings_of_strings_ends_with_the_limit() -> None:
    text = "'" + "x" * 50 + "'"
    for _ in range(6):
        text = f"{text}.replace('x', {text})" if len(text) < 20_000 else text
    with pytest.raises(CelRuntimeError, match="cost limit"):
        compile_selector(f"{text}.size() == 0").matches(CelDevice("d"))


def test_a_list_of_everything_is_refused_in_upstreams_words() -> None:
    text = r"lists\.range: size 100000000 exceeds maximum allowed \(1000000\)"
    with pytest.raises(CelRuntimeError, match=text):
        compile_selector("lists.range(100000000).size() > 0").matches(CelDevice("d"))
