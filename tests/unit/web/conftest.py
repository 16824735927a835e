"""Fixtures of the web page's tests: event loops that notice what is left behind."""

from __future__ import annotations

from tests.support.event_loops import Run, quick_collections, run, run_once

__all__ = ["Run", "quick_collections", "run", "run_once"]
