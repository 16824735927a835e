"""Fixtures of the client's tests: event loops that notice what is left behind, an authority."""

from __future__ import annotations

from tests.support.authorities import authority, authority_pem, server_tls
from tests.support.event_loops import Run, quick_collections, run, run_once

__all__ = [
    "Run",
    "authority",
    "authority_pem",
    "quick_collections",
    "run",
    "run_once",
    "server_tls",
]
