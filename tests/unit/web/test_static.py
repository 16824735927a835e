"""The page's files, and no others."""

from __future__ import annotations

import re

import pytest

from kubesched.web import static


def test_the_page_and_all_that_it_names_is_there() -> None:
    index = static.file(static.INDEX)

    assert index is not None
    assert index.content_type == "text/html; charset=utf-8"
    named = re.findall(r'(?:src|href)="([^"#]+)"', index.body.decode())
    assert named
    for name in named:
        assert static.file(name.removeprefix("/ui/").removeprefix("./")), name


def test_nothing_comes_from_elsewhere_and_nothing_is_inline() -> None:
    """The content-security policy would not let it, and there may be no network."""
    index = static.file(static.INDEX)

    assert index is not None
    text = index.body.decode()
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text)
    assert "<style" not in text
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"\son[a-z]+=", text)
    assert not re.search(r'\sstyle="', text)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../page.py", "page.py", "a/b.js", "/etc/passwd", "x.js\0", "X.JS", "~.js"],
)
def test_other_names_are_no_files(name: str) -> None:
    assert static.file(name) is None
