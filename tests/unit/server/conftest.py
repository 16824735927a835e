"""Fixtures of the server's tests: event loops that notice what is left behind, authorities."""

from __future__ import annotations

from tests.support.authorities import client_authority, proxy_authority, strange_authority
from tests.support.event_loops import Run, quick_collections, run, run_once

from .delegation import reviewer

__all__ = [
    "Run",
    "client_authority",
    "proxy_authority",
    "quick_collections",
    "reviewer",
    "run",
    "run_once",
    "strange_authority",
]
