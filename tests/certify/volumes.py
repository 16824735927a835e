"""Volumes: bound and unbound claims, classes, zones, limits of CSI drivers, storage capacity.

Claims that wait for their first consumer are bound by a stand-in for the volume controller and the
provisioner; a claim must get the same volume, or be provisioned on the same node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from kubesched.cluster.cluster import Cluster
from kubesched.framework.cycle_state import CycleState
from kubesched.plugins.volume_binding import VolumeBinding, _Attempt
from tests.integration.control_plane import ControlPlane
from tests.integration.pretend_provisioner import PretendProvisioner
from tests.integration.scheduler_process import node, pod
from tests.integration.volume_objects import DRIVER

from .copied_cluster import Answer
from .documented import EQUAL_VOLUMES
from .one_by_one import GATE, OneByOne, Question, Scenario
from .session import PODS, Session
from .theme import Json

ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
#: A driver that publishes how much it can provision where.
SPACE_DRIVER: Final = "space.example.com"
PROVISIONED: Final = "provisioned on the pod's node"
CLAIM, VOLUME = "PersistentVolumeClaim", "PersistentVolume"
#: So many pods stay.
KEPT: Final = 25
#: Names of classes and how their claims are bound.
CLASSES: Final = {
    "immediate": (DRIVER, "Immediate"),
    "wait": (DRIVER, "WaitForFirstConsumer"),
    "zones": (DRIVER, "WaitForFirstConsumer"),
    "space": (SPACE_DRIVER, "WaitForFirstConsumer"),
    "local": ("kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
}


class VolumeScenario(Scenario):
    """Pods with claims of all kinds."""

    cases = 60
    retries = False

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._number = 0
        self._nodes: dict[str, str] = {}

    # --- the cluster ------------------------------------------------------------------------

    def objects(self) -> list[Json]:
        """Return nodes with what CSI drivers say of them, classes, volumes and bound claims."""
        rng = self.rng
        nodes = [self._node(number) for number in range(rng.randint(3, 10))]
        made = [*nodes, *self._csi_nodes(), *self._classes(), *self._capacities()]
        made += [self._local_volume() for _ in range(rng.randint(2, 8))]
        made += [self._zonal_volume() for _ in range(rng.randint(0, 5))]
        for _ in range(rng.randint(3, 8)):
            made += self._bound_claim()
        return made

    def _node(self, number: int) -> Json:
        rng, name = self.rng, f"node-{number:02d}"
        self._nodes[name] = f"zone-{rng.randrange(3)}"
        room = {"cpu": rng.choice(["2", "4", "8"])}
        return node(name, labels={ZONE: self._nodes[name]}, allocatable=room)

    def _csi_nodes(self) -> list[Json]:
        rng, made = self.rng, []
        for name in self._nodes:
            if rng.random() < 0.1:
                continue
            drivers = []
            for driver in (DRIVER, SPACE_DRIVER):
                if rng.random() < 0.9:
                    each: Json = {"name": driver, "nodeID": name, "topologyKeys": [ZONE]}
                    if rng.random() < 0.7:
                        each["allocatable"] = {"count": rng.randint(1, 6)}
                    drivers.append(each)
            made.append(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSINode",
                    "metadata": {"name": name},
                    "spec": {"drivers": drivers},
                }
            )
        return made

    def _classes(self) -> list[Json]:
        made: list[Json] = [
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSIDriver",
                "metadata": {"name": SPACE_DRIVER},
                "spec": {"storageCapacity": True},
            }
        ]
        for name, (provisioner, mode) in CLASSES.items():
            each: Json = {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": name},
                "provisioner": provisioner,
                "volumeBindingMode": mode,
            }
            if name == "zones":
                zones = sorted({f"zone-{self.rng.randrange(3)}" for _ in range(2)})
                expressions = [{"key": ZONE, "values": zones}]
                each["allowedTopologies"] = [{"matchLabelExpressions": expressions}]
            made.append(each)
        return made

    def _capacities(self) -> list[Json]:
        rng, made = self.rng, []
        for zone in range(3):
            for number in range(rng.choice([0, 1, 1, 2])):
                each: Json = {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSIStorageCapacity",
                    "metadata": {"name": f"capacity-{zone}-{number}"},
                    "storageClassName": "space",
                    "nodeTopology": {"matchLabels": {ZONE: f"zone-{zone}"}},
                    "capacity": rng.choice(["1Gi", "4Gi", "100Gi"]),
                }
                if rng.random() < 0.3:
                    each["maximumVolumeSize"] = rng.choice(["1Gi", "2Gi"])
                made.append(each)
        return made

    def _local_volume(self) -> Json:
        name = self.rng.choice(sorted(self._nodes))
        source = {"local": {"path": "/mnt"}}
        affinity = _required(HOSTNAME, name)
        return self._volume("local", self._size(), source, affinity)

    def _zonal_volume(self) -> Json:
        zone = f"zone-{self.rng.randrange(3)}"
        self._number += 1
        source = {"csi": {"driver": DRIVER, "volumeHandle": f"handle-{self._number}"}}
        made = self._volume(self.rng.choice(["wait", "zones"]), self._size(), source)
        if self.rng.random() < 0.5:
            made["spec"]["nodeAffinity"] = _required(ZONE, zone)
        if self.rng.random() < 0.5:
            made["metadata"]["labels"] = {ZONE: zone}
        if self.rng.random() < 0.1:
            made["metadata"]["labels"] = {ZONE: f"{zone}__zone-{self.rng.randrange(3)}"}
        return made

    def _volume(self, of: str, size: str, source: Json, affinity: Json | None = None) -> Json:
        self._number += 1
        spec: Json = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"][: self.rng.randint(1, 2)],
            "storageClassName": of,
            **source,
        }
        if affinity is not None:
            spec["nodeAffinity"] = affinity
        return {
            "apiVersion": "v1",
            "kind": VOLUME,
            "metadata": {"name": f"volume-{self._number:04d}"},
            "spec": spec,
            "status": {"phase": "Available"},
        }

    def _bound_claim(self) -> list[Json]:
        """Return a claim and its volume; or a claim whose volume does not exist, or is lost."""
        rng = self.rng
        draw = self._local_volume if rng.random() < 0.3 else self._zonal_volume
        volume = draw()
        claim = self._claim(volume["spec"]["storageClassName"])
        if rng.random() < 0.15 and "csi" in volume["spec"]:
            modes = ["ReadWriteOncePod"]
            volume["spec"]["accessModes"] = claim["spec"]["accessModes"] = modes
        name, of = claim["metadata"]["name"], volume["metadata"]["name"]
        claim["metadata"]["annotations"] = {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        claim["spec"]["volumeName"] = of
        claim["status"] = {"phase": "Lost" if rng.random() < 0.03 else "Bound"}
        volume["spec"]["claimRef"] = {"kind": CLAIM, "name": name}
        volume["spec"]["claimRef"]["namespace"] = "certify"
        volume["status"] = {"phase": "Bound"}
        return [claim] if rng.random() < 0.03 else [claim, volume]

    def _size(self) -> str:
        return f"{self.rng.randint(1, 30) * 100}Mi"

    def _claim(self, of: str) -> Json:
        self._number += 1
        modes = ["ReadWriteMany"] if self.rng.random() < 0.1 else ["ReadWriteOnce"]
        return {
            "apiVersion": "v1",
            "kind": CLAIM,
            "metadata": {"name": f"claim-{self._number:04d}"},
            "spec": {
                "accessModes": modes,
                "storageClassName": of,
                "resources": {"requests": {"storage": self._size()}},
            },
        }

    # --- questions --------------------------------------------------------------------------

    def question(self, session: Session) -> Question:
        """Return a pod with some claims, old ones and new ones."""
        rng = self.rng
        self._number += 1
        name = f"pod-{self._number:04d}"
        new: list[Json] = []
        names: list[str] = []
        bound = sorted(
            each["metadata"]["name"]
            for each in session.copy.all_of(CLAIM)
            if each["spec"].get("volumeName")
        )
        for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
            drawn = rng.random()
            if drawn < 0.68 and bound:
                names.append(rng.choice(bound))
            elif drawn < 0.7:
                names.append("no-such-claim")
            else:
                kinds = ["wait", "zones", "space", "space", "local", "local", "immediate"]
                of = rng.choice(kinds) if rng.random() < 0.97 else "no-such-class"
                new.append(self._claim(of))
                names.append(new[-1]["metadata"]["name"])
        names = list(dict.fromkeys(names))
        volumes: list[Json] = [
            {"name": each, "persistentVolumeClaim": {"claimName": each}} for each in names
        ]
        if rng.random() < 0.1:
            disk = {"pdName": f"disk-{rng.randrange(3)}", "readOnly": rng.random() < 0.5}
            volumes.append({"name": "disk", "gcePersistentDisk": disk})
        if rng.random() < 0.1:
            volumes.append({"name": "inline", "csi": {"driver": DRIVER}})
        made = pod(name, requests={"cpu": rng.choice(["100m", "500m", "1"])}, volumes=volumes)
        made["spec"]["terminationGracePeriodSeconds"] = 0
        if rng.random() < 0.15:
            made["spec"]["nodeSelector"] = {ZONE: f"zone-{rng.randrange(3)}"}
        return Question(made, tuple(new))

    def submit(self, session: Session, question: Question) -> Json:
        """Create claims, and a pod that waits until kube-scheduler has seen them."""
        for each in question.objects:
            session.create(each)
        gated = {**question.pod, "spec": {**question.pod["spec"]}}
        gated["spec"]["schedulingGates"] = [{"name": GATE}]
        session.plane.request("POST", PODS, gated)
        return session.patch("Pod", gated["metadata"]["name"], {"spec": {"schedulingGates": None}})

    # --- answers ----------------------------------------------------------------------------

    def our_claims(
        self, state: CycleState, cluster: Cluster, node_name: str
    ) -> Mapping[str, object]:
        """Return the volumes that ours binds, or has provisioned."""
        attempt, row = state.get(VolumeBinding.name), cluster.table.row_of(node_name)
        if not isinstance(attempt, _Attempt) or attempt.placement is None or row is None:
            return {}
        volumes = attempt.placement.at(row)
        found: dict[str, object] = {
            claim.metadata.name: volume.metadata.name for volume, claim in volumes.bindings
        }
        return found | {claim.metadata.name: PROVISIONED for claim, _ in volumes.provisions}

    def their_claims(self, session: Session, pod: Json) -> Mapping[str, object]:
        """Return the volumes of claims that were not bound before."""
        found: dict[str, object] = {}
        for name in _claim_names(pod):
            if not session.copy.objects[CLAIM, name]["spec"].get("volumeName"):
                claim = session.read(CLAIM, name)
                volume = claim["spec"].get("volumeName") if claim else None
                is_old = (VOLUME, volume) in session.copy.objects
                found[name] = volume if is_old else PROVISIONED
        return found

    def documented(self, ours: Answer, theirs: Answer, session: Session) -> str:
        """Return that volumes are as large as ours, if they are."""
        if not theirs.nodes or not theirs.nodes <= ours.nodes:
            return ""
        sizes = {
            each["metadata"]["name"]: each["spec"]["capacity"]["storage"]
            for each in session.copy.all_of(VOLUME)
        }

        def by_size(answer: Answer) -> dict[str, object]:
            return {name: sizes.get(str(got), got) for name, got in answer.claims.items()}

        return EQUAL_VOLUMES if by_size(ours) == by_size(theirs) else ""

    def placed(self, session: Session, pod: Json) -> None:
        """Take over a pod and its volumes."""
        for name in _claim_names(pod):
            if not session.copy.objects[CLAIM, name]["spec"].get("volumeName"):
                session.reread(CLAIM, [name])
                session.reread(VOLUME, [session.copy.objects[CLAIM, name]["spec"]["volumeName"]])
        super().placed(session, pod)

    def change(self, session: Session) -> None:
        """Let pods go, some with their claims; add volumes."""
        rng = self.rng
        pods = sorted(each["metadata"]["name"] for each in session.copy.all_of("Pod"))
        while len(pods) > KEPT or (pods and rng.random() < 0.1):
            name = rng.choice(pods)
            pods.remove(name)
            session.delete("Pod", name)
        used = {name for each in session.copy.all_of("Pod") for name in _claim_names(each)}
        claims = session.copy.all_of(CLAIM)
        unused = [each for each in claims if each["metadata"]["name"] not in used]
        if len(unused) > 10:
            gone = rng.choice(sorted(unused, key=lambda each: each["metadata"]["name"]))
            session.delete(CLAIM, gone["metadata"]["name"])
            volume = gone["spec"].get("volumeName")
            if (VOLUME, volume) in session.copy.objects:
                session.delete(VOLUME, volume)
        if rng.random() < 0.1:
            session.create(self._local_volume())
        if rng.random() < 0.05:
            for each in self._bound_claim():
                session.create(each)


def _claim_names(pod: Json) -> list[str]:
    volumes = pod["spec"].get("volumes", ())
    found = [each.get("persistentVolumeClaim", {}).get("claimName") for each in volumes]
    return [each for each in found if each]


def _required(key: str, value: str) -> Json:
    expression = {"key": key, "operator": "In", "values": [value]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


class VolumeTheme(OneByOne):
    """Compares placements of pods with volumes."""

    name = "volumes"
    scenario = VolumeScenario

    @contextmanager
    def controllers(self, plane: ControlPlane) -> Iterator[None]:
        """Bind claims, and provision volumes for them."""
        with PretendProvisioner(plane).running():
            yield
