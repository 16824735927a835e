"""What our scheduler answers for a conformance case, in the form of the expected answers."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.config.args import DefaultPreemptionArgs
from kubesched.config.features import FeatureGates
from kubesched.config.loading import profile_from_fragment
from kubesched.config.profiles import PluginConfig, Profile
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.building import build_framework
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import Filter, PreFilter, PreFilterResult, SignaturePreFilter
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Code, Status
from kubesched.kinds import stores
from kubesched.plugins.default_preemption import DefaultPreemption, found_placement
from kubesched.plugins.in_tree import IN_TREE
from kubesched.plugins.verdicts import choose
from tests.support.evaluating import feasible_rows

Json = Any


def all_candidates(profile: Profile, case: dict[str, Json]) -> Profile:
    """Let preemption look at all nodes, as in all cases that do not say otherwise."""
    config = (case.get("config") or {}).get("pluginConfig") or []
    if any(each["name"] == "DefaultPreemption" for each in config):
        return profile
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=100)
    return replace(
        profile,
        plugin_config=tuple(
            PluginConfig(name=each.name, args=args) if each.name == "DefaultPreemption" else each
            for each in profile.plugin_config
        ),
    )


class CaseCluster:
    """The cluster of a case, and the framework that the case configures."""

    def __init__(self, case: dict[str, Json]) -> None:
        gates = FeatureGates.of(case.get("featureGates") or {})
        profile = all_candidates(profile_from_fragment(case.get("config") or {}, gates), case)
        self.cluster = Cluster(RequestRules.of(gates))
        # Lists are called after resources, but in camel case.
        lists = {name.lower(): each for name, each in case["objects"].items()}
        for kind, store in stores(self.cluster):
            for manifest in lists.get(kind.path.plural, ()):
                store.put(msgspec.convert(manifest, kind.type))
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


def post_filter(
    here: CaseCluster, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
) -> dict[str, Json]:
    """Run PostFilter; of several equally good candidates the one with the lowest name counts."""
    result = here.framework.post_filter(state, pod, diagnosis)
    answer: dict[str, Json] = {
        "code": result.status.code.label,
        "message": result.status.message,
        "nominatedNode": result.nominated_node,
        "candidates": [],
    }
    plugin = here.framework.plugins.instances.get("DefaultPreemption")
    if not result.status.ok or not isinstance(plugin, DefaultPreemption):
        return answer
    table = here.cluster.table
    found = plugin.find(state, pod, diagnosis)
    place = {row: index for index, row in enumerate(table.order.rows().tolist())}
    answer["candidates"] = [
        {
            "node": table.name_at(each.row),
            "victims": [victim.full_name for victim in each.victims],
            "numPDBViolations": each.violations,
        }
        for each in sorted(found.candidates, key=lambda each: place[each.row])
    ]
    best = sorted(choose(found.candidates), key=lambda each: table.name_at(each.row))
    node_name = answer["nominatedNode"] = table.name_at(best[0].row)
    answer["message"] = found_placement(node_name, len(best[0].victims)).message
    answer["victims"] = [victim.full_name for victim in best[0].victims]
    if len(best) > 1:
        answer["ties"] = [table.name_at(each.row) for each in best]
    return answer


def _pre_filter(
    here: CaseCluster, plugin: SignaturePreFilter | PreFilter, state: CycleState, pod: PodInfo
) -> PreFilterResult:
    if isinstance(plugin, PreFilter):
        return plugin.pre_filter(state, pod, NodeRows.all_of(here.cluster.table))
    return plugin.pre_filter(pod.signature)


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
            verdict = plugin.filter(pod.signature, nodes)
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
    as_it_is = pod
    nominated = case["pod"].get("status", {}).get("nominatedNodeName")
    if nominated:
        alone = feasible_rows(evaluator, CycleState(), pod)
        result["nominatedFits"] = not isinstance(alone, Diagnosis) and (
            here.names(alone) == [nominated]
        )
        manifest = {**case["pod"], "status": {**case["pod"]["status"], "nominatedNodeName": ""}}
        pod = here.pending(manifest)
    state = CycleState()
    found = feasible_rows(evaluator, state, pod)
    if isinstance(found, Diagnosis) and not len(here.cluster.table):
        return {**result, "feasible": [], "fitError": found.message()}
    if isinstance(found, Diagnosis):
        post = post_filter(here, state, as_it_is, found)
        found.post_filter_message = post["message"]
        return {**result, "feasible": [], "fitError": found.message(), "postfilter": post}
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
