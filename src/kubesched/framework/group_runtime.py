"""The extension points of groups: runs a profile's plugins in order, by kube-scheduler's rules.

Single members use the ordinary points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubesched import logs
from kubesched.errors import ConfigError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import (
    Assignments,
    GroupInfo,
    GroupTrial,
    Placement,
    PodGroupPostFilterResult,
    Progress,
)
from kubesched.framework.observing import NullObserver
from kubesched.framework.plugin import (
    MAX_NODE_SCORE,
    PlacementFeasible,
    Plugin,
    PodGroupPostFilter,
)
from kubesched.framework.profile import ProfilePlugins
from kubesched.framework.status import SUCCESS, Code, Status, error, unschedulable

_log = logs.get_logger(__name__)

#: The plugins that decide whether enough of a group is placed: of PodGroups, and of those of
#: scheduler-plugins.
FEASIBLE = "GangScheduling"
FEASIBLE_BY_LABEL = "Coscheduling"


class PlacementScores(Struct, frozen=True, eq=False):
    """What plugins think of a placement."""

    placement: Placement
    #: plugin → weighted score
    scores: Mapping[str, int]

    @property
    def total(self) -> int:
        """The sum that counts."""
        return sum(self.scores.values())


def placement_feasible_plugins(
    instances: Mapping[str, Plugin], *, by_spec: bool
) -> list[PlacementFeasible]:
    """Return the plugins of PlacementFeasible; raises ConfigError if one cannot decide.

    `by_spec`: pods may name a group in their spec, as the gate GenericWorkload decides.
    """
    by_label = instances.get(FEASIBLE_BY_LABEL)
    found = [by_label] if isinstance(by_label, PlacementFeasible) else []
    return [*(_gang_scheduling(instances) if by_spec else ()), *found]


def _gang_scheduling(instances: Mapping[str, Plugin]) -> list[PlacementFeasible]:
    plugin = instances.get(FEASIBLE)
    if plugin is None:
        _log.error(
            "GenericWorkload is enabled, but GangScheduling plugin is not set. Gang scheduling "
            "using PodGroups may not work as expected.",
            "",
        )
        return []
    if not isinstance(plugin, PlacementFeasible):
        raise ConfigError(
            "GenericWorkload is enabled, but GangScheduling plugin does not fulfill "
            "PlacementFeasiblePlugin interface"
        )
    return [plugin]


class GroupPoints:
    """Runs the plugins of one profile for groups."""

    def __init__(self, plugins: ProfilePlugins, observer: NullObserver) -> None:
        self._plugins = plugins
        #: set if groups are scheduled at all
        self.placement_feasible: list[PlacementFeasible] = []
        through, lap = observer.stopwatch, observer.lap
        self._now = observer.now
        self._generated, self._generate_lap = through("PlacementGenerate"), lap("PlacementGenerate")
        self._judged, self._judge_lap = through("PlacementFeasible"), lap("PlacementFeasible")
        self._scored, self._score_lap = through("PlacementScore"), lap("PlacementScore")
        self._post_filtered = through("PodGroupPostFilter")
        self._post_filter_lap = lap("PodGroupPostFilter")

    # --- placements -------------------------------------------------------------------------

    def generate(
        self, state: CycleState, group: GroupInfo, within: Placement
    ) -> tuple[Sequence[Placement], Status]:
        """Return the sets of nodes to try a group on; `within` if no plugin generates any."""
        started = self._now()
        placements, status = self._generate(state, group, within)
        self._generated(status.code, started)
        return placements, status

    def _generate(
        self, state: CycleState, group: GroupInfo, within: Placement
    ) -> tuple[Sequence[Placement], Status]:
        if not self._plugins.placement_generate:
            return [within], SUCCESS
        plugin = self._plugins.placement_generate[0]
        started = self._now()
        placements, status = plugin.generate_placements(state, group, within)
        if state.is_timed:
            self._generate_lap(plugin.name, status.code, started)
        if not status.ok:
            return [], status.by(plugin.name)
        if not placements:
            return [], unschedulable("no feasible placements found").by(plugin.name)
        return placements, SUCCESS

    def feasible(self, state: CycleState, group: GroupInfo, progress: Progress) -> Status:
        """Return whether enough of a group is placed: Success, Wait, Unschedulable or an error."""
        started = self._now()
        status = self._feasible(state, group, progress)
        self._judged(status.code, started)
        return status

    def _feasible(self, state: CycleState, group: GroupInfo, progress: Progress) -> Status:
        result = SUCCESS
        for plugin in self.placement_feasible:
            started = self._now()
            status = plugin.placement_feasible(state, group, progress)
            if state.is_timed:
                self._judge_lap(plugin.name, status.code, started)
            if status.code is Code.WAIT:
                result = status.by(plugin.name)
            elif status.code is Code.UNSCHEDULABLE:
                return status.by(plugin.name)
            elif status.code is Code.ERROR:
                text = f"running PlacementFeasible plugin: {status.message}"
                return error(text).by(plugin.name)
            elif not status.ok:
                text = f"unexpected status from PlacementFeasible plugin: {status.code.label}"
                return error(text).by(plugin.name)
        return result

    # --- scores -----------------------------------------------------------------------------

    def score(
        self, state: CycleState, group: GroupInfo, placed: Sequence[Assignments]
    ) -> tuple[list[PlacementScores], Status]:
        """Score the placements that a group fits into."""
        started = self._now()
        scores, status = self._score(state, group, placed)
        self._scored(status.code, started)
        return scores, status

    def _score(
        self, state: CycleState, group: GroupInfo, placed: Sequence[Assignments]
    ) -> tuple[list[PlacementScores], Status]:
        weighted: dict[str, list[int]] = {}
        for plugin, weight in self._plugins.placement_score:
            started = self._now()
            raw, status = plugin.score_placements(group, placed)
            if state.is_timed:
                self._score_lap(plugin.name, status.code, started)
            if not status.ok:
                return [], _failed("running PlacementScore plugins", plugin.name, status)
            scores, status = plugin.normalize_placements(state, raw)
            if not status.ok:
                what = "running NormalizePlacementScore on PlacementScore plugins"
                return [], _failed(what, plugin.name, status)
            invalid = next((each for each in scores if not 0 <= each <= MAX_NODE_SCORE), None)
            if invalid is not None:
                return [], error(
                    "applying score defaultWeights on PlacementScore plugins: plugin "
                    f'"{plugin.name}" returns an invalid score {invalid}, it should in the range '
                    f"of [0, {MAX_NODE_SCORE}] after normalizing"
                )
            weighted[plugin.name] = [each * weight for each in scores]
        return [
            PlacementScores(each.placement, {name: of[index] for name, of in weighted.items()})
            for index, each in enumerate(placed)
        ], SUCCESS

    # --- after a failure --------------------------------------------------------------------

    def post_filter(
        self, state: CycleState, group: GroupInfo, trial: GroupTrial
    ) -> PodGroupPostFilterResult:
        """Run the plugins until one finds victims, or one returns that nothing helps."""
        started = self._now()
        result = self._post_filter(state, group, trial)
        self._post_filtered(result.status.code, started)
        return result

    def _post_filter(
        self, state: CycleState, group: GroupInfo, trial: GroupTrial
    ) -> PodGroupPostFilterResult:
        plugins = self._plugins.pod_group_post_filter
        first = self._ask(state, group, trial, [each for each in plugins if not each.last_resort])
        last = [each for each in plugins if each.last_resort]
        if not last or not first.status.rejected:
            return first
        more = self._ask(state, group, trial, last)
        if not more.status.rejected:
            return more
        reasons = (*first.status.reasons, *more.status.reasons)
        return replace(first, status=replace(first.status, reasons=reasons))

    def _ask(
        self,
        state: CycleState,
        group: GroupInfo,
        trial: GroupTrial,
        plugins: Sequence[PodGroupPostFilter],
    ) -> PodGroupPostFilterResult:
        reasons: list[str] = []
        rejected_by = ""
        for plugin in plugins:
            started = self._now()
            result = plugin.pod_group_post_filter(state, group, trial)
            status = result.status.by(plugin.name)
            if state.is_timed:
                self._post_filter_lap(plugin.name, status.code, started)
            if status.ok or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return PodGroupPostFilterResult(status, result.nominations)
            if status.code is not Code.UNSCHEDULABLE:
                text = f'error in "{plugin.name}" PodGroupPostFilter plugins: {status.message}'
                return PodGroupPostFilterResult(error(text).by(plugin.name))
            reasons += status.reasons
            rejected_by = rejected_by or plugin.name
        return PodGroupPostFilterResult(unschedulable(*reasons).by(rejected_by))


def _failed(doing: str, plugin: str, status: Status) -> Status:
    return error(f'{doing}: plugin "{plugin}" failed with: {status.message}')
