"""Versions: their precedence, and what is none."""

from __future__ import annotations

import itertools

import pytest

from kubesched.cel.library.semvers import Semver, compare, parse
from kubesched.cel.values import Err

ASCENDING = [
    "0.0.1", "1.0.0-1", "1.0.0-2", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta",
    "1.0.0-beta", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0",
]  # fmt: skip


def version(text: str) -> Semver:
    parsed = parse(text)
    assert isinstance(parsed, Semver)
    return parsed


@pytest.mark.parametrize(("lower", "higher"), list(itertools.pairwise(ASCENDING)))
def test_precedence(lower: str, higher: str) -> None:
    assert compare(version(lower), version(higher)) == -1
    assert compare(version(higher), version(lower)) == 1


def test_build_metadata_does_not_count() -> None:
    assert version("1.0.0+a").equals(version("1.0.0+b")) is True


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("a.2.3", 'Invalid character(s) found in major number "a"'),
        ("01.2.3", 'Major number must not contain leading zeroes "01"'),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3+", "Build meta data is empty"),
        (
            "99999999999999999999.0.0",
            'strconv.ParseUint: parsing "99999999999999999999": value out',
        ),
    ],
)
def test_errors(text: str, want: str) -> None:
    parsed = parse(text)

    assert isinstance(parsed, Err)
    assert parsed.message.startswith(want)
