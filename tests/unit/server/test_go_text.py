"""Quoting as Go's %q does."""

from __future__ import annotations

import pytest

from kubesched.server.go_text import quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", '""'),
        ("/metrics", '"/metrics"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("a\nb\tc\x00d\x7f", '"a\\nb\\tc\\x00d\\x7f"'),
        ("é世", '"é世"'),
        ("\u200b", '"\\u200b"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_quoted(text: str, shown: str) -> None:
    assert quoted(text) == shown
