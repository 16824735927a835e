"""The pods that manifests ask for, beside those that are there.

    objects of files ──> claims, classes, groups, … ──> snapshot
                    └──> workloads ──> pods as their controllers would make them ──> WantedPods

A workload that is there already has pods in the snapshot: only those missing are wanted. Nothing is
placed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
)
from kubesched.api.meta import LabelSelector, OwnerReference
from kubesched.api.requests import pod_requests
from kubesched.api.workloads import ReplicaSet, SelectorSpec
from kubesched.embedded import daemons
from kubesched.errors import ObjectError, UsageError
from kubesched.simulate.new_claims import NewClaims
from kubesched.simulate.spreading import TEMPLATE_HASH, owner_of
from kubesched.snapshot import manifests
from kubesched.snapshot.contents import Snapshot
from kubesched.snapshot.manifests import JsonObject, Located

#: Template hash of a Deployment that is not there yet, and part of the names of its new pods.
_NEW: Final = "new"


class Replicas(Struct, frozen=True):
    """A number of pods instead of the one in the manifest."""

    count: int
    #: whether that many are wanted beside those that are there
    more: bool = False


class WantedPods(Struct, frozen=True, kw_only=True):
    """The pods that a workload lacks."""

    kind: str
    namespace: str
    name: str
    #: how many it is to have
    asked: int
    #: how many of these are there
    existing: int = 0
    #: the others, in the order in which they are created
    pods: tuple[Pod, ...] = ()
    #: whether one is created only when the one before runs
    in_turn: bool = False
    #: what a reader has to know about the question
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Kind and name."""
        return f"{self.kind.lower()} {self.namespace}/{self.name}"


def wanted_pods(
    snapshot: Snapshot,
    objects: Sequence[Located],
    *,
    namespace: str,
    replicas: Replicas | None = None,
    most: int | None = None,
) -> list[WantedPods]:
    """Return the pods that objects ask for; add what these refer to to the snapshot.

    Raises ObjectError for objects that cannot be used, UsageError if `replicas` is for none or for
    several of them, or if they ask for more than `most` pods.
    """
    claims = NewClaims(snapshot)
    manifests.add_objects(snapshot, objects, namespace=namespace)
    claims.settle()
    workloads = [
        _Workload(snapshot, claims, where, tree, pod)
        for where, tree in objects
        if (pod := _pod(snapshot, where, tree, namespace)) is not None
    ]
    if replicas is not None and len(workloads) > 1:
        listed = ", ".join(each.title for each in workloads)
        raise UsageError(
            f"a number of replicas is for one workload, not for {len(workloads)}: {listed}"
        )
    found: list[WantedPods] = []
    for each in workloads:
        left = None if most is None else most - sum(len(one.pods) for one in found)
        found.append(each.wanted(replicas, left))
    return found


def _pod(snapshot: Snapshot, where: str, tree: JsonObject, namespace: str) -> Pod | None:
    return manifests.pod_of(where, tree, snapshot.priority_classes, namespace=namespace)


class _Workload:
    """One object with a pod, or with a pod template."""

    def __init__(
        self, snapshot: Snapshot, claims: NewClaims, where: str, tree: JsonObject, pod: Pod
    ) -> None:
        self._snapshot = snapshot
        self._claims = claims
        self._at = f"{where}: {manifests.named(tree)}"
        self._tree = tree
        self._spec = manifests.spec_of(tree)
        self._pod = pod
        self._kind = str(tree["kind"])
        self._namespace = pod.metadata.namespace
        self._name = str(tree["metadata"].get("name") or pod.metadata.name)
        #: its pods that have not ended
        self._there = [each for each in snapshot.pods if self._is_own(each)]
        self._notes: list[str] = []

    @property
    def title(self) -> str:
        return f"{self._kind.lower()} {self._namespace}/{self._name}"

    def wanted(self, replicas: Replicas | None, most: int | None) -> WantedPods:
        if self._kind == "DaemonSet":
            if replicas is not None:
                raise UsageError(
                    f"{self.title} has a pod on each node that takes one, and no number of replicas"
                )
            missing = list(self._on_nodes())
            return self._found(missing, asked=len(self._there) + len(missing))
        asked = self._asked(replicas)
        numbers = range(max(asked - len(self._there), 0))
        if most is not None and len(numbers) > most:
            raise UsageError(f"{self.title} asks for {len(numbers)} pods: {most} can be tried")
        if self._kind == "StatefulSet":
            missing = list(self._by_ordinal(asked))
        elif self._kind == "Pod":
            template = replace(self._pod, spec=replace(self._pod.spec, node_name=""))
            free = iter([self._name]) if asked == 1 else self._free_names(self._name)
            missing = [self._made(template, next(free)) for _ in numbers]
        else:
            template, free = self._replica_template(), self._free_names(f"{self._name}-{_NEW}")
            missing = [self._made(template, next(free)) for _ in numbers]
        return self._found(missing, asked=asked)

    def _found(self, missing: list[Pod], *, asked: int) -> WantedPods:
        if missing and any(_asks(each) != _asks(self._pod) for each in self._there):
            self._notes.append(
                f"pods of {self.title} that are there have other requests, another node selector "
                "or another priority; applying the file would replace them: not simulated"
            )
        return WantedPods(
            kind=self._kind,
            namespace=self._namespace,
            name=self._name,
            asked=asked,
            existing=len(self._there),
            pods=tuple(missing),
            in_turn=self._kind == "StatefulSet"
            and self._spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady",
            notes=tuple(self._notes),
        )

    # --- how many ---------------------------------------------------------------------------

    def _asked(self, replicas: Replicas | None) -> int:
        if replicas is not None:
            return replicas.count + (len(self._there) if replicas.more else 0)
        if self._kind in ("Pod", "PodTemplate"):
            return 1
        if self._kind not in ("Job", "CronJob"):
            return self._number("replicas", 1)
        at_once = self._number("parallelism", 1)
        if "completions" not in self._spec:
            return at_once
        completions = self._number("completions", 1)
        if completions > at_once:
            self._notes.append(f"{self.title} runs {at_once} of its {completions} pods at a time")
        return min(at_once, completions)

    def _number(self, field: str, default: int) -> int:
        value = self._spec.get(field)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ObjectError(f"{self._at}: spec.{field} is {value!r}, not a number of 0 or more")
        return value

    def _is_own(self, pod: Pod) -> bool:
        if pod.metadata.namespace != self._namespace or pod.status.phase in _ENDED:
            return False
        if self._kind == "Pod":
            return pod.metadata.name == self._name
        return owner_of(pod) == (self._kind, self._name)

    # --- pods as controllers make them ------------------------------------------------------

    def _replica_template(self) -> Pod:
        """Return a pod of the newest ReplicaSet of a Deployment, or of any other owner."""
        if self._kind != "Deployment":
            return self._owned(self._kind, self._name)
        if self._there:
            newest = max(self._there, key=lambda each: each.metadata.creation_timestamp or "")
            reference = newest.metadata.owner_references[0]
            revision = (newest.metadata.labels or {}).get(TEMPLATE_HASH, _NEW)
            return self._labelled(self._owned(reference.kind, reference.name), revision)
        name = f"{self._name}-{_NEW}"
        selector = self._selector()
        labels = {**(selector.match_labels or {}), TEMPLATE_HASH: _NEW}
        owners = (self._owner(self._kind, self._name),)
        meta = replace(
            self._pod.metadata, name=name, uid=name, labels=labels, owner_references=owners
        )
        spec = SelectorSpec(selector=replace(selector, match_labels=labels))
        self._snapshot.add("ReplicaSet", ReplicaSet(metadata=meta, spec=spec))
        return self._labelled(self._owned("ReplicaSet", name), _NEW)

    def _selector(self) -> LabelSelector:
        try:
            return msgspec.convert(self._spec.get("selector") or {}, LabelSelector)
        except msgspec.ValidationError as wrong:
            raise ObjectError(f"{self._at}: spec.selector: {wrong}") from None

    def _owned(self, kind: str, name: str) -> Pod:
        meta = replace(self._pod.metadata, owner_references=(self._owner(kind, name),))
        return replace(self._pod, metadata=meta)

    @staticmethod
    def _owner(kind: str, name: str) -> OwnerReference:
        return OwnerReference(kind=kind, name=name, uid=f"{kind}/{name}", controller=True)

    @staticmethod
    def _labelled(pod: Pod, revision: str) -> Pod:
        labels = {**(pod.metadata.labels or {}), TEMPLATE_HASH: revision}
        return replace(pod, metadata=replace(pod.metadata, labels=labels))

    def _made(self, template: Pod, name: str) -> Pod:
        """Return a pod of a template, with its ephemeral volumes' claims."""
        uid = f"applied/{self._namespace}/{name}"
        pod = replace(template, metadata=replace(template.metadata, name=name, uid=uid))
        self._claims.add_ephemeral(pod, self._template_spec(), self._at)
        return pod

    def _template_spec(self) -> JsonObject:
        if self._kind == "Pod":
            return self._spec
        holder = self._tree if self._kind == "PodTemplate" else self._spec
        spec: JsonObject = holder["template"]["spec"]
        return spec

    def _free_names(self, prefix: str) -> Iterator[str]:
        """Yield names that no pod has."""
        pods = (each.metadata for each in self._snapshot.pods)
        taken = {each.name for each in pods if each.namespace == self._namespace}
        names_in_order = (f"{prefix}-{number}" for number in count(1))
        return (name for name in names_in_order if name not in taken)

    def _by_ordinal(self, asked: int) -> Iterator[Pod]:
        """Yield the pods that a StatefulSet lacks, with their claims."""
        template = self._owned(self._kind, self._name)
        there = {each.metadata.name for each in self._there}
        ordinals = self._spec.get("ordinals")
        first = ordinals.get("start", 0) if isinstance(ordinals, dict) else 0
        for ordinal in range(first, first + asked):
            name = f"{self._name}-{ordinal}"
            if name not in there:
                volumes = self._claims.add_for_ordinal(
                    self._spec.get("volumeClaimTemplates") or (), self._pod, name, self._at
                )
                pod = self._made(template, name)
                own = {each.name for each in volumes}
                kept = (each for each in pod.spec.volumes if each.name not in own)
                yield replace(pod, spec=replace(pod.spec, volumes=(*kept, *volumes)))

    def _on_nodes(self) -> Iterator[Pod]:
        """Yield the pods that a DaemonSet lacks, each tied to its node."""
        spec = self._template_spec()
        taken = {daemons.node_of(msgspec.to_builtins(each)) for each in self._there}
        tied = self._tied(spec)
        for node in self._snapshot.nodes:
            name = node.metadata.name
            if name not in taken and daemons.runs_on(spec, msgspec.to_builtins(node)):
                pod = self._made(tied, f"{self._name}-{name}")
                affinity = pod.spec.affinity or Affinity()
                of_nodes = affinity.node_affinity or NodeAffinity()
                affinity = replace(affinity, node_affinity=_only(of_nodes, name))
                yield replace(pod, spec=replace(pod.spec, affinity=affinity))

    def _tied(self, spec: JsonObject) -> Pod:
        """Return a daemon's pod, with the tolerations that its controller adds."""
        template = {**self._spec["template"], "spec": daemons.bound_to(spec, "")}
        tree = {**self._tree, "spec": {**self._spec, "template": template}}
        self._pod = _pod(self._snapshot, self._at, tree, self._namespace) or self._pod
        return self._owned(self._kind, self._name)


_ENDED: Final = (names.PHASE_SUCCEEDED, names.PHASE_FAILED)


def _only(affinity: NodeAffinity, node_name: str) -> NodeAffinity:
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
    terms = (NodeSelectorTerm(match_fields=(field,)),)
    return replace(
        affinity,
        required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=terms),
    )


def _asks(pod: Pod) -> tuple[dict[str, int], dict[str, str], int]:
    """Return requests, node selector and priority: what no admission adds to."""
    return pod_requests(pod), pod.spec.node_selector or {}, pod.spec.priority or 0
