"""PreFilter of a profile: which nodes are evaluated at all, and which plugins skip the pod.

Each plugin runs once per attempt. The results of row-local plugins are cached in the plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import NO_PLUGINS, CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.observing import NullObserver
from kubesched.framework.plan import SignaturePlan
from kubesched.framework.plugin import PreFilter, PreFilterResult
from kubesched.framework.profile import ProfilePlugins, of_kind
from kubesched.framework.skipped import SkippedPlugins
from kubesched.framework.status import Code, Status, error, unresolvable


class Restriction(NamedTuple):
    """The nodes that PreFilter plugins leave to be evaluated."""

    #: None means all
    node_names: frozenset[str] | None
    plugins: frozenset[str]

    def narrowed(self, plugin: str, node_names: frozenset[str]) -> Restriction:
        """Return what one more plugin leaves."""
        both = node_names if self.node_names is None else self.node_names & node_names
        return Restriction(both, self.plugins | {plugin})


UNRESTRICTED: Final = Restriction(None, frozenset())


class PreFiltering:
    """The PreFilter plugins of one profile."""

    def __init__(self, plugins: ProfilePlugins, table: NodeTable, observer: NullObserver) -> None:
        self._plugins = plugins
        self._table = table
        self._observer = observer
        self._lap = observer.lap("PreFilter")
        self._skipped = SkippedPlugins()
        #: those that may read everything, by name; the types are checked once
        self.cluster_wide = of_kind(plugins.pre_filter, PreFilter)

    def run(
        self, state: CycleState, pod: PodInfo, plan: SignaturePlan, everywhere: NodeRows
    ) -> Restriction | Diagnosis:
        """Return the nodes that are left, or why there are none; writes `state.skip_filter`.

        Raises AttemptError if a plugin reports an error.
        """
        restriction = UNRESTRICTED
        sampled = self._observer.sampled
        rejection: Status | None = None
        idle = self._idle(pod)
        skipped: list[str] = []
        for name, plugin in self._steps_of(plan):
            if name in idle:
                skipped.append(name)
                continue
            if plugin is None:
                result = plan.pre_filter[name]
            elif sampled:
                result = self._timed(plugin, state, pod, everywhere)
            else:
                result = plugin.pre_filter(state, pod, everywhere)
            status = result.status
            if status.code is Code.SKIP:
                skipped.append(name)
            elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return self._rejected(status.by(name))
            elif status.code is Code.UNSCHEDULABLE:
                rejection = status.by(name)
            elif not status.ok:
                text = f'running PreFilter plugin "{name}": {status.message}'
                raise AttemptError(error(text).by(name))
            elif result.node_names is not None:
                restriction = restriction.narrowed(name, result.node_names)
                if not restriction.node_names:
                    status = _no_node_in_common(restriction.plugins)
                    return self._rejected(status, restriction.plugins)
        if rejection is not None:
            return self._rejected(rejection, restriction.plugins)
        state.skip_filter = self._skipped.of(plan.filter_skips, skipped)
        return restriction

    def _idle(self, pod: PodInfo) -> frozenset[str]:
        """Return the plugins that have nothing to do with a pod."""
        idle = self._plugins.only_with_volumes if pod.volumes is NO_VOLUMES else NO_PLUGINS
        return idle | self._plugins.skip_resizes if pod.signature.is_resize else idle

    def _steps_of(self, plan: SignaturePlan) -> Iterable[tuple[str, PreFilter | None]]:
        """Return the plugins that apply, in order; None for row-local plugins."""
        if plan.is_unrestricted:
            return self.cluster_wide.items()
        return [(each.name, self.cluster_wide.get(each.name)) for each in self._plugins.pre_filter]

    def _timed(
        self, plugin: PreFilter, state: CycleState, pod: PodInfo, nodes: NodeRows
    ) -> PreFilterResult:
        started = self._observer.now()
        result = plugin.pre_filter(state, pod, nodes)
        self._lap(plugin.name, result.status.code, started)
        return result

    def _rejected(self, status: Status, restricting: Iterable[str] = ()) -> Diagnosis:
        diagnosis = Diagnosis(self._table, pre_filter=status)
        diagnosis.unschedulable_plugins.update(restricting)
        diagnosis.blame(status)
        return diagnosis


def left_out(plugins: Iterable[str]) -> Status:
    """Return the status of nodes that PreFilter plugins left out."""
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]")


def _no_node_in_common(plugins: frozenset[str]) -> Status:
    if len(plugins) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {next(iter(plugins))}")
    listed = " ".join(sorted(plugins))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")
