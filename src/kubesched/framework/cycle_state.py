"""Data that plugins pass from one extension point to the next, in one attempt at one pod."""

from __future__ import annotations

from typing import Any, Final

from kubesched.cluster.pod_info import PodInfo

NO_PLUGINS: Final[frozenset[str]] = frozenset()


class CycleState:
    """Plugin data under the plugin's own keys, and the runtime's own data, for one attempt."""

    __slots__ = (
        "_data",
        "is_timed",
        "pods_to_activate",
        "skip_filter",
        "skip_pre_bind",
        "skip_score",
    )

    def __init__(self) -> None:
        self._data: dict[object, object] = {}
        #: names of plugins that skip this pod
        self.skip_filter: frozenset[str] = NO_PLUGINS
        self.skip_score: frozenset[str] = NO_PLUGINS
        self.skip_pre_bind: set[str] = set()
        #: whether plugins are timed in this attempt
        self.is_timed = False
        #: uids of pods that a plugin wants to be retried
        self.pods_to_activate: dict[str, PodInfo] = {}

    def write(self, key: object, value: object) -> None:
        """Store a value."""
        self._data[key] = value

    def read(self, key: object) -> Any:  # noqa: ANN401 (the plugin knows its type)
        """Return a stored value; raises KeyError if there is none."""
        return self._data[key]

    def get(self, key: object) -> object:
        """Return a stored value, None if there is none."""
        return self._data.get(key)
