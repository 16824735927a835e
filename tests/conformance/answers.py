"""What our scheduler answers for a conformance case, in the form of the expected answers."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from kubesched.api.core import Namespace, Node, Pod
from kubesched.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.cluster.workloads import Workload
from kubesched.config.features import FeatureGates
from kubesched.config.loading import profile_from_fragment
from kubesched.framework.building import build_framework
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.evaluation import AttemptError
from kubesched.framework.plugin import Filter, PreFilter, PreFilterResult, ShapePreFilter
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Code, Status
from kubesched.plugins.in_tree import IN_TREE

Json = Any


WORKLOADS: dict[str, type[Workload]] = {
    "services": Service,
    "replicationControllers": ReplicationController,
    "replicaSets": ReplicaSet,
    "statefulSets": StatefulSet,
}


class NoBinder:
    """Cases end with a decision; nothing is bound."""

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        raise NotImplementedError(f"binding {pod} to {node_name}")


class CaseCluster:
    """The cluster of a case, and the framework that the case configures."""

    def __init__(self, case: dict[str, Json]) -> None:
        gates = FeatureGates.of(case.get("featureGates") or {})
        profile = profile_from_fragment(case.get("config") or {}, gates)
        self.cluster = Cluster(RequestRules.of(gates))
        for namespace in case["objects"].get("namespaces", ()):
            self.cluster.put_namespace(msgspec.convert(namespace, Namespace))
        for key, kind in WORKLOADS.items():
            for workload in case["objects"].get(key, ()):
                self.cluster.workloads.put(msgspec.convert(workload, kind))
        for node in case["objects"].get("nodes", ()):
            self.cluster.put_node(msgspec.convert(node, Node))
        for manifest in case["objects"].get("pods", ()):
            pod = msgspec.convert(manifest, Pod)
            if pod.status.phase in ("Succeeded", "Failed"):
                continue
            if pod.spec.node_name:
                self.cluster.put_pod(pod)
            elif pod.status.nominated_node_name:
                info = self.cluster.compiler.pending(pod)
                self.cluster.nominator.nominate(info, pod.status.nominated_node_name)
        self.framework: Framework = build_framework(
            profile,
            registry=IN_TREE,
            gates=gates,
            cluster=self.cluster,
            binder=NoBinder(),
        )

    def names(self, rows: Any) -> list[str]:
        return [self.cluster.table.name_at(row) for row in rows.tolist()]

    def pending(self, manifest: Json) -> PodInfo:
        return self.cluster.compiler.pending(msgspec.convert(manifest, Pod))


def answer(case: dict[str, Json]) -> dict[str, Json]:
    """Evaluate a case with a single pod, plugin by plugin and then as a whole."""
    here = CaseCluster(case)
    pod = here.pending(case["pod"])
    result: dict[str, Json] = {"id": case["id"]}
    result["nodeOrder"] = here.names(here.cluster.table.order.rows())
    gated = here.framework.gate(pod)
    if not gated.ok:
        result["preenqueue"] = {gated.plugin: as_status(gated)}
        result["feasible"] = []
        return result
    state = CycleState()
    pre_filter = {
        plugin.name: _pre_filter(here, plugin, state, pod)
        for plugin in here.framework.plugins.pre_filter
    }
    result["prefilter"] = {
        name: {
            **as_status(each.status),
            "nodeNames": None if each.node_names is None else sorted(each.node_names),
        }
        for name, each in pre_filter.items()
    }
    result["filter"] = _filters(here, state, pod, pre_filter)
    try:
        result.update(_attempt(here, case, pod))
    except AttemptError as failed:
        result["feasible"] = []
        result["scheduleError"] = failed.status.message
    return result


def _pre_filter(
    here: CaseCluster, plugin: ShapePreFilter | PreFilter, state: CycleState, pod: PodInfo
) -> PreFilterResult:
    if isinstance(plugin, PreFilter):
        return plugin.pre_filter(state, pod, NodeRows.all_of(here.cluster.table))
    return plugin.pre_filter(pod.shape)


def _filters(
    here: CaseCluster, state: CycleState, pod: PodInfo, pre_filter: dict[str, PreFilterResult]
) -> dict[str, Json]:
    table = here.cluster.table
    nodes = NodeRows.all_of(table)
    rejections = {}
    for plugin in here.framework.plugins.filter:
        result = pre_filter.get(plugin.name)
        if result is not None and not result.status.ok:
            continue
        if isinstance(plugin, Filter):
            verdict = plugin.filter(state, pod, nodes)
        else:
            verdict = plugin.filter(pod.shape, nodes)
        found = {
            table.name_at(row): as_status(status)
            for row in range(table.size)
            if table.valid[row] and (status := verdict.status_of(row)) is not None
        }
        if found:
            rejections[plugin.name] = found
    return rejections


def _attempt(here: CaseCluster, case: dict[str, Json], pod: PodInfo) -> dict[str, Json]:
    evaluator = here.framework.evaluator
    result: dict[str, Json] = {}
    nominated = case["pod"].get("status", {}).get("nominatedNodeName")
    if nominated:
        alone = evaluator.find_feasible(CycleState(), pod)
        result["nominatedFits"] = not isinstance(alone, Diagnosis) and (
            here.names(alone) == [nominated]
        )
        manifest = {**case["pod"], "status": {**case["pod"]["status"], "nominatedNodeName": ""}}
        pod = here.pending(manifest)
    state = CycleState()
    found = evaluator.find_feasible(state, pod)
    if isinstance(found, Diagnosis):
        post = here.framework.post_filter(state, pod, found)
        found.post_filter_message = post.status.message
        return {**result, "feasible": [], "fitError": found.message()}
    nodes = here.names(found)
    result["feasible"] = nodes
    raw, scores = {}, {}
    total = np.zeros(len(found), dtype=np.int64)
    for each in evaluator.plugin_scores(state, pod, found):
        raw[each.plugin] = dict(zip(nodes, each.raw.tolist(), strict=True))
        scores[each.plugin] = dict(zip(nodes, each.normalized.tolist(), strict=True))
        total += each.normalized * each.weight
    best = [name for name, score in zip(nodes, total.tolist(), strict=True) if score == total.max()]
    result["raw"], result["scores"], result["best"] = raw, scores, best
    result["total"] = dict(zip(nodes, total.tolist(), strict=True))
    return result


def as_status(status: Status) -> dict[str, Json]:
    result: dict[str, Json] = {"code": Code(status.code).label}
    if status.reasons:
        result["reasons"] = sorted(status.reasons)
    return result
