"""What is remembered, and for how long."""

from __future__ import annotations

from kubesched.clock import VirtualClock
from kubesched.server.expiring_cache import ExpiringCache


def test_an_answer_is_good_for_its_time() -> None:
    clock = VirtualClock()
    cache: ExpiringCache[str, int] = ExpiringCache(10, clock)
    cache.put("a", 1, 10)

    clock.advance(9.9)
    assert cache.get("a") == 1

    clock.advance(0.1)
    assert cache.get("a") is None
    assert len(cache) == 0


def test_no_time_means_not_at_all() -> None:
    cache: ExpiringCache[str, int] = ExpiringCache(10, VirtualClock())
    cache.put("a", 1, 0)

    assert cache.get("a") is None


def test_a_full_cache_forgets_what_was_used_longest_ago() -> None:
    cache: ExpiringCache[str, int] = ExpiringCache(2, VirtualClock())
    cache.put("a", 1, 10)
    cache.put("b", 2, 10)
    cache.get("a")
    cache.put("c", 3, 10)

    assert [cache.get(key) for key in "abc"] == [1, None, 3]
