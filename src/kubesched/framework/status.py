"""What a plugin answers: a code, and reasons that people read."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from msgspec import Struct


class Code(IntEnum):
    """kube-scheduler's status codes."""

    SUCCESS = 0
    #: something went wrong that says nothing about the pod or the node
    ERROR = 1
    #: the pod does not fit as things are; removing other pods might help
    UNSCHEDULABLE = 2
    #: the pod does not fit, and removing other pods would not help
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    #: Permit: not yet
    WAIT = 4
    #: the plugin has nothing to say about this pod
    SKIP = 5
    #: the pod must wait for something outside of the scheduler
    PENDING = 6

    #: the number's own: that of enumerations is slow, and codes are looked up all the time
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
    """An answer, as a value: two equal answers are equal."""

    code: Code
    reasons: tuple[str, ...] = ()
    #: who answered; set by the runtime, so that plugins need not
    plugin: str = ""

    @property
    def ok(self) -> bool:
        """Whether the answer is yes."""
        return self.code is Code.SUCCESS

    @property
    def rejected(self) -> bool:
        """Whether the pod was turned away, as opposed to something having gone wrong."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        """All reasons as one text."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return the same answer with its author."""
        return Status(self.code, self.reasons, plugin)


SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Turn the pod away; removing other pods might help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Turn the pod away; removing other pods would not help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    """Report that something went wrong."""
    return Status(Code.ERROR, reasons)
