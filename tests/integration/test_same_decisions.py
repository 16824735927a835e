"""The real kube-scheduler and ours, asked about the same pods on the same cluster, one by one.

The real one places each pod; ours, on a copy of the cluster in which the pod is not placed yet, is
asked what it would do. Where there is one best node, both must choose it; where several are equally
good, the real one must choose one of ours; and where no node fits, both must give the same reasons
for the same number of nodes.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import pytest

from kubesched.api.core import Namespace, Node, Pod
from kubesched.cluster.cluster import Cluster
from kubesched.config.features import FeatureGates
from kubesched.config.loading import profile_from_fragment
from kubesched.framework.building import build_framework
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.plugins.in_tree import IN_TREE
from tests.support.evaluating import feasible_rows, total_scores

from .control_plane import ControlPlane
from .random_workload import random_nodes, random_pods
from .scheduler_process import configuration, profile
from .settled_pods import settled, watching

pytestmark = pytest.mark.slow

Json = dict[str, Any]

NODES = 30
PODS = 2000
#: So many pods stay; the oldest make room for new ones.
KEPT = 350


class Ours:
    """Our scheduling cycle on a copy of the cluster."""

    def __init__(self, profile_fragment: Json) -> None:
        gates = FeatureGates.of({})
        self.cluster = Cluster()
        self._framework = build_framework(
            profile_from_fragment(profile_fragment, gates),
            registry=IN_TREE,
            gates=gates,
            cluster=self.cluster,
        )

    def decide(self, pod: Pod) -> tuple[set[str], str]:
        """Return the best nodes, or the message if there is none."""
        info, state = self.cluster.compiler.pending(pod), CycleState()
        found = feasible_rows(self._framework.evaluator, state, info)
        if isinstance(found, Diagnosis):
            post = self._framework.post_filter(state, info, found)
            found.post_filter_message = post.status.message
            return set(), found.message()
        total = total_scores(self._framework.evaluator, state, info, found)
        best = found[np.flatnonzero(total == total.max())]
        return {self.cluster.table.name_at(row) for row in best.tolist()}, ""


def test_both_make_the_same_decisions(
    control_plane: ControlPlane, namespace: str, clean_cluster: None
) -> None:
    rng = random.Random(20261115)
    both = profile()
    ours = Ours(both)
    pods_path = f"/api/v1/namespaces/{namespace}/pods"
    for node in control_plane.create_many("/api/v1/nodes", random_nodes(rng, NODES)):
        ours.cluster.put_node(msgspec.convert(node, Node))
    of_namespace = control_plane.request("GET", f"/api/v1/namespaces/{namespace}")
    ours.cluster.namespaces.put(msgspec.convert(of_namespace, Namespace))
    settings = configuration(control_plane.scheduler_kubeconfig, both, percentageOfNodesToScore=100)
    placed: list[str] = []
    unique = ties = refused = 0

    with control_plane.run_kube_scheduler(settings), watching(control_plane, pods_path) as seen:
        for manifest in random_pods(rng, PODS):
            if len(placed) > KEPT:
                name = placed.pop(rng.randrange(len(placed)))
                gone = control_plane.request("DELETE", f"{pods_path}/{name}")
                ours.cluster.remove_pod(gone["metadata"]["uid"])
            created = control_plane.request("POST", pods_path, manifest)
            name = created["metadata"]["name"]
            best, message = ours.decide(msgspec.convert(created, Pod))
            theirs = settled(seen, created["metadata"]["uid"])
            node_name = theirs["spec"].get("nodeName")
            if node_name is None:
                refused += 1
                assert (message, best) == (theirs["status"]["conditions"][0]["message"], set()), (
                    manifest
                )
                control_plane.request("DELETE", f"{pods_path}/{name}")
                continue
            assert node_name in best, (manifest, best, message)
            unique += len(best) == 1
            ties += len(best) > 1
            placed.append(name)
            ours.cluster.put_pod(msgspec.convert(theirs, Pod))

    ours.cluster.validate()
    assert unique > PODS // 2, (unique, ties, refused)
    assert refused > PODS // 50, (unique, ties, refused)
    print(f"one best node {unique}, several {ties}, none {refused}")
