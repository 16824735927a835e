"""What plugins remember from one extension point to the next, for one attempt at one pod.

An attempt at a group of pods, and at each of its placements, has such a state as well.
"""

from __future__ import annotations

from typing import Any, Final

from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.pod_info import PodInfo

NO_PLUGINS: Final[frozenset[str]] = frozenset()


class CycleState:
    """A plugin's data under the plugin's own keys, and what the runtime notes for one attempt."""

    __slots__ = (
        "_data",
        "group",
        "is_timed",
        "placement",
        "pods_to_activate",
        "skip_filter",
        "skip_pre_bind",
        "skip_score",
        "unscored",
    )

    def __init__(self) -> None:
        self._data: dict[object, object] = {}
        #: names of plugins that have nothing to do for this pod
        self.skip_filter: frozenset[str] = NO_PLUGINS
        self.skip_score: frozenset[str] = NO_PLUGINS
        self.skip_pre_bind: set[str] = set()
        #: names of plugins whose scores do not count in this attempt
        self.unscored: frozenset[str] = NO_PLUGINS
        #: whether plugins are timed in this attempt
        self.is_timed = False
        #: the rows that may be chosen, None for all: the placement of the pod's group
        self.placement: BoolArray | None = None
        #: what plugins remember about the attempt at the pod's group, None outside of one
        self.group: CycleState | None = None
        #: pods that a plugin wants to be tried again, by uid
        self.pods_to_activate: dict[str, PodInfo] = {}

    def write(self, key: object, value: object) -> None:
        """Remember something."""
        self._data[key] = value

    def read(self, key: object) -> Any:  # noqa: ANN401 (whoever wrote it knows)
        """Return what was remembered; KeyError if nothing was."""
        return self._data[key]

    def has(self, key: object) -> bool:
        """Tell whether something was remembered, be it None."""
        return key in self._data

    def get(self, key: object) -> object:
        """Return what was remembered, None if nothing was."""
        return self._data.get(key)
