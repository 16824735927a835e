"""klog's verbosities as levels of the standard library."""

from __future__ import annotations

import logging

from kubesched import logs
from kubesched.logs.levels import verbosity_of


def test_levels_of_verbosity() -> None:
    levels = [logs.verbose(each) for each in range(11)]

    assert levels[0] == logging.INFO
    assert levels[2] == logging.DEBUG, "what debug() logs is a V(2)"
    assert levels == sorted(levels, reverse=True)
    assert len(set(levels)) == 11
    assert [verbosity_of(level) for level in levels] == list(range(11))
    assert logs.verbose(10**9) > logging.NOTSET
