"""A state that follows the decisions made now, not the recorded ones.

A pod *diverges* once a decision about it differs from the recorded one: recorded actions on it are
then ignored. Everything else is followed: other pods, and when pods and nodes come and go. Only
pods that were evicted in the recording are evicted. A diverged pod that had a node in the recording
and has none now is retried before later decisions, a few at a time.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.errors import ObjectError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.runtime import Framework
from kubesched.recording.entries import (
    Assumed,
    Decided,
    Forgotten,
    Gone,
    Nominated,
    Unnominated,
    VolumeAssumed,
)
from kubesched.replay.deciding import Decider
from kubesched.replay.state import ReplayState
from kubesched.scheduler.cycle import Decision

#: Number of pods without a node retried before each decision.
_RETRIES: Final = 5


class _Reserved(Struct, frozen=True):
    framework: Framework
    state: CycleState
    pod: PodInfo
    node_name: str


class OwnState(ReplayState):
    """The cluster under the decisions made now."""

    def __init__(self, rules: RequestRules) -> None:
        super().__init__(rules)
        #: uids of diverged pods
        self._diverged: set[str] = set()
        #: whether the last decision was about one of them
        self._last_is_diverged = False
        #: uid → reservations of a diverged pod that is not bound yet
        self._reserved: dict[str, _Reserved] = {}
        #: uid → pod and profile, for diverged pods that had a node in the recording and have none
        #: now
        self._owed: dict[str, tuple[PodInfo, str]] = {}

    def has_placed(self, uid: str) -> bool:
        """Tell whether a pod already has a node."""
        return self.cluster.node_of(uid) is not None

    def decided(self, entry: Decided, pod: PodInfo, decision: Decision, decider: Decider) -> None:
        """Apply a decision, if it differs from the recorded one."""
        same = (decision.node_name, decision.nominated_node) == (entry.node, entry.nominated)
        self._last_is_diverged = not same
        if same:
            self._diverged.discard(entry.uid)
            return
        self._diverged.add(entry.uid)
        if decision.node_name:
            self._place(entry.profile, pod, decision, decider)
            return
        if entry.node:
            self._owed[pod.uid] = pod, entry.profile
        if decision.nominated_node:
            self.cluster.nominator.nominate(pod, decision.nominated_node)
        elif decision.nominated_node is not None:
            self.cluster.nominator.clear(pod.uid)

    def retry(self, decider: Decider) -> None:
        """Retry pods without a node; the longest waiting first."""
        for uid in list(self._owed)[:_RETRIES]:
            pod, profile = self._owed.pop(uid)
            decision, _ = decider.decide(profile, pod)
            if decision is not None and decision.node_name:
                self._place(profile, pod, decision, decider)
            else:
                self._owed[uid] = pod, profile

    def _place(self, profile: str, pod: PodInfo, decision: Decision, decider: Decider) -> None:
        framework, node_name = decider.framework_of(profile), decision.node_name
        self.cluster.assume(pod, node_name)
        self.cluster.nominator.clear(pod.uid)
        self._placed[pod.uid] = None
        reserved = _Reserved(framework, decision.state, pod, node_name)
        if framework.reserve(decision.state, pod, node_name).ok:
            self._reserved[pod.uid] = reserved
        else:
            self._take_back(reserved)

    def _take_back(self, reserved: _Reserved) -> None:
        framework, pod = reserved.framework, reserved.pod
        framework.unreserve(reserved.state, pod, reserved.node_name)
        self.cluster.forget(pod.uid)
        self._placed.pop(pod.uid, None)

    # --- entries ----------------------------------------------------------------------------

    def _put_pod(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if uid in self._diverged:
            node_name = self.cluster.node_of(uid)
            if node_name is None:
                return
            self._reserved.pop(uid, None)
            pod = replace(pod, spec=replace(pod.spec, node_name=node_name))
        super()._put_pod(pod)

    def _remove_pod(self, uid: str) -> None:
        super()._remove_pod(uid)
        self._owed.pop(uid, None)
        self._reserved.pop(uid, None)
        self.cluster.nominator.clear(uid)

    def _gone(self, entry: Gone) -> None:
        super()._gone(entry)
        reserved = self._reserved.pop(entry.uid, None)
        if reserved is not None:
            self._take_back(reserved)
        if entry.uid in self._diverged:
            self._remove_pod(entry.uid)

    def _forgotten(self, entry: Forgotten) -> None:
        self._owed.pop(entry.uid, None)
        reserved = self._reserved.pop(entry.uid, None)
        if reserved is not None:
            self._take_back(reserved)
        elif entry.uid not in self._diverged:
            super()._forgotten(entry)

    def _assumed(self, entry: Assumed) -> None:
        if entry.uid not in self._diverged:
            super()._assumed(entry)

    def _nominated(self, entry: Nominated) -> None:
        if entry.uid not in self._diverged:
            super()._nominated(entry)

    def _unnominated(self, entry: Unnominated) -> None:
        if entry.uid not in self._diverged:
            super()._unnominated(entry)

    def _volume_assumed(self, entry: VolumeAssumed) -> None:
        # The last pod's reservations in the recording; the resources may be in use by another pod
        # now.
        if not self._last_is_diverged:
            try:
                super()._volume_assumed(entry)
            except ObjectError:
                return
