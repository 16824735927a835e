"""Nominated pods: a node is reserved for them until their victims are deleted.

A pod that preempted others is *nominated* to their node and tried again when they are gone. Until
then, pods of the same or lower priority must leave its requests free there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kubesched.cluster.affinity_terms import AffinityTerm
from kubesched.cluster.incremental import NAMES_LENGTH, Log
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import require


class Nominator:
    """Nominated pods and their nodes."""

    def __init__(self) -> None:
        #: node name → uid → pod
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        #: uid → node name
        self._node_of: dict[str, str] = {}
        #: required anti-affinity terms → number of nominated pods that carry them
        self._anti_terms: Counter[AffinityTerm] = Counter()
        #: names of nodes whose nominations changed
        self.changes: Log[str] = Log(NAMES_LENGTH)

    def __len__(self) -> int:
        return len(self._node_of)

    def nominate(self, pod: PodInfo, node_name: str) -> None:
        """Nominate a pod to a node; replaces an earlier nomination."""
        self.clear(pod.uid)
        self._by_node.setdefault(node_name, {})[pod.uid] = pod
        self._node_of[pod.uid] = node_name
        self._anti_terms.update(pod.terms.required_anti)
        self.changes.record(node_name)

    def clear(self, uid: str) -> None:
        """Remove the nomination of a pod, if any."""
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            pods = self._by_node[node_name]
            for term in pods.pop(uid).terms.required_anti:
                self._anti_terms[term] -= 1
                if not self._anti_terms[term]:
                    del self._anti_terms[term]
            if not pods:
                del self._by_node[node_name]
            self.changes.record(node_name)

    def node_names(self) -> Iterable[str]:
        """Return the nodes that pods are nominated to."""
        return self._by_node.keys()

    def anti_terms(self) -> Iterable[AffinityTerm]:
        """Return the required anti-affinity terms of nominated pods."""
        return self._anti_terms.keys()

    def node_of(self, uid: str) -> str | None:
        """Return the node that a pod is nominated to."""
        return self._node_of.get(uid)

    def pod(self, uid: str) -> PodInfo | None:
        """Return a nominated pod."""
        node_name = self._node_of.get(uid)
        return None if node_name is None else self._by_node[node_name][uid]

    def has_pods_on(self, node_name: str) -> bool:
        """Return whether a pod is nominated to a node."""
        return node_name in self._by_node

    def pods_on(self, node_name: str) -> list[PodInfo]:
        """Return the pods that are nominated to a node."""
        return list(self._by_node.get(node_name, {}).values())

    def nodes_to_leave_room_on(self, pod: PodInfo) -> Mapping[str, list[PodInfo]]:
        """Return the pods whose requests a pod must leave free, by node."""
        if not self._by_node:
            return {}
        found = {
            node_name: [
                other
                for other in pods.values()
                if other.priority >= pod.priority and other.uid != pod.uid
            ]
            for node_name, pods in self._by_node.items()
        }
        return {node_name: others for node_name, others in found.items() if others}

    def validate(self) -> None:
        """Check that both indexes agree."""
        listed = {uid: node for node, pods in self._by_node.items() for uid in pods}
        require(listed == self._node_of, "nominated pods by node and by uid")
        carried = Counter(
            term
            for pods in self._by_node.values()
            for pod in pods.values()
            for term in pod.terms.required_anti
        )
        require(carried == self._anti_terms, "anti-affinity of nominated pods")
        require(all(self._by_node.values()), "no node without nominated pods")
