"""A copy of the cluster, and what our scheduling cycle makes of a pod on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from kubesched.api.core import Node, Pod
from kubesched.api.decoding import convert
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.config import loading
from kubesched.config.features import FeatureGates
from kubesched.errors import ObjectError
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.kinds import KINDS
from kubesched.plugins.default_preemption import DefaultPreemption
from kubesched.scheduler.dry_run import DryRun
from tests.support.evaluating import feasible_rows, total_scores

Json = dict[str, Any]
#: Kind and name: all objects are in one namespace.
Key = tuple[str, str]


class Answer(NamedTuple):
    """What a scheduler makes of a pod."""

    #: the best nodes, or the one that was chosen; empty if there is none
    nodes: frozenset[str] = frozenset()
    #: why there is none; of errors, all that a node gives: workers meet any of them first
    messages: frozenset[str] = frozenset()
    #: the node that the pod is nominated to, "" if it is not
    nominated: str = ""
    #: the names of the pods that are evicted for it
    victims: frozenset[str] = frozenset()
    #: the nodes that it fits on; of ours only
    feasible: frozenset[str] = frozenset()
    #: what its claims get on the node that kube-scheduler chose, by name
    claims: Mapping[str, object] = MappingProxyType({})

    def agrees_with(self, real: Answer) -> bool:
        """Tell whether the real scheduler may have decided so."""
        if not real.nodes:
            return (
                not self.nodes
                and real.messages <= self.messages
                and (real.nominated, real.victims) == (self.nominated, self.victims)
            )
        return real.nodes <= self.nodes and self.claims == real.claims

    def decision(self) -> tuple[object, ...]:
        """Return what does not depend on the node that kube-scheduler chose."""
        return self.nodes, self.messages, self.nominated, self.victims

    def __str__(self) -> str:
        parts = [f"nodes {', '.join(sorted(self.nodes))}"] if self.nodes else []
        parts += sorted(self.messages)
        parts += [f"nominated to {self.nominated}"] if self.nominated else []
        parts += [f"victims {', '.join(sorted(self.victims))}"] if self.victims else []
        parts += [f"{name}: {got}" for name, got in sorted(self.claims.items())]
        return "; ".join(parts)


#: Reads from the state of an attempt what claims get on a node; raises ObjectError with the message
#: if they cannot be written.
OurClaims = Callable[[CycleState, Cluster, str], Mapping[str, object]]


class CopiedCluster:
    """The objects that kube-scheduler sees, and our profiles on them."""

    def __init__(self, configuration: Json) -> None:
        gates = FeatureGates.of({})
        config = loading.decode(json.dumps(configuration), gates=gates)
        self.cluster = Cluster()
        #: as the API server returned them
        self.objects: dict[Key, Json] = {}
        self._dry_run = DryRun(self.cluster, config, gates)

    # --- objects --------------------------------------------------------------------------------

    def put(self, kind: str, obj: Json) -> None:
        """Take over an object; a pod counts on its node, or on the one it is nominated to."""
        name = obj["metadata"]["name"]
        self.objects[kind, name] = {**obj, "kind": kind}
        row = KINDS[kind]
        if row.store is not None:
            row.store(self.cluster).put(convert(obj, row.type))
        elif kind == "Node":
            self.cluster.put_node(convert(obj, Node))
        elif kind == "Pod":
            self._put_pod(convert(obj, Pod))

    def _put_pod(self, pod: Pod) -> None:
        self.cluster.nominator.clear(pod.metadata.uid)
        if pod.spec.node_name:
            self.cluster.put_pod(pod)
        elif pod.status.nominated_node_name:
            info = self.cluster.compiler.pending(pod)
            self.cluster.nominator.nominate(info, pod.status.nominated_node_name)

    def remove(self, kind: str, name: str) -> None:
        """Forget an object, if it is known."""
        obj = self.objects.pop((kind, name), None)
        if obj is None:
            return
        row = KINDS[kind]
        if row.store is not None:
            row.store(self.cluster).remove(convert(obj, row.type))
        elif kind == "Node":
            self.cluster.remove_node(name)
        elif kind == "Pod":
            self.cluster.nominator.clear(obj["metadata"]["uid"])
            if obj["spec"].get("nodeName"):
                self.cluster.remove_pod(obj["metadata"]["uid"])

    def replace(self, kind: str, objects: Iterable[Json]) -> None:
        """Take over all objects of a kind."""
        names = set()
        for each in objects:
            names.add(each["metadata"]["name"])
            known = self.objects.get((kind, each["metadata"]["name"]))
            version = each["metadata"]["resourceVersion"]
            if known is None or known["metadata"]["resourceVersion"] != version:
                self.put(kind, each)
        for name in [name for of, name in self.objects if of == kind and name not in names]:
            self.remove(kind, name)

    def all_of(self, kind: str) -> list[Json]:
        """Return the objects of a kind."""
        return [each for (of, _), each in self.objects.items() if of == kind]

    # --- questions ------------------------------------------------------------------------------

    def answer(
        self, manifest: Json, chosen: str = "", our_claims: OurClaims | None = None
    ) -> Answer:
        """Return what we make of a pod.

        Where several nodes are as good, `chosen` is taken if it is among them.
        """
        pod = convert(manifest, Pod)
        framework = self._dry_run.framework_of(pod.spec.scheduler_name)
        if not len(self.cluster.table):
            return Answer(messages=frozenset((NO_NODES_AVAILABLE,)))
        info, state = self.cluster.compiler.pending(pod), CycleState()
        try:
            found = feasible_rows(framework.evaluator, state, info)
        except AttemptError:
            return Answer(messages=self._errors(framework, pod))
        if isinstance(found, Diagnosis):
            return self._preempted(framework, state, info, found, chosen)
        return self._placed(framework, state, info, found, chosen=chosen, our_claims=our_claims)

    def _placed(
        self,
        framework: Framework,
        state: CycleState,
        info: PodInfo,
        found: IndexArray,
        *,
        chosen: str,
        our_claims: OurClaims | None,
    ) -> Answer:
        """Return the best nodes, and what claims get on the one that is chosen."""
        total = total_scores(framework.evaluator, state, info, found)
        best = found[np.flatnonzero(total == total.max())]
        nodes = frozenset(map(self.cluster.table.name_at, best.tolist()))
        feasible = frozenset(map(self.cluster.table.name_at, found.tolist()))
        # Where kube-scheduler did not get as far as to choose one, it may have been any of them.
        asked = [chosen] if chosen else sorted(nodes)
        if our_claims is None or not nodes.issuperset(asked):
            return Answer(nodes, feasible=feasible)
        claims: Mapping[str, object] = {}
        failures: set[str] = set()
        for name in asked:
            try:
                claims = self._reserved(framework, state, info, name, our_claims)
            except ObjectError as failed:
                failures.add(str(failed))
        if failures:
            return Answer(messages=frozenset(failures))
        return Answer(nodes, feasible=feasible, claims=claims if len(asked) == 1 else {})

    def _reserved(
        self,
        framework: Framework,
        state: CycleState,
        info: PodInfo,
        node_name: str,
        our_claims: OurClaims,
    ) -> Mapping[str, object]:
        """Return what claims get on a node."""
        status = framework.reserve(state, info, node_name)
        try:
            if not status.ok:
                raise ObjectError(status.message)
            return our_claims(state, self.cluster, node_name)
        finally:
            framework.unreserve(state, info, node_name)

    def _preempted(
        self,
        framework: Framework,
        state: CycleState,
        info: PodInfo,
        found: Diagnosis,
        chosen: str,
    ) -> Answer:
        row = self.cluster.table.row_of(chosen) if chosen else None
        for plugin in framework.plugins.post_filter:
            if isinstance(plugin, DefaultPreemption):
                vars(plugin)["pick_row"] = lambda rows: row if row in rows else rows[0]
        result = framework.post_filter(state, info, found)
        found.post_filter_message = result.status.message
        return Answer(
            messages=frozenset((found.message(),)),
            nominated=result.nominated_node or "",
            victims=frozenset(each.pod.metadata.name for each in self._dry_run.victims()),
        )

    def _errors(self, framework: Framework, pod: Pod) -> frozenset[str]:
        """Return the errors that nodes give, each asked about by itself."""
        messages = set()
        for row in self.cluster.table.order.rows().tolist():
            info, state = self.cluster.compiler.pending(pod), CycleState()
            state.placement = np.arange(self.cluster.table.size) == row
            try:
                feasible_rows(framework.evaluator, state, info)
            except AttemptError as failed:
                messages.add(failed.status.message)
        return frozenset(messages)
