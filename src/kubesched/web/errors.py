"""Why a question has no answer, beyond what is wrong with the question."""

from __future__ import annotations

from kubesched.errors import KubeschedError


class BusyError(KubeschedError):
    """As much as may be is being worked on."""


class TooLongError(KubeschedError):
    """An answer that did not come in time, or was too long."""


class RefusedError(KubeschedError):
    """What was asked cannot be answered, for a reason that its author can do something about."""


class BrokenError(KubeschedError):
    """A bug of ours, or of a plugin; the log says more."""
