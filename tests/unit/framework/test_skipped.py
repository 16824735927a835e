"""Sets of plugins that are skipped: what they hold, and that equal ones are the same."""

from __future__ import annotations

from kubesched.framework.skipped import SkippedPlugins


def test_those_of_the_signature_and_those_of_the_pod() -> None:
    assert SkippedPlugins().of(frozenset({"a"}), ["b"]) == {"a", "b"}


def test_the_same_plugins_are_the_same_object() -> None:
    skipped = SkippedPlugins()
    first = skipped.of(frozenset({"a"}), ["b", "c"])
    assert skipped.of(frozenset({"a"}), ["b", "c"]) is first
    assert skipped.of(frozenset({"c", "a"}), ["b"]) is first
    assert skipped.of(frozenset({"a"}), ["b"]) is not first
