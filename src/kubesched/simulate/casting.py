"""Creates pods and nodes from manifests, each with its own name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec
from msgspec.structs import replace

from kubesched.api.core import Node, Pod, PodSchedulingGroup
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheduling import (
    GangPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    SchedulingConstraints,
    TopologyConstraint,
)
from kubesched.cluster.node_order import zone_of
from kubesched.errors import ObjectError
from kubesched.explain.surroundings import like
from kubesched.simulate.forms import Gang, JsonObject, NodeChange, decoded, seconds
from kubesched.simulate.timed_events import (
    GroupArrival,
    NodeAdded,
    NodeDrained,
    NodeLost,
    TimedEvent,
)
from kubesched.snapshot import manifests
from kubesched.snapshot.contents import Snapshot

ANY_NODE = "any"
NAMESPACE = "default"


class Casting:
    """Creates pods and nodes for a simulation on a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._nodes = {node.metadata.name: node for node in snapshot.nodes}
        #: name → pod
        self.templates: dict[str, Pod] = {}
        #: text of a manifest without its name → pod
        self._made: dict[bytes, Pod] = {}

    # --- pods -------------------------------------------------------------------------------

    def read_template(self, path: Path) -> Pod:
        """Read the pod of a file; it can then be referenced by its name."""
        classes = self._snapshot.priority_classes
        pod = manifests.read_pod(path, classes, namespace=NAMESPACE)
        # Templates of claims, in particular, come with the pods that refer to them.
        manifests.add_beside_pods(self._snapshot, path)
        self.templates[pod.metadata.name] = pod
        return pod

    def template(self, name: str, where: str) -> Pod:
        """Return a pod by name; raises ObjectError if there is none."""
        found = self.templates.get(name)
        if found is None:
            known = ", ".join(sorted(self.templates)) or "none: name files with --template"
            raise ObjectError(f"{where}: there is no template {name}; known are {known}")
        return found

    def pod(self, tree: JsonObject, where: str, *, name: str = "pod") -> Pod:
        """Return the pod of a manifest, in which kind and name are optional."""
        tree = {"apiVersion": "v1", "kind": "Pod", **tree}
        meta = tree.get("metadata")
        meta = dict(meta) if isinstance(meta, dict) else {}
        own_name = str(meta.pop("name", "") or name)
        text = msgspec.json.encode({**tree, "metadata": {**meta, "name": "pod"}})
        made = self._made.get(text)
        if made is None:
            classes = self._snapshot.priority_classes
            made = self._made[text] = manifests.parse_pod(
                text.decode(), classes, namespace=NAMESPACE, where=where
            )
        return replace(made, metadata=replace(made.metadata, name=own_name))

    # --- nodes ------------------------------------------------------------------------------

    def check(self, change: NodeChange, where: str) -> None:
        """Reject an invalid change of nodes."""
        given = [
            name
            for name, value in (
                ("add", change.add is not None),
                ("lose", change.lose),
                ("loseZone", change.lose_zone),
                ("drain", change.drain),
            )
            if value
        ]
        if len(given) != 1:
            raise ObjectError(f"{where}: say one of add, lose, loseZone, drain")
        if change.add is not None:
            if bool(change.like) == bool(change.node):
                raise ObjectError(f"{where}: nodes to add are like one, or have a node's manifest")
            if change.like and change.like not in self._nodes:
                raise ObjectError(f"{where}: node {change.like} not found")
        if change.lose_zone and not list(self._in_zone(change.lose_zone)):
            raise ObjectError(f"{where}: there is no node in zone {change.lose_zone}")
        if change.lose == ANY_NODE and not self._nodes:
            raise ObjectError(f"{where}: there is no node to lose")

    def changes(
        self, change: NodeChange, at_s: float, where: str, *, random: Random, number: int
    ) -> Iterator[TimedEvent]:
        """Return the events of a node change; `number` distinguishes nodes of several changes."""
        for_s = None if change.for_ is None else seconds(change.for_, where)
        if change.add is not None:
            yield from self._added(change, at_s, where, number)
        elif change.drain:
            yield NodeDrained(at_s, change.drain, for_s)
        elif change.lose_zone:
            for name in self._in_zone(change.lose_zone):
                yield NodeLost(at_s, name, for_s)
        else:
            chosen = change.lose
            if chosen == ANY_NODE:
                chosen = random.choice(sorted(self._nodes))
            yield NodeLost(at_s, chosen, for_s)

    def _added(
        self, change: NodeChange, at_s: float, where: str, number: int
    ) -> Iterator[TimedEvent]:
        example = self._nodes[change.like] if change.like else _node(change.node or {}, where)
        for count in range(1, (change.add or 0) + 1):
            name = f"{example.metadata.name}-added-{number}-{count}"
            yield NodeAdded(at_s, like(example, name), change.like)

    def _in_zone(self, zone: str) -> Iterator[str]:
        for name, node in self._nodes.items():
            if zone in (zone_of(node)[-1], "/".join(filter(None, zone_of(node)))):
                yield name


def _node(tree: JsonObject, where: str) -> Node:
    status = tree.get("status")
    if isinstance(status, dict):
        status = {"allocatable": status.get("capacity"), **status}
    meta = tree.get("metadata")
    meta = {"name": "node", **(meta if isinstance(meta, dict) else {})}
    known = {"metadata": meta, "spec": tree.get("spec") or {}, "status": status or {}}
    node = decoded(known, Node, f"{where}: node")
    if not node.status.allocatable:
        raise ObjectError(f"{where}: node: status.capacity is missing: it offers nothing")
    return node


def gang_arrival(
    gang: Gang, at_s: float, name: str, pods: Sequence[tuple[Pod, float | None]], where: str
) -> GroupArrival:
    """Return the arrival of pods as a gang; raises ObjectError if it can never be complete."""
    needed = len(pods) if gang.min_count is None else gang.min_count
    if not 1 <= needed <= len(pods):
        raise ObjectError(
            f"{where}: minCount is {needed}, but {len(pods)} pods arrive: give a count"
        )
    topology = (TopologyConstraint(key=gang.topology_key),) if gang.topology_key else ()
    pod = pods[0][0]
    group = PodGroup(
        metadata=ObjectMeta(name=name, namespace=pod.metadata.namespace, uid=f"group/{name}"),
        spec=PodGroupSpec(
            scheduling_policy=PodGroupSchedulingPolicy(gang=GangPolicy(min_count=needed)),
            scheduling_constraints=SchedulingConstraints(topology=topology) if topology else None,
            priority=pod.spec.priority,
        ),
    )
    member_of = PodSchedulingGroup(pod_group_name=name)
    members = (
        (replace(each, spec=replace(each.spec, scheduling_group=member_of)), lifetime_s)
        for each, lifetime_s in pods
    )
    return GroupArrival(at_s, group, tuple(members))


def named(pod: Pod, name: str, uid: str) -> Pod:
    """Return a copy of a pod with another name and uid."""
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=uid))
