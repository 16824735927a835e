"""State that plugins pass from one extension point to the next, in one attempt at one pod.

An attempt at a group of pods, and at each of its placements, has such a state as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.pod_info import PodInfo

NO_PLUGINS: Final[frozenset[str]] = frozenset()


class CycleState:
    """Plugin data under the plugin's own keys, and the runtime's own data, for one attempt."""

    __slots__ = (
        "_data",
        "counts_on",
        "group",
        "is_timed",
        "may_pause",
        "placement",
        "pods_to_activate",
        "skip_filter",
        "skip_pre_bind",
        "skip_score",
        "unscored",
    )

    def __init__(self) -> None:
        self._data: dict[object, object] = {}
        #: names of plugins that skip this pod
        self.skip_filter: frozenset[str] = NO_PLUGINS
        self.skip_score: frozenset[str] = NO_PLUGINS
        self.skip_pre_bind: set[str] = set()
        #: names of plugins whose scores do not count in this attempt
        self.unscored: frozenset[str] = NO_PLUGINS
        #: whether plugins are timed in this attempt
        self.is_timed = False
        #: whether plugins may raise AttemptPausedError, to go on in another attempt
        self.may_pause = False
        #: the rows that may be chosen, None for all: the placement of the pod's group
        self.placement: BoolArray | None = None
        #: the state of the attempt at the pod's group, None outside of one
        self.group: CycleState | None = None
        #: (pod, node) → the pod as it counts there, if not as it is: set by a plugin
        self.counts_on: Callable[[PodInfo, str], PodInfo] | None = None
        #: pods that a plugin requests to be retried, by uid
        self.pods_to_activate: dict[str, PodInfo] = {}

    def twin(self) -> CycleState:
        """Return the same for an attempt at a pod like this one."""
        twin = CycleState()
        twin._data = dict(self._data)
        twin.skip_filter, twin.skip_score = self.skip_filter, self.skip_score
        twin.placement, twin.group = self.placement, self.group
        return twin

    def on_node(self, pod: PodInfo, node_name: str) -> PodInfo:
        """Return the pod as it counts on the node that was chosen for it."""
        return pod if self.counts_on is None else self.counts_on(pod, node_name)

    def write(self, key: object, value: object) -> None:
        """Store a value."""
        self._data[key] = value

    def read(self, key: object) -> Any:  # noqa: ANN401 (the plugin knows its type)
        """Return a stored value; raises KeyError if there is none."""
        return self._data[key]

    def has(self, key: object) -> bool:
        """Return whether a value was stored, even None."""
        return key in self._data

    def get(self, key: object) -> object:
        """Return a stored value, None if there is none."""
        return self._data.get(key)
