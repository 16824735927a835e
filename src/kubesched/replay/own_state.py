"""A state that goes its own way: pods are where the decisions made now put them.

A pod is *astray* once a decision about it differs from the recorded one: then what was done with it
then is not followed any more. Everything else is: other pods, and which pods and nodes come and go,
and when. Nobody is evicted but those who were evicted then. An astray pod that had a node then and
finds none now is tried again before later decisions, a few at a time, because room may have come.
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
from kubesched.replay.state import State
from kubesched.scheduler.cycle import Decision

#: As many pods without a node are tried again before each decision.
_RETRIES: Final = 5


class _Reserved(Struct, frozen=True):
    framework: Framework
    state: CycleState
    pod: PodInfo
    node_name: str


class OwnState(State):
    """A cluster as it would be."""

    def __init__(self, rules: RequestRules) -> None:
        super().__init__(rules)
        #: uids of pods that are not followed any more
        self._astray: set[str] = set()
        #: the pod that was decided about last is one of them
        self._last_is_astray = False
        #: uid → what an astray pod holds that is not bound yet
        self._reserved: dict[str, _Reserved] = {}
        #: uid → pod and profile, for astray pods that had a node then and have none now
        self._owed: dict[str, tuple[PodInfo, str]] = {}

    def has_placed(self, uid: str) -> bool:
        """Tell whether a pod has its node already."""
        return self.cluster.node_of(uid) is not None

    def decided(self, entry: Decided, pod: PodInfo, decision: Decision, decider: Decider) -> None:
        """Carry out a decision, if it differs from the recorded one; what was done is followed."""
        same = (decision.node_name, decision.nominated_node) == (entry.node, entry.nominated)
        self._last_is_astray = not same
        if same:
            self._astray.discard(entry.uid)
            return
        self._astray.add(entry.uid)
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
        """Try pods again that found no node; those that waited longest come first."""
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
        if uid in self._astray:
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
        if entry.uid in self._astray:
            self._remove_pod(entry.uid)

    def _forgotten(self, entry: Forgotten) -> None:
        self._owed.pop(entry.uid, None)
        reserved = self._reserved.pop(entry.uid, None)
        if reserved is not None:
            self._take_back(reserved)
        elif entry.uid not in self._astray:
            super()._forgotten(entry)

    def _assumed(self, entry: Assumed) -> None:
        if entry.uid not in self._astray:
            super()._assumed(entry)

    def _nominated(self, entry: Nominated) -> None:
        if entry.uid not in self._astray:
            super()._nominated(entry)

    def _unnominated(self, entry: Unnominated) -> None:
        if entry.uid not in self._astray:
            super()._unnominated(entry)

    def _volume_assumed(self, entry: VolumeAssumed) -> None:
        # What the last pod's plugins reserved then; it may be somebody else's by now.
        if not self._last_is_astray:
            try:
                super()._volume_assumed(entry)
            except ObjectError:
                return
