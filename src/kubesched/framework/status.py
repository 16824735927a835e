"""The result of a plugin: a code, and reasons for users."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from msgspec import Struct


class Code(IntEnum):
    """kube-scheduler's status codes."""

    SUCCESS = 0
    #: an unexpected failure, which is no answer about the pod or the node
    ERROR = 1
    #: the pod does not fit now; removing other pods might help
    UNSCHEDULABLE = 2
    #: the pod does not fit, and removing other pods would not help
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    #: Permit: wait
    WAIT = 4
    #: the plugin does not apply to this pod
    SKIP = 5
    #: the pod must wait for something outside of the scheduler
    PENDING = 6

    #: int's hash: that of Enum is slow, and codes are dict keys on hot paths
    __hash__ = int.__hash__

    @property
    def label(self) -> str:
        """The name that kube-scheduler uses in metrics and messages."""
        return _LABELS[self]


_LABELS: Final = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
_REJECTED: Final = frozenset(
    {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING}
)


class Status(Struct, frozen=True):
    """A plugin's result; compared by value."""

    code: Code
    reasons: tuple[str, ...] = ()
    #: set by the runtime
    plugin: str = ""

    @property
    def ok(self) -> bool:
        """Whether the code is Success."""
        return self.code is Code.SUCCESS

    @property
    def rejected(self) -> bool:
        """Whether the pod was rejected, as opposed to an error."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        """All reasons, joined."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return the same result with its plugin."""
        return Status(self.code, self.reasons, plugin)


SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Reject the pod; removing other pods might help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Reject the pod; removing other pods would not help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    """Report an unexpected failure."""
    return Status(Code.ERROR, reasons)
