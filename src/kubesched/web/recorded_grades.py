"""How good the placements of a recording were: evaluated again on the state of each decision.

    decisions that are shown ──oldest first──> Moments of its own ──> grade_on ──> cached

A step forward evaluates one decision; a jump goes back to the last file that begins before the
first of those that are shown.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from kubesched.cluster.cluster import Cluster
from kubesched.config.extenders import with_extender_effects
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ObjectError
from kubesched.framework.grading import PlacementGrade, grade_on
from kubesched.framework.registry import Registry
from kubesched.recording.entries import Decided
from kubesched.recording.reader import Recording
from kubesched.replay.deciding import Decider
from kubesched.replay.moments import Moments


class RecordedGrades:
    """The grades of a recording's placements; used by one thread at a time."""

    def __init__(self, recording: Recording, registry: Registry) -> None:
        self._registry = registry
        self._lock = threading.Lock()
        self._moments = Moments(recording)
        self._decider: Decider | None = None
        #: what `_decider` was made for
        self._made_for: tuple[Cluster, SchedulerConfiguration] | None = None
        #: position after a decision → its grade
        self._known: dict[int, PlacementGrade | None] = {}

    def at(self, positions: Iterable[int]) -> dict[int, PlacementGrade | None]:
        """Return the grades of the decisions just before some positions."""
        with self._lock:
            wanted = sorted(set(positions))
            for position in wanted:
                if position not in self._known:
                    self._known[position] = self._grade(position)
            return {position: self._known[position] for position in wanted}

    def _grade(self, position: int) -> PlacementGrade | None:
        moments = self._moments
        entry = moments.entry_before(position)
        config = moments.configuration_at(position)
        # Members of a group are placed together, and extenders do not answer again.
        if not isinstance(entry, Decided) or not entry.node or config.extenders:
            return None
        # A decision changes nothing until the pod is assumed, which is another entry.
        framework = self._decider_on(moments.cluster_at(position), config).framework_of(
            entry.profile
        )
        try:
            grade = grade_on(framework, moments.pod_of(entry), entry.node)
        except ObjectError:
            return None
        # Others were not looked at (percentageOfNodesToScore), or another version decided.
        return grade if grade is not None and grade.feasible == entry.feasible else None

    def _decider_on(self, cluster: Cluster, config: SchedulerConfiguration) -> Decider:
        made_for = self._made_for
        if self._decider is None or made_for is None or made_for[0] is not cluster:
            effective = with_extender_effects(config)
            self._decider = Decider(cluster, effective, self._moments.gates, self._registry)
        elif made_for[1] is not config:
            self._decider.configure(with_extender_effects(config))
        self._made_for = cluster, config
        return self._decider
