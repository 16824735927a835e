"""Attempts that end with an error, or are paused: neither a placement nor a rejection."""

from __future__ import annotations

from kubesched.errors import PluginError
from kubesched.framework.status import Status


class AttemptError(PluginError):
    """An attempt that ended with an error; carries the status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class AttemptPausedError(PluginError):
    """An attempt that takes long: other tasks get their turn, then it is made again.

    The plugin caches what it has found, so that the next attempt resumes there.
    """
