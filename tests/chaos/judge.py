"""Whether a history of etcd is one that a scheduler may bring about.

Judged state by state, from the first to the last:

- a pod that has a node keeps it;
- what pods on a node request never exceeds what the node offered lately, when one of them comes;
- no device is allocated to two claims.

Of the last state, after everything has calmed down:

- every pod that fits has a node;
- claims are reserved for pods that exist and have a node, and for no others;
- of a gang, all members have a node, or none.

And of what the scheduler's replicas send: they write one at a time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from kubesched.api import quantity
from tests.integration.control_plane import JsonObject

from .plane import Change

#: So long a scheduler may not have heard that a node became smaller, or went: a watch may be silent
#: for 20 s, and the one that follows may be held up again.
STALE_SECONDS: Final = 60.0
#: Pods with this label can never be placed.
NEVER_FITS: Final = "chaos/never-fits"

_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Finding:
    """Something that must not happen."""

    rule: str
    what: str
    revision: int

    def __str__(self) -> str:
        return f"{self.rule}: {self.what} (revision {self.revision})"


@dataclass
class _Node:
    pods: dict[str, int] = field(default_factory=dict)
    #: revisions, each with the CPU that the node offered from then on; 0 when it is deleted
    offered: list[tuple[int, int]] = field(default_factory=list)


class Judge:
    """Reads a history, and says what was wrong."""

    def __init__(self, times: Sequence[tuple[int, float]]) -> None:
        """`times` are revisions with the time at which each had been reached, ascending."""
        self._revisions = [revision for revision, _ in times]
        self._times = [at for _, at in times]
        self.findings: list[Finding] = []
        self._pods: dict[str, JsonObject] = {}
        self._claims: dict[str, JsonObject] = {}
        self._nodes: defaultdict[str, _Node] = defaultdict(_Node)
        #: device → claim that has it
        self._holders: dict[tuple[str, str, str], str] = {}
        self._last = 0
        #: how many pods got a node
        self.bound = 0
        #: gang → since when it is bound in part
        self._in_part: dict[str, float] = {}
        #: the longest that a gang was
        self.longest_in_part = 0.0

    def read(self, history: Iterable[Change]) -> None:
        """Judge all states of a history, one after the other."""
        for change in history:
            self._last = change.revision
            match change.kind:
                case "pods":
                    self._pod(change)
                case "minions":
                    cpu = 0 if change.object is None else _allocatable(change.object)
                    self._nodes[change.key].offered.append((change.revision, cpu))
                case "resourceclaims":
                    self._claim(change)

    def finish(self) -> None:
        """Judge the last state as one that must not change any more."""
        known = {each["metadata"]["uid"]: each for each in self._pods.values()}
        for key, pod in self._pods.items():
            is_placeable = NEVER_FITS not in pod["metadata"].get("labels", {})
            if is_placeable and not _has_ended(pod) and not _node_of(pod):
                self._find("waits although it fits", f"pod {key}")
            if not is_placeable and _node_of(pod):
                self._find("placed although it does not fit", f"pod {key}")
        for key, claim in self._claims.items():
            users = (claim.get("status") or {}).get("reservedFor") or []
            for user in users:
                holder = known.get(user["uid"])
                if holder is None or not _node_of(holder):
                    self._find("reserved in vain", f"claim {key} for pod {user['name']}")
        for gang in self._gangs_in_part():
            self._find("gang in part", gang)

    # --- pods -------------------------------------------------------------------------------

    def _pod(self, change: Change) -> None:
        before = self._pods.pop(change.key, None)
        pod = change.object
        if before is not None and (pod is None or _uid(pod) != _uid(before)):
            self._nodes[_node_of(before)].pods.pop(_uid(before), None)
        if pod is not None:
            self._pods[change.key] = pod
            self._placed(change, before, pod)
        self._time_gang(before, pod, change.revision)

    def _placed(self, change: Change, before: JsonObject | None, pod: JsonObject) -> None:
        node_name = _node_of(pod)
        had = _node_of(before) if before is not None and _uid(before) == _uid(pod) else ""
        if had and had != node_name:
            self._find("bound twice", f"pod {change.key}: {had}, then {node_name}", change.revision)
        if not node_name:
            return
        node = self._nodes[node_name]
        if _has_ended(pod):
            node.pods.pop(_uid(pod), None)
            return
        is_new = _uid(pod) not in node.pods
        node.pods[_uid(pod)] = _requested(pod)
        if is_new:
            self.bound += 1
            self._check_room(change, node_name, node)

    def _check_room(self, change: Change, name: str, node: _Node) -> None:
        requested, offered = sum(node.pods.values()), self._offered_lately(node, change.revision)
        if requested > offered:
            self._find(
                "overcommitted",
                f"node {name}: {requested}m of {offered}m cpu since pod {change.key}",
                change.revision,
            )

    def _offered_lately(self, node: _Node, revision: int) -> int:
        """Return the most that a node offered in the time before a revision."""
        since = self._revision_at(self._time_of(revision) - STALE_SECONDS)
        first = max(bisect_right(node.offered, since, key=lambda each: each[0]) - 1, 0)
        return max((cpu for at, cpu in node.offered[first:] if at <= revision), default=0)

    # --- gangs ------------------------------------------------------------------------------

    def _time_gang(self, before: JsonObject | None, pod: JsonObject | None, revision: int) -> None:
        gang = _gang_of(pod or before or {})
        if gang is None:
            return
        now = self._time_of(revision)
        if self._is_in_part(gang):
            self._in_part.setdefault(gang, now)
        elif gang in self._in_part:
            self.longest_in_part = max(self.longest_in_part, now - self._in_part.pop(gang))

    def _is_in_part(self, gang: str) -> bool:
        members = [each for each in self._pods.values() if _gang_of(each) == gang]
        placed = sum(bool(_node_of(each)) for each in members)
        return 0 < placed < len(members)

    def _gangs_in_part(self) -> list[str]:
        gangs = {gang for each in self._pods.values() if (gang := _gang_of(each)) is not None}
        return sorted(gang for gang in gangs if self._is_in_part(gang))

    # --- claims -----------------------------------------------------------------------------

    def _claim(self, change: Change) -> None:
        before = self._claims.pop(change.key, None)
        for device in _devices(before):
            self._holders.pop(device, None)
        if change.object is None:
            return
        self._claims[change.key] = change.object
        for device in _devices(change.object):
            holder = self._holders.setdefault(device, change.key)
            if holder != change.key:
                text = f"device {'/'.join(device)}: claims {holder} and {change.key}"
                self._find("allocated twice", text, change.revision)

    # --- time -------------------------------------------------------------------------------

    def _time_of(self, revision: int) -> float:
        """Return a time by which a revision had been reached."""
        at = min(bisect_left(self._revisions, revision), len(self._times) - 1)
        return self._times[at]

    def _revision_at(self, time_s: float) -> int:
        """Return a revision that had been reached at a time."""
        at = bisect_left(self._times, time_s) - 1
        return self._revisions[at] if at >= 0 else 0

    def _find(self, rule: str, what: str, revision: int | None = None) -> None:
        self.findings.append(Finding(rule, what, self._last if revision is None else revision))


def two_writers(
    writes: Sequence[Sequence[float]], releases: Sequence[Sequence[float]], apart_s: float
) -> list[Finding]:
    """Find writes of different replicas that are too close for a lease to have changed hands.

    `writes` are the times of each replica's writes. A replica gives up some time before its lease
    ends, and another one begins when it has ended: their writes are at least `apart_s` apart.
    Unless the former gave its lease back after its last write, at one of the times in `releases`.
    """
    in_order = sorted((at, replica) for replica, times in enumerate(writes) for at in times)
    return [
        Finding("two writers", f"replicas {one} and {other}, {at - before:.2f} s apart", 0)
        for (before, one), (at, other) in pairwise(in_order)
        if one != other
        and at - before < apart_s
        and not any(before <= released <= at for released in releases[one])
    ]


def _uid(pod: JsonObject) -> str:
    return str(pod["metadata"]["uid"])


def _node_of(pod: JsonObject) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _has_ended(pod: JsonObject) -> bool:
    return pod.get("status", {}).get("phase") in _ENDED


def _gang_of(pod: JsonObject) -> str | None:
    group = pod.get("spec", {}).get("schedulingGroup")
    return None if group is None else str(group["podGroupName"])


def _requested(pod: JsonObject) -> int:
    containers = pod["spec"]["containers"]
    texts = [each.get("resources", {}).get("requests", {}).get("cpu", "0") for each in containers]
    return sum(map(quantity.milli_value, texts))


def _allocatable(node: JsonObject) -> int:
    return quantity.milli_value(node.get("status", {}).get("allocatable", {}).get("cpu", "0"))


def _devices(claim: JsonObject | None) -> list[tuple[str, str, str]]:
    allocation = ((claim or {}).get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return [(each["driver"], each["pool"], each["device"]) for each in results]
