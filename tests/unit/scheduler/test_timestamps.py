"""Times as Kubernetes writes them: in UTC, to the second."""

from __future__ import annotations

import pytest

from kubesched.scheduler.timestamps import rfc3339


@pytest.mark.parametrize(
    ("seconds", "want"),
    [(0.0, "1970-01-01T00:00:00Z"), (1_795_000_000.999, "2026-11-18T11:06:40Z")],
)
def test_fractions_of_a_second_are_cut_off(seconds: float, want: str) -> None:
    assert rfc3339(seconds) == want
