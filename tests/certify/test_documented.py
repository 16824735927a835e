"""Rules for documented differences are those of the document."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import documented

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "differences.md"


@pytest.mark.parametrize("name", documented.ALL)
def test_the_document_has_the_difference(name: str) -> None:
    assert f"\n| {name} |" in DOCUMENT.read_text()
