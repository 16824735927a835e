"""Restores the logging of the process after each test."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kubesched import logs


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    logs.shutdown()
    root.handlers = handlers
    root.setLevel(level)
    logging.getLogger("asyncio").setLevel(logging.NOTSET)
