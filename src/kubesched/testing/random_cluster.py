"""A cluster that changes at random: nodes, pods, nominations and volumes come and go.

    Random(seed) ──> RandomCluster ── step() ──> Cluster, after all events
                          └── rebuilt() ───────> Cluster, built from the remaining objects

It is small, unusual, and has what plugins read: labels, taints, images, ports, volumes, affinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Namespace, Node, Pod
from kubesched.api.meta import ObjectMeta
from kubesched.api.storage import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    VolumeNodeResources,
)
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.config.features import FeatureGates
from kubesched.kinds import stores
from kubesched.testing.objects import (
    PodProperties,
    make_claim,
    make_node,
    make_pod,
    make_storage_class,
    make_volume,
)

GPU: Final = "nvidia.com/gpu"
DRIVER: Final = "csi.example.com"
NODE_NAMES: Final = tuple(f"n{number:02}" for number in range(10))
CLAIMS: Final = ("data-0", "data-1", "data-2", "log-0")
ZONES: Final = ("a", "b", "c")
_WEB: Final = {"matchLabels": {"app": "web"}}
#: The size of an image follows from its name, so it does not matter which node had it first.
_IMAGES: Final = {"web:1": 300 << 20, "db:1": 900 << 20, "tiny:1": 1 << 20}

Json = dict[str, Any]


def _term(key: str) -> Json:
    return {"topologyKey": key, "labelSelector": _WEB}


def _spread(key: str, action: str) -> Json:
    return {"maxSkew": 1, "whenUnsatisfiable": action, **_term(key)}


def _node_affinity(**rules: object) -> Json:
    return {"affinity": {"nodeAffinity": rules}}


def _pod_affinity(kind: str, **rules: object) -> Json:
    return {"affinity": {kind: rules}}


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_GEN_5: Final = {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["5"]}]}
_SSD: Final = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}

#: One pod for each feature that a plugin may read, and some for several.
POD_KINDS: Final[dict[str, PodProperties]] = {
    "plain": {},
    "small": {"cpu": "100m", "memory": "64Mi"},
    "large": {"cpu": 3, "memory": "6Gi"},
    "important": {"cpu": 2, "priority": 1000},
    "gpu": {"cpu": 1, "resources": {GPU: 2}},
    "nowhere": {"resources": {"example.com/nothing": 1}},
    "port": {"host_ports": [80]},
    "selector": {"node_selector": {"disk": "ssd"}},
    "affinity": {"spec": _node_affinity(**{_REQUIRED: {"nodeSelectorTerms": [_GEN_5, _SSD]}})},
    "prefers": {
        "cpu": "50m",
        "spec": _node_affinity(
            **{
                _PREFERRED: [
                    {"weight": 30, "preference": _SSD},
                    {"weight": 9, "preference": _GEN_5},
                ]
            }
        ),
    },
    "tolerates": {"tolerations": ["team=red:NoSchedule", "old"], "memory": "1Gi"},
    "images": {"image": "web:1"},
    "web": {"labels": {"app": "web"}, "cpu": "250m"},
    "near": {"spec": _pod_affinity("podAffinity", **{_REQUIRED: [_term(names.LABEL_ZONE)]})},
    "away": {
        "labels": {"app": "web"},
        "spec": _pod_affinity("podAntiAffinity", **{_REQUIRED: [_term(names.LABEL_HOSTNAME)]}),
    },
    "likes": {
        "spec": _pod_affinity(
            "podAffinity",
            **{_PREFERRED: [{"weight": 7, "podAffinityTerm": _term(names.LABEL_ZONE)}]},
        )
    },
    "spread": {
        "labels": {"app": "web"},
        "spec": {"topologySpreadConstraints": [_spread(names.LABEL_ZONE, "DoNotSchedule")]},
    },
    "spread-softly": {
        "labels": {"app": "web"},
        "spec": {"topologySpreadConstraints": [_spread(names.LABEL_HOSTNAME, "ScheduleAnyway")]},
    },
    "claim": {"claims": CLAIMS[:1]},
    "claims": {"claims": CLAIMS[1:3], "cpu": "100m"},
    "log": {"claims": CLAIMS[3:]},
}


class RandomCluster:
    """A cluster that changes at random, and the objects that it consists of."""

    def __init__(
        self, rng: Random, *, nodes: Sequence[Node] = (), pods: Sequence[Pod] = ()
    ) -> None:
        """Fill a cluster; random nodes and pods are also drawn from the given ones."""
        self.rng = rng
        self._like_nodes = nodes
        self._like_pods = pods
        self.cluster = Cluster(_RULES)
        #: the events so far, as text
        self.events: list[str] = []
        self.nodes: dict[str, Node] = {}
        #: uid → pod with its node's name; those in `_assumed` are not bound
        self.placed: dict[str, Pod] = {}
        self._assumed: set[str] = set()
        self._nominated: dict[str, Pod] = {}
        self._numbers = 0
        storage = self.cluster.storage
        storage.classes.put(make_storage_class("local"))
        storage.classes.put(make_storage_class("csi", provisioner=DRIVER))
        self._relabel_namespace()
        for _ in range(3):
            self._put_volume()
        for name in CLAIMS[:3]:
            self._put_claim(name)
        for node in nodes:
            self._put(node)
        for name in NODE_NAMES[:8]:
            self._put(self.random_node(name))
        for _ in range(6):
            self._place_pod()

    def step(self) -> str:
        """Apply a random event; return it as text."""
        happen: Callable[[], str] = self.rng.choice(
            [
                *(self._put_node, self._put_node, self._remove_node),
                *(self._place_pod, self._place_pod, self._assume_pod, self._assume_pod),
                *(self._remove_pod, self._remove_pod, self._move_pod, self._relabel_namespace),
                *(self._nominate, self._clear_nomination),
                *(self._put_volume, self._put_some_claim, self._remove_volume, self._put_csi_node),
            ]
        )
        self.events.append(happen())
        return self.events[-1]

    def rebuilt(self) -> Cluster:
        """Return a cluster built from the same objects."""
        made = Cluster(_RULES)
        for node in self.nodes.values():
            made.put_node(node)
        for (_, ours), (_, others) in zip(stores(self.cluster), stores(made), strict=True):
            for each in ours:
                others.put(each)
        for uid, pod in self.placed.items():
            if uid in self._assumed:
                made.assume(made.compiler.pending(_on(pod, "")), pod.spec.node_name)
            else:
                made.put_pod(pod)
        for pod in self._nominated.values():
            nominated = made.compiler.pending(_on(pod, ""))
            made.nominator.nominate(nominated, pod.spec.node_name)
        return made

    # --- objects ----------------------------------------------------------------------------

    def random_node(self, name: str) -> Node:
        """Create a node: like a given one, or random."""
        pick = self.rng.choice
        if self._like_nodes and self.rng.random() < 0.5:
            like = pick(self._like_nodes)
            labels = {**(like.metadata.labels or {}), names.LABEL_HOSTNAME: name}
            return replace(
                like, metadata=replace(like.metadata, name=name, uid=name, labels=labels)
            )
        return make_node(
            name,
            cpu=pick([1, 4, 8, 64]),
            memory=pick(["2Gi", "8Gi", "100Gi"]),
            pods=pick([3, 110, 110]),
            resources=pick([{}, {GPU: 4}, {"ephemeral-storage": "10Gi"}]),
            zone=pick(["", *ZONES]),
            labels=pick([{}, {"disk": "ssd", "gen": "3"}, {"disk": "hdd"}, {"gen": "7"}]),
            annotations=pick([{}, {"note": "x"}]),
            taints=pick(
                [
                    *((), (), (), (), ("team=red:NoSchedule",), ("team=blue:NoExecute",)),
                    *(("old:PreferNoSchedule",), ("old:PreferNoSchedule", "slow:PreferNoSchedule")),
                ]
            ),
            images={each: _IMAGES[each] for each in self.rng.sample(sorted(_IMAGES), pick([0, 2]))},
            unschedulable=self.rng.random() < 0.1,
        )

    def random_pod(self, name: str, *, node: str = "") -> Pod:
        """Create a pod: like a given one, or random."""
        if self._like_pods and self.rng.random() < 0.5:
            like = self.rng.choice(self._like_pods)
            uid = f"{like.metadata.namespace}/{name}"
            return _on(replace(like, metadata=replace(like.metadata, name=name, uid=uid)), node)
        return _on(make_pod(name, **self.rng.choice([*POD_KINDS.values()])), node)

    def pods_to_ask_about(self, count: int) -> list[Pod]:
        """Return pending pods, each of another kind, and all given ones."""
        kinds = self.rng.sample([*POD_KINDS], count)
        made = [make_pod(f"ask-{kind}", **POD_KINDS[kind]) for kind in kinds]
        return [*(_on(each, "") for each in self._like_pods), *made]

    def pending(self, pods: Iterable[Pod]) -> list[PodInfo]:
        """Compile pods as the scheduler does."""
        return [self.cluster.compiler.pending(each) for each in pods]

    # --- events -----------------------------------------------------------------------------

    def _put(self, node: Node) -> None:
        self.nodes[node.metadata.name] = node
        self.cluster.put_node(node)

    def _put_node(self) -> str:
        name = self.rng.choice(NODE_NAMES)
        known = name in self.nodes
        self._put(self.random_node(name))
        return f"node {name} {'changes' if known else 'comes'}"

    def _remove_node(self) -> str:
        if len(self.nodes) < 4:
            return self._put_node()
        name = self.rng.choice([*self.nodes])
        del self.nodes[name]
        self.cluster.remove_node(name)
        return f"node {name} goes"

    def _place_pod(self) -> str:
        pod = self.random_pod(self._next_name(), node=self.rng.choice([*self.nodes]))
        self.placed[pod.metadata.uid] = pod
        self.cluster.put_pod(pod)
        return f"pod {pod.metadata.name} comes to {pod.spec.node_name}"

    def _move_pod(self) -> str:
        """Replace a pod by another of the same name and another kind."""
        if not self.placed:
            return self._place_pod()
        old = self.placed[self.rng.choice([*self.placed])]
        node = old.spec.node_name
        made = self.random_pod(old.metadata.name, node=node)
        new = replace(made, metadata=replace(made.metadata, uid=old.metadata.uid))
        self._assumed.discard(old.metadata.uid)
        self.placed[old.metadata.uid] = new
        self.cluster.put_pod(new)
        return f"pod {old.metadata.name} changes on {node}"

    def _assume_pod(self) -> str:
        node = self.rng.choice([*self.nodes])
        pod = self.random_pod(self._next_name())
        self.cluster.assume(self.cluster.compiler.pending(pod), node)
        self.placed[pod.metadata.uid] = _on(pod, node)
        self._assumed.add(pod.metadata.uid)
        return f"pod {pod.metadata.name} is assumed on {node}"

    def _remove_pod(self) -> str:
        if not self.placed:
            return self._place_pod()
        uid = self.rng.choice([*self.placed])
        gone = self.placed.pop(uid)
        if uid in self._assumed:
            self._assumed.discard(uid)
            self.cluster.forget(uid)
        else:
            self.cluster.remove_pod(uid)
        return f"pod {gone.metadata.name} goes from {gone.spec.node_name}"

    def _nominate(self) -> str:
        node = self.rng.choice([*self.nodes])
        pod = make_pod(self._next_name(), cpu=1, memory="1Gi", priority=self.rng.choice([0, 5]))
        self._nominated[pod.metadata.uid] = _on(pod, node)
        self.cluster.nominator.nominate(self.cluster.compiler.pending(pod), node)
        return f"pod {pod.metadata.name} is nominated to {node}"

    def _clear_nomination(self) -> str:
        if not self._nominated:
            return self._nominate()
        uid = self.rng.choice([*self._nominated])
        gone = self._nominated.pop(uid)
        self.cluster.nominator.clear(uid)
        return f"pod {gone.metadata.name} is nominated no more"

    def _relabel_namespace(self) -> str:
        labels = self.rng.choice([None, {"team": "red"}, {"team": "blue"}])
        self.cluster.namespaces.put(Namespace(ObjectMeta(name="default", labels=labels)))
        return f"namespace default has labels {labels}"

    def _put_volume(self) -> str:
        name = f"pv-{self.rng.randrange(4)}"
        volume = make_volume(
            name,
            storage_class=self.rng.choice(["local", "csi"]),
            zone=self.rng.choice(["", *ZONES]),
            storage=self.rng.choice(["1Gi", "20Gi"]),
            driver=DRIVER,
        )
        self.cluster.storage.volumes.put(self._versioned(volume))
        return f"volume {name} is there"

    def _remove_volume(self) -> str:
        volumes = self.cluster.storage.volumes
        if not len(volumes):
            return self._put_volume()
        gone = self.rng.choice([*volumes])
        volumes.remove(gone)
        return f"volume {gone.metadata.name} goes"

    def _put_some_claim(self) -> str:
        return self._put_claim(self.rng.choice(CLAIMS))

    def _put_claim(self, name: str) -> str:
        storage = self.cluster.storage
        volume = self.rng.choice(["", *(each.metadata.name for each in storage.volumes)])
        storage_class = self.rng.choice(["local", "csi"])
        claim = make_claim(name, storage_class=storage_class, volume=volume)
        storage.claims.put(self._versioned(claim))
        return f"claim {name} is {f'bound to {volume}' if volume else 'unbound'}"

    def _put_csi_node(self) -> str:
        name = self.rng.choice([*self.nodes])
        limit = VolumeNodeResources(count=self.rng.choice([0, 1, 5]))
        driver = CSINodeDriver(name=DRIVER, allocatable=limit)
        made = CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=(driver,)))
        self.cluster.storage.csi_nodes.put(made)
        return f"node {name} takes {limit.count} volumes"

    def _next_name(self) -> str:
        self._numbers += 1
        return f"p{self._numbers}"

    def _versioned(self, made: Any) -> Any:  # noqa: ANN401 (of the same type)
        """Return an object with a new version: stores drop assumptions about older ones."""
        self._numbers += 1
        return replace(made, metadata=replace(made.metadata, resource_version=str(self._numbers)))


_RULES: Final = RequestRules.of(FeatureGates.of({}))


def _on(pod: Pod, node_name: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node_name))
