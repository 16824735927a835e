"""Formats of names, where the contract tests only see one side."""

from __future__ import annotations

import pytest

from kubesched.embedded import formats


@pytest.mark.parametrize("text", ["a", "a-b", "0", "a" * 63])
def test_labels_of_the_dns(text: str) -> None:
    assert formats.dns_label(text) == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("A", "a lowercase RFC 1123 label"),
        ("-a", "a lowercase RFC 1123 label"),
        ("a.b", "must not contain dots"),
        ("a" * 64, "must be no more than 63 bytes"),
        ("", "a lowercase RFC 1123 label"),
    ],
)
def test_no_labels_of_the_dns(text: str, complaint: str) -> None:
    assert any(each.startswith(complaint) for each in formats.dns_label(text))


@pytest.mark.parametrize("text", ["a", "a.b-c.d", "a" * 253])
def test_subdomains(text: str) -> None:
    assert formats.dns_subdomain(text) == ()


@pytest.mark.parametrize("text", ["", "a..b", "a_b", "a\n", "a" * 254])
def test_no_subdomains(text: str) -> None:
    assert formats.dns_subdomain(text)


@pytest.mark.parametrize("text", ["a", "A_b.c-d", "example.com/A", "x" * 63])
def test_qualified_names(text: str) -> None:
    assert formats.qualified_name(text) == ()


@pytest.mark.parametrize("text", ["", "/a", "a/", "a/b/c", "A.com/x", "-a", "x" * 64])
def test_no_qualified_names(text: str) -> None:
    assert formats.qualified_name(text)


@pytest.mark.parametrize(("text", "fine"), [("", True), ("a.b_c", True), ("a b", False)])
def test_values_of_labels(text: str, *, fine: bool) -> None:
    assert (formats.label_value(text) == ()) is fine
