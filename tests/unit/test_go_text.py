"""Text in quotes, as Go spells it."""

from __future__ import annotations

import pytest

from kubesched.go_text import SPACE, quoted, quoted_ascii, quoted_bytes


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", '""'),
        ("plain", '"plain"'),
        ('a "b" \\', '"a \\"b\\" \\\\"'),
        ("\n\t\a", '"\\n\\t\\a"'),
        ("a\x00\udc80", '"a\\x00\\x80"'),
        ("\x01\x7f", '"\\x01\\x7f"'),
        ("ä世", '"ä世"'),
        ("\u200b\u2028", '"\\u200b\\u2028"'),
        ("\U000e0001", '"\\U000e0001"'),
        ("\xa0", '"\\u00a0"'),
    ],
)
def test_characters_that_cannot_be_seen_are_escaped(text: str, want: str) -> None:
    assert quoted(text) == want


def test_bytes_that_are_no_text_are_hexadecimal() -> None:
    assert quoted_bytes(b"a\xff\xc3\xa4") == '"a\\xffä"'
    assert quoted_ascii(b"a\n\xff\xc3\xa4") == '"a\\n\\xff\\u00e4"'


def test_what_counts_as_blank() -> None:
    assert "\u3000" in SPACE
    assert "\x1c" not in SPACE, "which Python's strip() would remove"
