"""GroupReservation: reserves nodes for a group that has waited too long, against starvation.

A stream of small pods takes each piece of room as soon as it is free, so a large gang may wait for
ever. After a group has failed for a time that the profile sets, its members are nominated to nodes
on which they would fit if the pods of equal or lower priority there were gone. No pod is evicted;
but as pods of the group's priority and below leave nominated pods their room, it is the group that
gets what becomes free. So it waits for that time, and then for pods on those nodes to end.

The plugin is not among kube-scheduler's own, and is off unless a profile names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
import numpy as np

from kubesched.clock import Clock
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.resources import CPU
from kubesched.cluster.transaction import Transaction
from kubesched.config.profiles import Profile
from kubesched.errors import ConfigError
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.group import GroupInfo, GroupTrial, PodGroupPostFilterResult
from kubesched.framework.plugin import PodGroupPostFilter
from kubesched.framework.registry import EvaluatorReference, PluginContext
from kubesched.framework.status import Code, Status, unschedulable

NOTHING: Final = PodGroupPostFilterResult(unschedulable())
#: A group that did not fail for this long begins to wait anew: longer than any backoff of a gang of
#: some thousands.
FORGOTTEN_AFTER_S: Final = 900.0
_TYPE_FIELDS: Final = ("apiVersion", "kind")


class GroupReservationArgs(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Arguments in a profile."""

    #: how long a group fails before nodes are reserved for it
    after_seconds: int = 60

    def __post_init__(self) -> None:
        if self.after_seconds < 0:
            raise ValueError("afterSeconds must not be negative")


class Wait(NamedTuple):
    """Since when a group fails, and when it did last."""

    since: float
    last: float


class GroupReservation(PodGroupPostFilter):
    """Reserves nodes for groups that fail for too long."""

    name = "GroupReservation"
    last_resort = True
    Args = GroupReservationArgs

    def __init__(
        self,
        args: GroupReservationArgs,
        cluster: Cluster,
        *,
        evaluator: EvaluatorReference,
        clock: Clock,
    ) -> None:
        self._after_s = float(args.after_seconds)
        self._cluster = cluster
        self._evaluator = evaluator
        self._clock = clock
        #: uid of a group → its wait
        self._waits: dict[str, Wait] = {}

    @classmethod
    def create(cls, context: PluginContext) -> GroupReservation:
        """Make the plugin."""
        return cls(
            _arguments(context.profile),
            context.cluster,
            evaluator=context.evaluator,
            clock=context.clock,
        )

    def pod_group_post_filter(
        self,
        state: CycleState,  # noqa: ARG002 (the protocol's)
        group: GroupInfo,
        trial: GroupTrial,
    ) -> PodGroupPostFilterResult:
        """Renew the reservation of the group, or make one, once it has waited long enough."""
        if self._waited_s(group) < self._after_s:
            return NOTHING
        nominations: Mapping[str, str] | Status = self._kept(group) or self._found(group, trial)
        if isinstance(nominations, Status):
            text = f"does not fit without pods of its priority and below: {nominations.message}"
            return PodGroupPostFilterResult(unschedulable(text))
        count = len(set(nominations.values()))
        text = f"room is reserved for the group on {count} node(s), until it is free"
        return PodGroupPostFilterResult(Status(Code.SUCCESS, (text,)), nominations)

    def _waited_s(self, group: GroupInfo) -> float:
        now, uid = self._clock.monotonic(), group.group.metadata.uid
        self._waits = {
            each: wait for each, wait in self._waits.items() if now - wait.last < FORGOTTEN_AFTER_S
        }
        since = self._waits[uid].since if uid in self._waits else now
        self._waits[uid] = Wait(since, now)
        return now - since

    # --- nodes ------------------------------------------------------------------------------

    def _kept(self, group: GroupInfo) -> Mapping[str, str]:
        """Return the nodes that members are nominated to; empty if these would not do any more."""
        nominator, table = self._cluster.nominator, self._cluster.table
        named = {pod.uid: nominator.node_of(pod.uid) or "" for pod in group.pods}
        rows = [table.row_of(name) for name in named.values()]
        wanted = [row for row in rows if row is not None]
        if len(wanted) < len(rows):
            return {}
        evaluator = self._evaluator.get()
        with self._cluster.transaction() as tx:
            for pod in group.pods:
                tx.withdraw(pod)
            self._clear(group, np.unique(np.array(wanted, dtype=np.intp)), tx)
            for pod, row in zip(group.pods, wanted, strict=True):
                attempt = CycleState()
                try:
                    if isinstance(evaluator.look(attempt, pod), Diagnosis):
                        return {}
                    if evaluator.number_on(attempt, pod, row):
                        return {}
                except AttemptError:
                    return {}
                tx.place(pod, table.name_at(row))
        return named

    def _found(self, group: GroupInfo, trial: GroupTrial) -> Mapping[str, str] | Status:
        """Return nodes for all members, of those that have the most free; or why there are none."""
        rows = self._by_free_room()
        count = max(len(group.pods), 1)
        while True:
            with self._cluster.transaction() as tx:
                self._clear(group, rows[:count], tx)
                assigned, status = trial.schedule()
            if status.ok:
                return {each.pod.uid: each.node_name for each in assigned}
            if count >= len(rows):
                return status
            count *= 2

    def _by_free_room(self) -> IndexArray:
        table = self._cluster.table
        rows = table.order.rows()
        free = table.allocatable[CPU, rows] - table.requested[CPU, rows]
        return rows[np.argsort(-free, kind="stable")]

    def _clear(self, group: GroupInfo, rows: IndexArray, tx: Transaction) -> None:
        """Suppose that pods of the group's priority and below were removed from some rows."""
        for row in rows.tolist():
            for pod in list(self._cluster.table.pods[row].values()):
                if pod.priority <= group.priority and not self._is_member(group, pod.uid):
                    tx.remove(pod.uid)

    def _is_member(self, group: GroupInfo, uid: str) -> bool:
        return uid in self._cluster.groups.members(group.key).placed


def _arguments(profile: Profile) -> GroupReservationArgs:
    name = GroupReservation.name
    given = next((each.args for each in profile.plugin_config if each.name == name), None)
    if not isinstance(given, dict):
        return GroupReservationArgs()
    fields = {key: value for key, value in given.items() if key not in _TYPE_FIELDS}
    try:
        return msgspec.convert(fields, GroupReservationArgs)
    except msgspec.ValidationError as wrong:
        raise ConfigError(f"args: {wrong}") from None
