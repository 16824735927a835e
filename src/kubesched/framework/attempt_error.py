"""How an attempt ends that is neither a placement nor a refusal."""

from __future__ import annotations

from kubesched.errors import PluginError
from kubesched.framework.status import Status


class AttemptError(PluginError):
    """An attempt that ended with an error instead of a verdict; carries the status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status
