"""The state of the cluster: nodes, their pods, and decisions that are not confirmed yet.

    informer: node, pod events ──┐
    scheduling cycle: assume ────┼──> NodeTable
    binding cycle: forget ───────┘

A pod that the scheduler has placed is *assumed*: it counts on its node immediately, before the API
server's watch confirms it. Events may arrive in any order, twice, or after a gap as the difference
of two lists; each leads to the state that the newest object describes:

    pending ── assume ──> assumed ── pod added (bound) ──> placed ── pod removed ──> gone
                             └────── forget ──> pending

A pod may arrive before its node. It waits in `_without_node` until the node arrives, and returns
there when its node is deleted first.
"""

from __future__ import annotations

from collections import Counter

from kubesched.api.core import Node, Pod
from kubesched.cluster.budgets import Budgets
from kubesched.cluster.devices import Devices
from kubesched.cluster.namespaces import Namespaces
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.nominated_rows import NominatedRows
from kubesched.cluster.nominator import Nominator
from kubesched.cluster.plugin_objects import PluginObjects
from kubesched.cluster.pod_groups import PodGroups
from kubesched.cluster.pod_info import PodCompiler, PodInfo, RequestRules
from kubesched.cluster.storage import Storage
from kubesched.cluster.transaction import Transaction
from kubesched.cluster.workloads import Workloads
from kubesched.errors import InvariantError, require


class Cluster:
    """The state that the scheduling cycle reads."""

    def __init__(self, rules: RequestRules | None = None) -> None:
        self.table = NodeTable()
        self.nominator = Nominator()
        self.nominated_rows = NominatedRows(self.table, self.nominator)
        self.namespaces = Namespaces(self.table.term_counters)
        self.workloads = Workloads()
        self.budgets = Budgets()
        self.storage = Storage()
        self.devices = Devices(self.table)
        self.plugin_objects = PluginObjects()
        self.groups = PodGroups()
        self.compiler = PodCompiler(rules or RequestRules())
        #: uid → (pod, node name), for placed and assumed pods
        self._placed: dict[str, tuple[PodInfo, str]] = {}
        #: priority → number of those pods
        self._priorities: Counter[int] = Counter()
        #: uids of pods that were assumed and not yet confirmed by the watch
        self._assumed: set[str] = set()
        #: node name → uid → pod, for pods whose node is missing
        self._without_node: dict[str, dict[str, PodInfo]] = {}

    # --- nodes ------------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """Add or update a node; raises ObjectError if it cannot be read."""
        row = self.table.put_node(node)
        for pod in self._without_node.pop(node.metadata.name, {}).values():
            self.table.add_pod(row, pod)

    def remove_node(self, node_name: str) -> None:
        """Remove a node, if present."""
        if self.table.row_of(node_name) is None:
            return
        orphans = self.table.remove_node(node_name)
        if orphans:
            self._without_node[node_name] = {pod.uid: pod for pod in orphans}

    @property
    def version(self) -> tuple[int, ...]:
        """A value that changes whenever state that filters may read changes."""
        return (
            self.table.node_changes.position,
            self.table.row_changes.position,
            self.nominator.changes.position,
            self.namespaces.changes.position,
            self.workloads.changes.position,
            *self.storage.version,
            *self.devices.version,
            *self.plugin_objects.version,
            *self.groups.version,
        )

    # --- pods on nodes ----------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> PodInfo:
        """Add or update a pod that is on a node, even if it was on another node before.

        Raises ObjectError if it cannot be read; the previous version then stays.
        """
        info = self.compiler.placed(pod)
        self._assumed.discard(info.uid)
        known = self._placed.get(info.uid)
        if known is None:
            self._put_on(info, pod.spec.node_name)
        elif known[1] == pod.spec.node_name and known[0].counts_as(info):
            # Most updates are like that: status, heartbeat, the confirmation of a binding.
            self._swap(info, pod.spec.node_name)
        elif known[1] == pod.spec.node_name and known[0].counts_as_bound(info):
            self._relabel(known[0], info, pod.spec.node_name)
        else:
            self._take_off(info.uid)
            self._put_on(info, pod.spec.node_name)
        return info

    def remove_pod(self, uid: str) -> None:
        """Remove a pod, if it is on a node."""
        if uid in self._placed:
            self.suppose_off(uid)

    def pod(self, uid: str) -> PodInfo | None:
        """Return a placed or assumed pod."""
        found = self._placed.get(uid)
        return found and found[0]

    def node_of(self, uid: str) -> str | None:
        """Return the name of the node of a placed or assumed pod."""
        found = self._placed.get(uid)
        return found and found[1]

    @property
    def pod_count(self) -> int:
        """The number of placed pods, assumed ones included."""
        return len(self._placed)

    def has_pods_below(self, priority: int) -> bool:
        """Return whether there are placed pods with a priority below `priority`."""
        return any(each < priority for each in self._priorities)

    @property
    def assumed_count(self) -> int:
        """The number of assumed pods."""
        return len(self._assumed)

    # --- pods without a node ----------------------------------------------------------------

    def put_pending(self, pod: PodInfo) -> None:
        """Note a pod without a node, or its new version."""
        self.groups.put_pending(pod)
        self.devices.claim_users.put(pod.pod)

    def remove_pending(self, pod: Pod) -> None:
        """Note that a pod is gone, or has a node now."""
        self.groups.remove_pending(pod)
        self.devices.claim_users.remove(pod.metadata.uid)

    # --- what if ----------------------------------------------------------------------------

    def transaction(self) -> Transaction:
        """Return a context whose changes are undone at its end."""
        return Transaction(self)

    def suppose_on(self, pod: PodInfo, node_name: str, *, is_assumed: bool = True) -> None:
        """Count a pod on a node inside a transaction; not recorded as a decision."""
        if pod.uid in self._placed:
            raise InvariantError(f"pod {pod.full_name} is on a node and cannot be assumed")
        self._put_on(pod, node_name)
        if is_assumed:
            self._assumed.add(pod.uid)

    def suppose_off(self, uid: str) -> None:
        """Stop counting a pod on its node, inside a transaction."""
        self._assumed.discard(uid)
        self._take_off(uid)

    # --- decisions --------------------------------------------------------------------------

    def assume(self, pod: PodInfo, node_name: str) -> None:
        """Count a pod on the node that was chosen for it."""
        self.suppose_on(pod, node_name)

    def is_assumed(self, uid: str) -> bool:
        """Return whether a pod is assumed and not yet confirmed."""
        return uid in self._assumed

    def forget(self, uid: str) -> None:
        """Undo an assumption; does nothing if the pod was confirmed meanwhile."""
        if uid in self._assumed:
            self.suppose_off(uid)

    # --- both -------------------------------------------------------------------------------

    def _put_on(self, pod: PodInfo, node_name: str) -> None:
        self._note_placed(pod, node_name)
        self._priorities[pod.priority] += 1
        row = self.table.row_of(node_name)
        if row is None:
            self._without_node.setdefault(node_name, {})[pod.uid] = pod
        else:
            self.table.add_pod(row, pod)

    def _note_placed(self, pod: PodInfo, node_name: str) -> None:
        self._placed[pod.uid] = (pod, node_name)
        if pod.pod.spec.scheduling_group is not None or self.groups.by_label:
            self.groups.put_placed(pod)

    def group_by_label(self, scheduler_name: str) -> None:
        """Let the label that names a pod's group count, in pods of a profile."""
        groups = self.groups
        if scheduler_name in groups.by_label:
            return
        groups.by_label |= {scheduler_name}
        for pod, _ in self._placed.values():
            if pod.pod.spec.scheduler_name == scheduler_name:
                groups.put_placed(pod)

    def _swap(self, pod: PodInfo, node_name: str) -> None:
        self._note_placed(pod, node_name)
        row = self.table.row_of(node_name)
        if row is None:
            self._without_node[node_name][pod.uid] = pod
        else:
            self.table.swap_pod(row, pod)

    def _relabel(self, old: PodInfo, new: PodInfo, node_name: str) -> None:
        row = self.table.row_of(node_name)
        if row is not None:
            self._note_placed(new, node_name)
            self.table.relabel_pod(row, old, new)
        else:
            self._swap(new, node_name)

    def _take_off(self, uid: str) -> None:
        pod, node_name = self._placed.pop(uid)
        if pod.pod.spec.scheduling_group is not None or self.groups.by_label:
            self.groups.remove_placed(pod)
        self._priorities[pod.priority] -= 1
        if not self._priorities[pod.priority]:
            del self._priorities[pod.priority]
        row = self.table.row_of(node_name)
        if row is not None:
            self.table.remove_pod(row, pod)
            return
        without_node = self._without_node[node_name]
        del without_node[uid]
        if not without_node:
            del self._without_node[node_name]

    def validate(self) -> None:
        """Check that every pod is in exactly one place, and that all columns add up."""
        self.table.validate()
        self.nominator.validate()
        for stores in (
            self.namespaces,
            self.workloads,
            self.budgets,
            self.storage,
            self.devices,
            self.plugin_objects,
        ):
            stores.validate()
        seen: dict[str, str] = {}
        for row, pods in enumerate(self.table.pods):
            for uid in pods:
                require(uid not in seen, f"pod {uid} is in two places")
                seen[uid] = self.table.name_at(row)
        for node_name, waiting in self._without_node.items():
            require(waiting, f"no pod waits for node {node_name}")
            require(self.table.row_of(node_name) is None, f"node {node_name} is in the table")
            for uid in waiting:
                require(uid not in seen, f"pod {uid} is in two places")
                seen[uid] = node_name
        placed = {uid: node_name for uid, (_, node_name) in self._placed.items()}
        self.groups.validate(pod for pod, _ in self._placed.values())
        require(seen == placed, "pods in the table are the pods that are placed")
        require(self._assumed <= placed.keys(), "assumed pods are placed")
        counted = Counter(pod.priority for pod, _ in self._placed.values())
        require(counted == self._priorities, "pods by priority")
