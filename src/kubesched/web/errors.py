"""Why a question has no answer, other than errors in the question."""

from __future__ import annotations

from kubesched.errors import KubeschedError


class BusyError(KubeschedError):
    """Too many questions are in progress."""


class TooLongError(KubeschedError):
    """The answer took too long, or is too long."""


class RefusedError(KubeschedError):
    """The question cannot be answered, for a reason that the user can fix."""


class BrokenError(KubeschedError):
    """A bug of ours, or of a plugin; see the log."""
