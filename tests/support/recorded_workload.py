"""Random things that happen to a lab: pods with all sorts of wishes, nodes that come and go, …"""

from __future__ import annotations

import json
import random
from typing import Any

from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Namespace, Node, NodeSelector, Pod, Taint, Toleration
from kubesched.api.meta import LabelSelector, ObjectMeta, OwnerReference
from kubesched.api.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kubesched.api.storage import VolumeNodeAffinity
from kubesched.api.workloads import PlainSelectorSpec, ReplicaSet, SelectorSpec, Service
from kubesched.config import loading
from kubesched.config.types import SchedulerConfiguration
from tests.support.objects import (
    must,
    node,
    pod,
    pod_term,
    prefers,
    requirement,
    requires,
    should,
    spread_over,
    term,
)
from tests.support.recorded_engine import GATES, Lab
from tests.support.storage_objects import (
    claim,
    csi_node,
    ephemeral_volume,
    persistent_volume,
    storage_class,
    using,
    with_volumes,
)

APPS = ("web", "api", "batch")
ZONES = ("z1", "z2", "z3")
NAMESPACES = ("default", "shop")
SLOW = "local"

CONFIGURATIONS: tuple[dict[str, Any], ...] = (
    {},
    {"percentageOfNodesToScore": 40},
    {
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "scoringStrategy": {
                                "type": "MostAllocated",
                                "resources": [{"name": "cpu", "weight": 1}],
                            }
                        },
                    }
                ],
            }
        ]
    },
    {
        "profiles": [
            {"schedulerName": "default-scheduler"},
            {
                "schedulerName": "second",
                "plugins": {"score": {"disabled": [{"name": "*"}]}},
            },
        ]
    },
)


def configuration(settings: dict[str, Any]) -> SchedulerConfiguration:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **settings,
    }
    return loading.decode(json.dumps(document), "test", gates=GATES)


class Workload:
    """Makes random things happen, the same for the same seed."""

    def __init__(self, *, steps: int, nodes: int = 12, rotations: float = 0.0) -> None:
        self._steps = steps
        self._nodes = nodes
        #: how often the recording goes on in another file, of 28 steps
        self._rotations = rotations
        self._count = 0

    async def __call__(self, lab: Lab) -> None:
        self._begin(lab)
        happenings = (
            (self._pod, 12),
            (self._pod_with_claim, 3),
            (self._delete_pod, 4),
            (self._node, 1),
            (self._change_node, 2),
            (self._delete_node, 1),
            (self._label_namespace, 1),
            (self._budget, 1),
            (self._service, 1),
            (self._relabel_pod, 1),
            (self._reconfigure, 0.2),
            (self._time, 1),
            (Lab.next_file, self._rotations),
        )
        acts, weights = zip(*happenings, strict=True)
        for _ in range(self._steps):
            lab.rng.choices(acts, weights)[0](lab)
            await lab.turns(lab.rng.choice((0, 0, 1, 4, 12)))

    def _begin(self, lab: Lab) -> None:
        for name in NAMESPACES:
            self._put_namespace(lab, name, {"team": "a"})
        slow = storage_class(SLOW, provisioner="kubernetes.io/no-provisioner")
        for each in (slow, storage_class("csi")):
            lab.on["StorageClass"].on_add(each, True)
        for _ in range(self._nodes):
            self._node(lab)

    def _name(self, what: str) -> str:
        self._count += 1
        return f"{what}-{self._count}"

    # --- pods -------------------------------------------------------------------------------

    def _pod(self, lab: Lab) -> None:
        lab.create_pod(self._random_pod(lab.rng))

    def _random_pod(self, rng: random.Random) -> Pod:
        app = rng.choice(APPS)
        name = self._name(app)
        made = pod(
            name,
            namespace=rng.choice(NAMESPACES),
            uid=f"uid-{name}",
            cpu=rng.choice(("100m", "500m", "1", "2")),
            memory=rng.choice(("64Mi", "512Mi", "2Gi")),
            image=rng.choice(("registry/app", "registry/other:1", "")),
            labels={"app": app, "track": rng.choice(("stable", "canary"))},
            priority=rng.choice((None, 0, 0, 10, 100)),
            ports=(8080,) if rng.random() < 0.1 else (),
            tolerations=(Toleration(key="dedicated", operator="Exists"),)
            if rng.random() < 0.4
            else (),
            node_selector={"disk": rng.choice(("ssd", "hdd"))} if rng.random() < 0.2 else None,
            spread=self._spread(rng, app),
            **self._affinity(rng, app),
        )
        spec = made.spec
        if rng.random() < 0.15:
            spec = replace(spec, scheduler_name="second")
        if rng.random() < 0.1:
            spec = replace(spec, preemption_policy="Never")
        owner = OwnerReference(
            api_version="apps/v1",
            kind="ReplicaSet",
            name=f"rs-{app}",
            uid=f"u-{app}",
            controller=True,
        )
        meta = replace(made.metadata, owner_references=(owner,) if rng.random() < 0.5 else ())
        return replace(made, metadata=meta, spec=spec)

    def _spread(self, rng: random.Random, app: str) -> tuple[Any, ...]:
        if rng.random() > 0.3:
            return ()
        key = rng.choice((names.LABEL_ZONE, names.LABEL_HOSTNAME))
        return (spread_over(key, soft=rng.random() < 0.5, app=app),)

    def _affinity(self, rng: random.Random, app: str) -> dict[str, Any]:
        wishes: dict[str, Any] = {}
        if rng.random() < 0.15:
            wishes["node_affinity"] = rng.choice(
                (
                    requires(term(requirement("size", "Gt", "3"))),
                    requires(term(requirement("disk", "NotIn", "hdd"))),
                    prefers((5, term(requirement(names.LABEL_ZONE, "In", "z1")))),
                )
            )
        if rng.random() < 0.15:
            wishes["near"] = rng.choice(
                (
                    should((7, pod_term(names.LABEL_ZONE, app=rng.choice(APPS)))),
                    must(pod_term(names.LABEL_ZONE, app=app)),
                )
            )
        if rng.random() < 0.15:
            wishes["away_from"] = rng.choice(
                (
                    must(pod_term(names.LABEL_HOSTNAME, app=app)),
                    should((3, pod_term(names.LABEL_ZONE, track="canary"))),
                )
            )
        return wishes

    def _pod_with_claim(self, lab: Lab) -> None:
        rng = lab.rng
        made = self._random_pod(rng)
        namespace = made.metadata.namespace
        if rng.random() < 0.2:
            made = with_volumes(made, ephemeral_volume("scratch"))
            name, owner = f"{made.metadata.name}-scratch", made.metadata.uid
        else:
            name, owner = self._name("data"), ""
            made = using(made, name)
        if rng.random() < 0.9:
            wanted = rng.choice((SLOW, "csi"))
            lab.put_claim(claim(name, namespace=namespace, storage_class=wanted, owner=owner))
        if rng.random() < 0.8:
            self._volume(lab)
        lab.create_pod(made)

    def _volume(self, lab: Lab) -> None:
        made = persistent_volume(self._name("pv"), storage_class=SLOW)
        zone = lab.rng.choice(ZONES)
        needed = NodeSelector(
            node_selector_terms=(term(requirement(names.LABEL_ZONE, "In", zone)),)
        )
        spec = replace(
            made.spec,
            node_affinity=VolumeNodeAffinity(required=needed),
            access_modes=("ReadWriteOnce",),
            capacity={"storage": lab.rng.choice(("1Gi", "2Gi"))},
        )
        lab.put_volume(replace(made, spec=spec, status=replace(made.status, phase="Available")))

    def _delete_pod(self, lab: Lab) -> None:
        if lab.pods:
            lab.delete_pod(lab.rng.choice(sorted(lab.pods)))

    def _relabel_pod(self, lab: Lab) -> None:
        if lab.pods:
            labels = {"app": lab.rng.choice(APPS)}
            lab.update_pod(
                lab.rng.choice(sorted(lab.pods)),
                lambda old: replace(old, metadata=replace(old.metadata, labels=labels)),
            )

    # --- nodes and the rest -----------------------------------------------------------------

    def _node(self, lab: Lab) -> None:
        if len(lab.nodes) > 2 * self._nodes:
            return
        name = self._name("node")
        lab.put_node(self._random_node(lab.rng, name))
        if lab.rng.random() < 0.5:
            lab.on["CSINode"].on_add(csi_node(name, {"disk.example.com": 2}), False)

    def _random_node(self, rng: random.Random, name: str) -> Node:
        labels = {
            names.LABEL_HOSTNAME: name,
            "disk": rng.choice(("ssd", "hdd")),
            "size": str(rng.randrange(1, 9)),
        }
        return node(
            name,
            cpu=rng.choice(("2", "4", "8")),
            memory=rng.choice(("4Gi", "8Gi")),
            pods=rng.choice((4, 20)),
            zone=rng.choice((*ZONES, None)),
            labels=labels,
            taints=("dedicated=batch:NoSchedule",) if rng.random() < 0.2 else (),
            images={"registry/app:latest": 500 << 20} if rng.random() < 0.3 else None,
        )

    def _change_node(self, lab: Lab) -> None:
        if not lab.nodes:
            return
        name = lab.rng.choice(sorted(lab.nodes))
        old = lab.nodes[name]
        change = lab.rng.randrange(3)
        if change == 0:
            spec = replace(old.spec, unschedulable=not old.spec.unschedulable)
            lab.put_node(replace(old, spec=spec))
        elif change == 1:
            taints = (Taint(key="spot", value="yes", effect="PreferNoSchedule"),)
            lab.put_node(replace(old, spec=replace(old.spec, taints=taints)))
        else:
            lab.put_node(self._random_node(lab.rng, name))

    def _delete_node(self, lab: Lab) -> None:
        if len(lab.nodes) > 3:
            lab.delete_node(lab.rng.choice(sorted(lab.nodes)))

    def _put_namespace(self, lab: Lab, name: str, labels: dict[str, str]) -> None:
        made = Namespace(metadata=ObjectMeta(name=name, labels=labels))
        lab.on["Namespace"].on_add(made, True)

    def _label_namespace(self, lab: Lab) -> None:
        self._put_namespace(lab, lab.rng.choice(NAMESPACES), {"team": lab.rng.choice("ab")})

    def _budget(self, lab: Lab) -> None:
        made = PodDisruptionBudget(
            metadata=ObjectMeta(name=lab.rng.choice(APPS), namespace=lab.rng.choice(NAMESPACES)),
            spec=PodDisruptionBudgetSpec(
                selector=LabelSelector(match_labels={"app": lab.rng.choice(APPS)})
            ),
            status=PodDisruptionBudgetStatus(disruptions_allowed=lab.rng.randrange(3)),
        )
        if lab.rng.random() < 0.7:
            lab.on["PodDisruptionBudget"].on_add(made, False)
        else:
            lab.on["PodDisruptionBudget"].on_delete(made)

    def _service(self, lab: Lab) -> None:
        app = lab.rng.choice(APPS)
        meta = ObjectMeta(name=f"rs-{app}", namespace=lab.rng.choice(NAMESPACES))
        made: Service | ReplicaSet = Service(
            metadata=meta, spec=PlainSelectorSpec(selector={"app": app})
        )
        if lab.rng.random() < 0.5:
            labels = LabelSelector(match_labels={"app": app})
            made = ReplicaSet(metadata=meta, spec=SelectorSpec(selector=labels))
        if lab.rng.random() < 0.7:
            lab.on[type(made).__name__].on_add(made, False)
        else:
            lab.on[type(made).__name__].on_delete(made)

    def _reconfigure(self, lab: Lab) -> None:
        pending = [each for each in lab.pods.values() if not each.spec.node_name]
        lab.engine.reconfigure(configuration(lab.rng.choice(CONFIGURATIONS)), pending)

    def _time(self, lab: Lab) -> None:
        lab.clock.advance(lab.rng.choice((1.0, 11.0)))
        lab.engine.queue.flush_backoff()
