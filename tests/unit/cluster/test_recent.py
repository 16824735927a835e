"""A mapping that forgets what was not used for long."""

from __future__ import annotations

from kubesched.cluster.recent import Recent


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    recent: Recent[str, int] = Recent(limit=2)
    recent["a"], recent["b"], recent["c"] = 1, 2, 3
    assert [recent.get(key) for key in "abc"] == [None, 2, 3]
    assert len(recent) == 2


def test_looking_at_an_entry_makes_it_recent() -> None:
    recent: Recent[str, int] = Recent(limit=2)
    recent["a"], recent["b"] = 1, 2
    recent.get("a")
    recent["c"] = 3
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_an_entry_may_change() -> None:
    recent: Recent[str, int] = Recent(limit=2)
    recent["a"], recent["b"], recent["a"] = 1, 2, 9
    assert [recent.get(key) for key in "ab"] == [9, 2]
