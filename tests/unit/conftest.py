"""How unit tests run: property tests never against the clock, in CI always with the same examples.

Whoever configures logging, for example by running a command, changes it for the whole process; each
test leaves it as it found it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from kubesched import logs

settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    if root.level != level or root.handlers != handlers:
        logs.shutdown()
        root.handlers[:] = handlers
        root.setLevel(level)
