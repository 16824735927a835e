"""The numbers and names behind a rejection, for explanations.

kube-scheduler's reasons are a few fixed texts, such as ``Insufficient memory``. Beside them, a
plugin can return details: how much memory, which taint, which pod.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct


class Detail(Struct, frozen=True):
    """What is behind the rejection of some nodes."""

    #: one line for users: "8Gi requested, 6.2Gi of 8Gi free"
    text: str
    #: the same for programs; must be encodable as JSON
    values: dict[str, Any] = {}
    #: the reason of the rejection that it explains; "" for all
    reason: str = ""
    #: the rows that it describes; none for all that the plugin was given, or the pod itself
    rows: tuple[int, ...] = ()


#: So many names are shown of many.
_NAMED: Final = 3


def listed(names: Iterable[str]) -> str:
    """Return the first few of some names, and how many more there are."""
    found = list(names)
    more = len(found) - _NAMED
    return ", ".join(found[:_NAMED]) + (f" and {more} more" if more > 0 else "")
