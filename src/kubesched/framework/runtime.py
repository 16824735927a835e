"""The framework of one profile: runs its plugins in order, by kube-scheduler's rules.

Extension points that need all nodes at once are in `evaluation`; here are those that concern one
pod, or one pod and one node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.plugins import Expansion
from kubesched.config.profiles import Profile
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.evaluation import Evaluator
from kubesched.framework.group_runtime import GroupPoints
from kubesched.framework.observing import NullObserver
from kubesched.framework.plugin import Plugin, PostFilterResult, PreBind
from kubesched.framework.profile import PointPlugins, ProfilePlugins
from kubesched.framework.status import SKIP, SUCCESS, Code, Status, error, unschedulable

_log = logging.getLogger(__name__)

#: The maximum time that a Permit plugin may delay a pod.
MAX_PERMIT_WAIT_S = 15 * 60.0


class Framework:
    """One profile, ready to schedule."""

    def __init__(
        self,
        profile: Profile,
        *,
        expansion: Expansion,
        instances: Mapping[str, Plugin],
        cluster: Cluster,
        percentage_of_nodes_to_score: int = 0,
        observer: NullObserver | None = None,
    ) -> None:
        self.profile = profile
        self._observer = observer or NullObserver()
        own_percentage = profile.percentage_of_nodes_to_score
        #: 0 means all
        self.percentage_of_nodes_to_score = (
            percentage_of_nodes_to_score if own_percentage is None else own_percentage
        )
        self.plugins = plugins = ProfilePlugins(expansion.points, instances)
        self._observer.expect("PreFilter", plugins.pre_filter)
        self._observer.expect("Filter", plugins.filter)
        self._observer.expect("PreScore", plugins.pre_score)
        self._observer.expect("Score", [plugin for plugin, _ in plugins.score])
        #: the clock for durations of extension points
        self.now = self._observer.now
        through = self._observer.stopwatch
        self._gated, self._post_filtered = through("PreEnqueue"), through("PostFilter")
        self._reserved, self._unreserved = through("Reserve"), through("Unreserve")
        self._permitted, self._pre_flown = through("Permit"), through("PreBindPreFlight")
        #: records the end of PreBind
        self.pre_bound = through("PreBind")
        lap = self._observer.lap
        self._gate_lap, self._post_filter_lap = lap("PreEnqueue"), lap("PostFilter")
        self._reserve_lap, self._unreserve_lap = lap("Reserve"), lap("Unreserve")
        self._permit_lap, self._pre_flight_lap = lap("Permit"), lap("PreBindPreFlight")
        self._pre_bind_lap, self._bind_lap = lap("PreBind"), lap("Bind")
        self._post_bind_lap = lap("PostBind")
        blank = self._observer.blank
        self._without_permit, self._without_post_bind = blank("Permit"), blank("PostBind")
        self._without_reserve = blank("Reserve")
        self._without_pre_flight = blank("PreBindPreFlight", Code.SKIP)
        #: counts pods without work for PreBind plugins
        self.without_pre_bind = blank("PreBind")
        self._bound, self._post_bound = through("Bind"), through("PostBind")
        self._gates = {plugin.name: plugin for plugin in self.plugins.pre_enqueue}
        #: in-tree plugins that the profile enables and this version does not have
        self.left_out = expansion.left_out
        only_with_volumes = plugins.only_with_volumes
        self._reserve_plugins = PointPlugins(plugins.reserve, only_with_volumes)
        self._pre_bind_plugins = PointPlugins(plugins.pre_bind, only_with_volumes)
        self.evaluator = Evaluator(self.plugins, cluster, self._observer)
        #: the extension points of groups
        self.groups = GroupPoints(self.plugins, self._observer)

    @property
    def ranks_all_nodes(self) -> bool:
        """Whether all nodes are scored, and there is a score plugin."""
        return self.percentage_of_nodes_to_score in (0, 100) and bool(self.plugins.score)

    @property
    def scheduler_name(self) -> str:
        """The ``schedulerName`` of the profile's pods."""
        return self.profile.scheduler_name

    # --- queue ------------------------------------------------------------------------------

    def gate(self, pod: PodInfo, last_gate: str = "") -> Status:
        """Run PreEnqueue; the plugin that gated the pod before runs first. Stop at a rejection."""
        started = self.now()
        status = self._gate(pod, last_gate, started)
        # kube-scheduler records Success here in any case; dashboards rely on it.
        self._gated(Code.SUCCESS, started)
        return status

    def holding(self, gate: str) -> Callable[[PodInfo], bool]:
        """Return a predicate: would a plugin gate a pod again? Fast, and not counted in metrics."""
        plugin = self._gates.get(gate)
        if plugin is None:
            return lambda _: False
        kept_out: Container[str] | None = None
        try:
            kept_out = plugin.kept_out()
        except Exception:  # noqa: BLE001 (a plugin's bug must not cost other pods their wake-up)
            _log.exception("plugin %s failed to list the pods it gates", gate)

        def is_held(pod: PodInfo) -> bool:
            try:
                return not plugin.pre_enqueue(pod).ok if kept_out is None else pod.uid in kept_out
            except Exception:  # noqa: BLE001 (called again, and reported, when the pod is woken)
                return False

        return is_held

    def _gate(self, pod: PodInfo, last_gate: str, lap_began: float) -> Status:
        ordered = sorted(self.plugins.pre_enqueue, key=lambda plugin: plugin.name != last_gate)
        timed = self._observer.samples_gate()
        for plugin in ordered:
            try:
                status = plugin.pre_enqueue(pod)
            except Exception as bug:  # noqa: BLE001 (a plugin's bug must not lose the pod)
                _log.exception("plugin %s failed on pod %s", plugin.name, pod.full_name)
                status = error(f"{type(bug).__name__}: {bug}")
            if timed:
                lap_began = self._gate_lap(plugin.name, status.code, lap_began)
            if not status.ok:
                return status.by(plugin.name)
        return SUCCESS

    # --- after a failure --------------------------------------------------------------------

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """Run PostFilter plugins until one succeeds or one returns UnschedulableAndUnresolvable."""
        started = self.now()
        result = self._post_filter(state, pod, diagnosis, started)
        self._post_filtered(result.status.code, started)
        return result

    def _post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis, lap_began: float
    ) -> PostFilterResult:
        reasons: list[str] = []
        nominated: str | None = None
        rejected_by = ""
        timed = self._observer.sampled
        for plugin in self.plugins.post_filter:
            result = plugin.post_filter(state, pod, diagnosis)
            if timed:
                lap_began = self._post_filter_lap(plugin.name, result.status.code, lap_began)
            status = result.status.by(plugin.name)
            if status.ok or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return PostFilterResult(status, result.nominated_node)
            if not status.rejected:
                return PostFilterResult(error(*status.reasons).by(plugin.name))
            if result.nominated_node is not None:
                nominated = result.nominated_node
            reasons += status.reasons
            rejected_by = rejected_by or plugin.name
        return PostFilterResult(unschedulable(*reasons).by(rejected_by), nominated)

    # --- one pod and its node ---------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Run Reserve plugins; the caller rolls back on failure."""
        # Other pods are scheduled while this one is bound.
        state.is_timed = self._observer.sampled
        applicable = self._reserve_plugins.applicable(pod).plugins
        if not applicable:
            self._without_reserve.zeros += 1
            return SUCCESS
        started = lap_began = self.now()
        result = SUCCESS
        for name, plugin in applicable:
            status = plugin.reserve(state, pod, node_name)
            if state.is_timed:
                lap_began = self._reserve_lap(name, status.code, lap_began)
            if not status.ok:
                result = _refused(status, "Reserve", name)
                break
        self._reserved(result.code, started)
        return result

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Run every Unreserve in reverse order, even if one fails."""
        started = lap_began = self.now()
        for name, plugin in reversed(self._reserve_plugins.applicable(pod).plugins):
            try:
                plugin.unreserve(state, pod, node_name)
            except Exception:  # noqa: BLE001 (the others must run all the same)
                _log.exception("plugin %s failed to unreserve %s", name, pod.full_name)
            if state.is_timed:
                lap_began = self._unreserve_lap(name, Code.SUCCESS, lap_began)
        self._unreserved(Code.SUCCESS, started)

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status, dict[str, float]]:
        """Run Permit plugins; return those that delay the pod, with their timeouts."""
        if not self.plugins.permit:
            self._without_permit.zeros += 1
            return SUCCESS, {}
        started = self.now()
        status, waits = self._permit(state, pod, node_name, started)
        self._permitted(Code.WAIT if waits else status.code, started)
        return status, waits

    def _permit(
        self, state: CycleState, pod: PodInfo, node_name: str, lap_began: float
    ) -> tuple[Status, dict[str, float]]:
        waits: dict[str, float] = {}
        for plugin in self.plugins.permit:
            status, wait_s = plugin.permit(state, pod, node_name)
            if state.is_timed:
                lap_began = self._permit_lap(plugin.name, status.code, lap_began)
            if status.code is Code.WAIT:
                waits[plugin.name] = min(wait_s, MAX_PERMIT_WAIT_S)
            elif not status.ok:
                return _refused(status, "Permit", plugin.name), {}
        return SUCCESS, waits

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Find the PreBind plugins with work to do; Skip if there are none."""
        applicable = self._pre_bind_plugins.applicable(pod)
        if not applicable.plugins:
            self._without_pre_flight.zeros += 1
            return SKIP
        state.skip_pre_bind.update(applicable.inapplicable)
        started = lap_began = self.now()
        status = SKIP
        for name, plugin in applicable.plugins:
            answer = plugin.pre_bind_pre_flight(state, pod, node_name)
            if state.is_timed:
                lap_began = self._pre_flight_lap(name, answer.code, lap_began)
            if answer.code is Code.SKIP:
                state.skip_pre_bind.add(name)
            elif answer.ok:
                status = SUCCESS
            else:
                status = _refused_pre_flight(answer, name)
                break
        self._pre_flown(status.code, started)
        return status

    def pre_bind_groups(self, state: CycleState) -> list[list[PreBind]]:
        """Return the PreBind plugins with work to do, grouped by what may run concurrently."""
        groups: list[list[PreBind]] = []
        extend = False
        for plugin in self.plugins.pre_bind:
            skipped = plugin.name in state.skip_pre_bind
            if not plugin.parallel:
                extend = False
                if not skipped:
                    groups.append([plugin])
            elif not skipped:
                if extend:
                    groups[-1].append(plugin)
                else:
                    groups.append([plugin])
                    extend = True
        return groups

    async def pre_bind(
        self, plugin: PreBind, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status:
        """Run one PreBind plugin."""
        started = self.now()
        status = await plugin.pre_bind(state, pod, node_name)
        if state.is_timed:
            self._pre_bind_lap(plugin.name, status.code, started)
        return status

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Run Bind plugins until one does not return Skip."""
        started = lap_began = self.now()
        status = SKIP
        for plugin in self.plugins.bind:
            status = await plugin.bind(state, pod, node_name)
            if state.is_timed:
                lap_began = self._bind_lap(plugin.name, status.code, lap_began)
            if status.code is not Code.SKIP:
                if not status.ok:
                    status = refused_bind(status, plugin.name)
                break
        self._bound(status.code, started)
        return status

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Run every PostBind plugin, even if one fails."""
        if not self.plugins.post_bind:
            self._without_post_bind.zeros += 1
            return
        started = lap_began = self.now()
        for plugin in self.plugins.post_bind:
            try:
                plugin.post_bind(state, pod, node_name)
            except Exception:  # noqa: BLE001 (the pod is bound all the same)
                _log.exception("plugin %s failed after %s was bound", plugin.name, pod.full_name)
            if state.is_timed:
                lap_began = self._post_bind_lap(plugin.name, Code.SUCCESS, lap_began)
        self._post_bound(Code.SUCCESS, started)


def _refused(status: Status, point: str, plugin: str) -> Status:
    """Pass a rejection on as it is; wrap anything else as an error of the plugin."""
    if status.rejected:
        return status.by(plugin)
    return error(f'running {point} plugin "{plugin}": {status.message}').by(plugin)


def _refused_pre_flight(status: Status, plugin: str) -> Status:
    """Wrap anything but Success and Skip as an error: it is too late for rejections."""
    if status.rejected:
        text = (
            f'PreBindPreFlight {plugin} returned "{status.code.label}", which is unsupported. '
            "It is supposed to return Success, Skip, or Error status"
        )
    else:
        text = f'running PreBindPreFlight "{plugin}": {status.message}'
    return error(text).by(plugin)


def refused_pre_bind(status: Status, plugin: str) -> Status:
    """Return the pod's status after a PreBind plugin failed."""
    return _refused(status, "PreBind", plugin)


def refused_bind(status: Status, plugin: str) -> Status:
    """Return the pod's status after a Bind plugin failed."""
    return _refused(status, "Bind", plugin)
