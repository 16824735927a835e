"""Placements and refusals, compared pod by pod.

A cluster fills up and stays full: for each new pod an old one leaves. Where there is one best node,
both must choose it; where several are equally good, the real one must choose one of ours; where
none fits, both must say the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from kubesched.api.core import Namespace, Node, Pod
from kubesched.cluster.cluster import Cluster
from kubesched.config.features import FeatureGates
from kubesched.config.loading import profile_from_fragment
from kubesched.framework.building import build_framework
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.plugins.in_tree import IN_TREE
from tests.integration.control_plane import ControlPlane
from tests.integration.scheduler_process import configuration, delete_pod, pods_path
from tests.integration.settled_pods import settled, watching
from tests.support.evaluating import feasible_rows, total_scores

from .random_cases import RandomCases
from .shrinking import smallest

Json = dict[str, Any]

#: Pods that are asked about on one cluster, and how many of them stay.
PODS: Final = 200
KEPT: Final = 60


class Answer(NamedTuple):
    """What a scheduler makes of a pod."""

    #: the best nodes, or the one that was chosen
    nodes: frozenset[str]
    #: why there is none
    message: str = ""

    def agrees_with(self, real: Answer) -> bool:
        """Tell whether the real scheduler may have decided so."""
        if not real.nodes:
            return self == real
        return real.nodes <= self.nodes


@dataclass
class Difference:
    """Manifests about which the two differ."""

    seed: int
    profile: Json
    #: nodes, and pods that have a node; the last one is the pod to place
    manifests: list[Json]
    ours: Answer
    theirs: Answer


@dataclass
class Tally:
    """What came of comparisons."""

    outcomes: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)


class OurSide:
    """Our scheduling cycle on a copy of the cluster."""

    def __init__(self, profile: Json, namespace: Json) -> None:
        gates = FeatureGates.of({})
        self.cluster = Cluster()
        self.cluster.namespaces.put(msgspec.convert(namespace, Namespace))
        self._framework = build_framework(
            profile_from_fragment(profile, gates),
            registry=IN_TREE,
            gates=gates,
            cluster=self.cluster,
        )

    def put(self, manifest: Json) -> None:
        """Take over a node, or a pod that has one."""
        if manifest["kind"] == "Node":
            self.cluster.put_node(msgspec.convert(manifest, Node))
        else:
            self.cluster.put_pod(msgspec.convert(manifest, Pod))

    def answer(self, pod: Json) -> Answer:
        """Return what we make of a pod."""
        info, state = self.cluster.compiler.pending(msgspec.convert(pod, Pod)), CycleState()
        found = feasible_rows(self._framework.evaluator, state, info)
        if isinstance(found, Diagnosis):
            found.post_filter_message = self._framework.post_filter(
                state, info, found
            ).status.message
            return Answer(frozenset(), found.message())
        total = total_scores(self._framework.evaluator, state, info, found)
        best = found[np.flatnonzero(total == total.max())]
        return Answer(frozenset(map(self.cluster.table.name_at, best.tolist())))


class PlacementTheme:
    """Compares placements on one control plane."""

    def __init__(self, plane: ControlPlane, tally: Tally) -> None:
        self._plane = plane
        self._tally = tally

    def compare(self, seed: int) -> None:
        """Compare on the cluster of a seed; the API server has no nodes before and after."""
        cases, plane, namespace = RandomCases(seed), self._plane, f"seed-{seed}"
        plane.create_namespace(namespace)
        path, profile = pods_path(namespace), cases.profile()
        ours = OurSide(profile, plane.request("GET", f"/api/v1/namespaces/{namespace}"))
        placed: dict[str, Json] = {}
        try:
            nodes = [plane.request("POST", "/api/v1/nodes", each) for each in cases.nodes()]
            for each in nodes:
                ours.put({**each, "kind": "Node"})
            with (
                plane.run_kube_scheduler(self._settings(profile)),
                watching(plane, path) as seen,
            ):
                for _ in range(PODS):
                    if len(placed) > KEPT:
                        gone = placed.pop(cases.choice(sorted(placed)))
                        delete_pod(plane, namespace, gone["metadata"]["name"])
                        ours.cluster.remove_pod(gone["metadata"]["uid"])
                    created = plane.request("POST", path, cases.pod())
                    mine = ours.answer(created)
                    settled_pod = settled(seen, created["metadata"]["uid"])
                    real = _answer_of(settled_pod)
                    self._count(mine, real)
                    if not mine.agrees_with(real):
                        manifests = [*nodes, *placed.values(), created]
                        self._tally.differences.append(
                            Difference(seed, profile, manifests, mine, real)
                        )
                        return
                    if real.nodes:
                        placed[created["metadata"]["name"]] = settled_pod
                        ours.put({**settled_pod, "kind": "Pod"})
                    else:
                        delete_pod(plane, namespace, created["metadata"]["name"])
        finally:
            plane.delete_namespace(namespace)
            plane.purge("/api/v1/nodes")

    def _settings(self, profile: Json) -> Json:
        return configuration(
            self._plane.scheduler_kubeconfig, profile, percentageOfNodesToScore=100
        )

    def _count(self, mine: Answer, real: Answer) -> None:
        if not mine.agrees_with(real):
            self._tally.outcomes["different"] += 1
        elif not real.nodes:
            self._tally.outcomes["no node"] += 1
        else:
            several = len(mine.nodes) > 1
            self._tally.outcomes["one of several nodes" if several else "one best node"] += 1

    # --- shrinking --------------------------------------------------------------------------

    def shrink(self, found: Difference) -> Difference:
        """Return the smallest manifests about which the two still differ."""
        *others, pod = [_bare(each) for each in found.manifests]

        def differs(some: list[Json]) -> bool:
            mine, real = self._ask(found.profile, some, pod)
            return not mine.agrees_with(real)

        if not differs(others):
            # It takes the history, not only the state: shown whole.
            return found
        left = smallest(others, differs)
        mine, real = self._ask(found.profile, left, pod)
        return Difference(found.seed, found.profile, [*left, pod], mine, real)

    def _ask(self, profile: Json, others: list[Json], pod: Json) -> tuple[Answer, Answer]:
        """Ask both about a pod on a cluster that is made for it."""
        plane, namespace = self._plane, "shrink"
        plane.create_namespace(namespace)
        path = pods_path(namespace)
        ours = OurSide(profile, plane.request("GET", f"/api/v1/namespaces/{namespace}"))
        nodes = {each["metadata"]["name"] for each in others if each["kind"] == "Node"}
        try:
            for each in others:
                if each["kind"] == "Node":
                    ours.put({**plane.request("POST", "/api/v1/nodes", each), "kind": "Node"})
                elif each["spec"]["nodeName"] in nodes:
                    ours.put({**plane.request("POST", path, each), "kind": "Pod"})
            with watching(plane, path) as seen:
                created = plane.request("POST", path, pod)
                mine = ours.answer(created)
                with plane.run_kube_scheduler(self._settings(profile)):
                    return mine, _answer_of(settled(seen, created["metadata"]["uid"]))
        finally:
            plane.delete_namespace(namespace)
            plane.purge("/api/v1/nodes")


def _answer_of(pod: Json) -> Answer:
    node_name = pod["spec"].get("nodeName")
    if node_name:
        return Answer(frozenset((node_name,)))
    return Answer(frozenset(), pod["status"]["conditions"][0]["message"])


def _bare(manifest: Json) -> Json:
    """Return a manifest as it was before an API server took it."""
    meta = {key: manifest["metadata"].get(key) for key in ("name", "labels")}
    bare = {
        "apiVersion": "v1",
        "kind": "Node" if "allocatable" in manifest.get("status", {}) else "Pod",
        "metadata": {key: value for key, value in meta.items() if value},
        "spec": _without_defaulted_keys(manifest["spec"]),
    }
    if bare["kind"] == "Node":
        kept = ("allocatable", "capacity", "images")
        bare["status"] = {key: manifest["status"][key] for key in kept if key in manifest["status"]}
    return bare


def _without_defaulted_keys(spec: Json) -> Json:
    """Return a pod's spec without `matchLabelKeys` that the API server has put into a selector."""
    spec = json.loads(json.dumps(spec))
    for each in _selecting(spec):
        keys = each.pop("matchLabelKeys", ())
        expressions = each.get("labelSelector", {}).get("matchExpressions", [])
        left = [one for one in expressions if one["key"] not in keys]
        if len(left) < len(expressions):
            each["labelSelector"]["matchExpressions"] = left
        if keys:
            each["matchLabelKeys"] = keys
    return spec


def _selecting(spec: Json) -> Iterator[Json]:
    """Yield the parts of a pod's spec that select pods."""
    yield from spec.get("topologySpreadConstraints", ())
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = spec.get("affinity", {}).get(kind, {})
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution", ())
        for each in terms.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            yield each["podAffinityTerm"]
