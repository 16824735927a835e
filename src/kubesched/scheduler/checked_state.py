"""What is checked directly before a binding: the values of `--check-before-binding`."""

from __future__ import annotations

from enum import StrEnum


class CheckedState(StrEnum):
    """The state of the node that a pod is checked against."""

    #: nothing is checked
    NONE = "none"
    #: the node as the watches show it by then
    CACHE = "cache"
    #: the same, together with the node's pods as the API server lists them
    LIVE = "live"
