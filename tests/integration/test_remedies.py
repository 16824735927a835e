"""Every kind of change that explain proposes, made with the commands that it prints, on a real API
server: what was proposed is different afterwards, and nothing else in the cluster is.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import jsonpatch
import pytest

from kubesched.cli.kubesched import main
from kubesched.explain import combining
from kubesched.explain.case import Kind

from .control_plane import ControlPlane, JsonObject

ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HASH = "5d4f8c7b9"
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
TOLERATION = {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
#: Who made the pod.
OWNERS = ("nobody", "Deployment")
ALL_OWNERS = (*OWNERS, "StatefulSet", "Job")

Spec = dict[str, Any]


def node(name: str, **spec: object) -> JsonObject:
    labels = {ZONE: "a", "disk": "hdd"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def in_zone(each: JsonObject, zone: str) -> JsonObject:
    each["metadata"]["labels"][ZONE] = zone
    return each


def container(name: str, **more: object) -> JsonObject:
    """A container with much that scheduling never reads."""
    return {
        "name": name,
        "image": "registry.k8s.io/pause:3.10",
        "env": [{"name": "MODE", "value": "full"}],
        "livenessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 7},
        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"memory": "1Gi"}},
        **more,
    }


def wide(**more: object) -> Spec:
    """A pod's spec with much that scheduling never reads."""
    return {
        "containers": [container("main"), container("side")],
        "terminationGracePeriodSeconds": 1,
        "tolerations": [
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 30,
            },
            {"key": "spot", "operator": "Exists"},
        ],
        "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
        **more,
    }


def placed(name: str, **spec: object) -> JsonObject:
    # There is no kubelet that would confirm the end of a pod that is given time to end.
    inner = {
        "containers": [container("main")],
        "nodeName": "n1",
        "terminationGracePeriodSeconds": 0,
        **spec,
    }
    return {"metadata": {"name": name, "labels": {"app": "x"}}, "spec": inner}


def demanding(cpu: str) -> list[JsonObject]:
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"memory": "1Gi"}}
    return [container("main", resources=resources), container("side")]


@dataclass
class Case:
    """A situation, the change that is proposed, and what it makes of things."""

    title: str
    nodes: list[JsonObject]
    spec: Spec
    #: changes the spec of the pod, or of the template that it comes from
    expected: Callable[[Spec], object] | None = None
    #: changes all nodes that there are
    expected_of_nodes: Callable[[Spec], object] | None = None
    others: list[JsonObject] = field(default_factory=list)
    #: pods that are gone afterwards
    gone: tuple[str, ...] = ()
    #: whether a pod can change that itself
    in_place: bool = False
    #: kinds of owners; to most changes, it makes no difference which controller it is
    owners: tuple[str, ...] = OWNERS
    labels: Mapping[str, str] = field(default_factory=lambda: {"app": "x"})


def requests_of(spec: Spec, at: int) -> Spec:
    found: Spec = spec["containers"][at]["resources"]["requests"]
    return found


def smaller(spec: Spec) -> None:
    requests_of(spec, 0)["cpu"] = "3200m"
    requests_of(spec, 1)["cpu"] = "800m"


def constraint(**more: object) -> JsonObject:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "nodeTaintsPolicy": "Honor",
        **more,
    }


SOFT = constraint(whenUnsatisfiable="ScheduleAnyway", minDomains=None, topologyKey="rack")
NEAR_NOTHING = {"labelSelector": {"matchLabels": {"app": "none"}}, "topologyKey": ZONE}
NEAR_X = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": ZONE}
PREFERRED = [{"weight": 7, "podAffinityTerm": {**NEAR_X, "namespaces": ["elsewhere"]}}]
PORTS = [
    {"name": "web", "containerPort": 80, "hostPort": 8080, "protocol": "TCP"},
    {"name": "admin", "containerPort": 81},
]
SAME_PORTS = [
    {"name": "dns", "containerPort": 53, "hostPort": 8080, "protocol": "UDP"},
    {"name": "dns-tcp", "containerPort": 53, "hostPort": 8080, "protocol": "TCP"},
]


def affinity(**more: object) -> JsonObject:
    return {"affinity": more}


def with_ports(ports: list[JsonObject]) -> list[JsonObject]:
    return [container("main", ports=ports), container("side")]


def without_host_ports(spec: Spec) -> None:
    for port in spec["containers"][0]["ports"]:
        port.pop("hostPort", None)


def node_terms(*expressions: JsonObject) -> JsonObject:
    preferred = [{"weight": 3, "preference": {"matchExpressions": [expressions[0]]}}]
    return {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }
    }


ON_SSD = {"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}
IN_A = {"key": ZONE, "operator": "In", "values": ["a"]}


def terms_of(spec: Spec) -> list[JsonObject]:
    found: list[JsonObject] = spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return found


#: By kind: at least one situation for each.
CASES: Mapping[Kind, list[Case]] = {
    "schedulerName": [
        Case(
            "schedulerName default-scheduler instead of other",
            [node("n1")],
            wide(schedulerName="other"),
            lambda spec: spec.update(schedulerName="default-scheduler"),
        )
    ],
    "schedulingGates": [
        Case(
            "remove gates example.com/one, example.com/two",
            [node("n1")],
            wide(schedulingGates=[{"name": "example.com/one"}, {"name": "example.com/two"}]),
            lambda spec: spec.pop("schedulingGates"),
            in_place=True,
        )
    ],
    "request": [
        Case(
            "request 4 cpu",
            [node("n1")],
            wide(containers=demanding("4")),
            smaller,
            owners=ALL_OWNERS,
        ),
        Case(
            "request 2 example.com/device",
            [
                node("n1")
                | {"status": {"allocatable": {"cpu": "4", "pods": "9", "example.com/device": "2"}}}
            ],
            wide(
                containers=[
                    container("main", resources={"limits": {"example.com/device": "3"}}),
                    container("side", resources={}),
                ]
            ),
            # Of devices, limits are requests: a template need not have both, a pod does.
            lambda spec: spec["containers"][0]["resources"].update(
                {each: {"example.com/device": "2"} for each in ("limits", "requests")}
            ),
        ),
    ],
    "tolerate": [
        Case(
            "tolerate taint gpu=yes:NoSchedule",
            [node("n1", taints=[TAINT])],
            wide(),
            lambda spec: spec["tolerations"].append(TOLERATION),
            in_place=True,
            owners=ALL_OWNERS,
        )
    ],
    "nodeSelector": [
        Case(
            "drop node selector disk=ssd",
            [node("n1")],
            wide(nodeSelector={"disk": "ssd", ZONE: "a"}),
            lambda spec: spec["nodeSelector"].pop("disk"),
        ),
        Case(
            "node selector disk=hdd instead of ssd",
            [node("n1")],
            wide(nodeSelector={"disk": "ssd", ZONE: "a"}),
            lambda spec: spec["nodeSelector"].update(disk="hdd"),
        ),
    ],
    "nodeAffinity": [
        Case(
            "drop node affinity disk In",
            [node("n1")],
            wide(affinity=node_terms(IN_A, ON_SSD)),
            lambda spec: terms_of(spec)[0]["matchExpressions"].pop(1),
        ),
        Case(
            "drop the required node affinity",
            [node("n1")],
            wide(affinity=node_terms(ON_SSD)),
            lambda spec: spec["affinity"]["nodeAffinity"].pop(REQUIRED),
        ),
    ],
    "spread": [
        Case(
            f"spread over {ZONE} with maxSkew 2",
            [node("n1"), in_zone(node("full", unschedulable=True), "b")],
            wide(topologySpreadConstraints=[SOFT, constraint()]),
            lambda spec: spec["topologySpreadConstraints"][1].update(maxSkew=2),
            others=[placed("one")],
        ),
        Case(
            f"drop the spread constraint over {ZONE}",
            [node("n1"), in_zone(node("full", unschedulable=True), "b")],
            wide(topologySpreadConstraints=[SOFT, constraint()]),
            lambda spec: spec["topologySpreadConstraints"].pop(1),
            others=[placed("one")],
        ),
    ],
    "pod affinity": [
        Case(
            f"drop the pod affinity term over {ZONE}",
            [node("n1")],
            wide(
                **affinity(
                    podAffinity={
                        REQUIRED: [NEAR_X, NEAR_NOTHING],
                        "preferredDuringSchedulingIgnoredDuringExecution": PREFERRED,
                    }
                )
            ),
            lambda spec: spec["affinity"]["podAffinity"][REQUIRED].pop(1),
            others=[placed("one")],
        )
    ],
    "pod anti-affinity": [
        Case(
            f"drop the pod anti-affinity term over {ZONE}",
            [node("n1")],
            wide(
                **affinity(
                    podAntiAffinity={
                        REQUIRED: [NEAR_X],
                        "preferredDuringSchedulingIgnoredDuringExecution": PREFERRED,
                    }
                )
            ),
            lambda spec: spec["affinity"]["podAntiAffinity"].pop(REQUIRED),
            others=[placed("one")],
        )
    ],
    "ports": [
        Case(
            "use no host ports",
            [node("n1")],
            wide(containers=with_ports(ports)),
            without_host_ports,
            others=[placed("one", containers=with_ports(ports))],
        )
        for ports in (PORTS, SAME_PORTS)
    ],
    "uncordon": [
        Case(
            "uncordon any of 2 nodes such as n1",
            [node("n1", unschedulable=True), node("n2", unschedulable=True)],
            wide(),
            expected_of_nodes=lambda spec: spec.pop("unschedulable"),
            owners=("Deployment",),
        )
    ],
    "bring back": [
        Case(
            "bring back node n1 (not-ready)",
            [
                node(
                    "n1",
                    taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}],
                )
            ],
            wide(),
            owners=("Deployment",),
        )
    ],
    "evict": [
        Case(
            "evict ",
            [node("n1")],
            wide(containers=demanding("2")),
            others=[placed("one", containers=demanding("1"))],
            gone=("one",),
            owners=("Deployment",),
        )
    ],
    "node": [
        Case(
            "one more node like n1",
            [node("n1")],
            wide(containers=demanding("2")),
            others=[placed("one"), placed("two")],
            owners=("Deployment",),
        )
    ],
    # What is missing is yours to write: no command changes anything.
    "create": [
        Case(
            "create PersistentVolumeClaim ",
            [node("n1")],
            wide(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]),
        )
    ],
    "several": [],
}


def tolerating(spec: Spec) -> None:
    spec.setdefault("tolerations", []).append(TOLERATION)


def both(*changes: Callable[[Spec], object]) -> Callable[[Spec], None]:
    def change(spec: Spec) -> None:
        for each in changes:
            each(spec)

    return change


#: The tolerations of a template that are, or look like, those that admission adds to a pod.
BY_ADMISSION: tuple[list[JsonObject], ...] = (wide()["tolerations"][:1], [])
LARGE = {"containers": demanding("4")}

#: By the plugin that is in the way, besides a request that is too large, or a taint.
SEVERAL: Mapping[str, list[Case]] = {
    "NodeResourcesFit": [
        Case(
            "tolerate taint gpu=yes:NoSchedule, and request 4 cpu",
            [node("n1", taints=[TAINT])],
            wide(**LARGE),
            both(smaller, tolerating),
        )
    ],
    "TaintToleration": [
        # What a template has may be what admission would add, or nothing.
        Case(
            "tolerate taint gpu=yes:NoSchedule, and request 4 cpu",
            [node("n1", taints=[TAINT])],
            {**wide(**LARGE), "tolerations": tolerations},
            both(smaller, tolerating),
        )
        for tolerations in BY_ADMISSION
    ],
    "NodeUnschedulable": [
        Case(
            "uncordon node n1, and request 4 cpu",
            [node("n1", unschedulable=True)],
            wide(**LARGE),
            smaller,
            owners=ALL_OWNERS,
            expected_of_nodes=lambda spec: spec.pop("unschedulable"),
        )
    ],
    "NodeAffinity": [
        Case(
            "drop node selector disk=ssd and drop the required node affinity, and request 4 cpu",
            [node("n1")],
            wide(**LARGE, nodeSelector={"disk": "ssd"}, affinity=node_terms(ON_SSD)),
            both(
                smaller,
                lambda spec: spec.pop("nodeSelector"),
                lambda spec: spec["affinity"]["nodeAffinity"].pop(REQUIRED),
            ),
        )
    ],
    "PodTopologySpread": [
        Case(
            "request 3 cpu instead of 5, and drop the spread constraints",
            [node("n1"), in_zone(node("full", unschedulable=True), "b")],
            wide(**LARGE, topologySpreadConstraints=[constraint(), SOFT]),
            both(
                lambda spec: requests_of(spec, 0).update(cpu="2400m"),
                lambda spec: requests_of(spec, 1).update(cpu="600m"),
                lambda spec: spec["topologySpreadConstraints"].pop(0),
            ),
            others=[placed("one")],
        )
    ],
    "InterPodAffinity": [
        Case(
            "request 3 cpu instead of 5, and drop the required pod anti-affinity",
            [node("n1")],
            wide(**LARGE, **affinity(podAntiAffinity={REQUIRED: [NEAR_X, NEAR_NOTHING]})),
            both(
                lambda spec: requests_of(spec, 0).update(cpu="2400m"),
                lambda spec: requests_of(spec, 1).update(cpu="600m"),
                lambda spec: spec["affinity"]["podAntiAffinity"].pop(REQUIRED),
            ),
            others=[placed("one")],
        )
    ],
    "NodePorts": [
        Case(
            "use no host ports, and ",
            [node("n1")],
            wide(
                containers=[
                    container("main", ports=PORTS, resources=demanding("4")[0]["resources"]),
                    container("side"),
                ]
            ),
            both(
                lambda spec: requests_of(spec, 0).update(cpu="2400m"),
                lambda spec: requests_of(spec, 1).update(cpu="600m"),
                without_host_ports,
            ),
            others=[placed("one", containers=[container("main", ports=PORTS)])],
        )
    ],
}

ALL = [
    pytest.param(kind, case, owner, id=f"{kind}: {case.title} ({number}), owned by {owner}")
    for kind, cases in {
        **CASES,
        "several": [each for some in SEVERAL.values() for each in some],
    }.items()
    for number, case in enumerate(cases)
    for owner in case.owners
]


#: Claims cannot be changed, so there is no command to run; tests/unit/explain/test_vectors.py
#: applies what is proposed.
OF_CLAIMS: set[Kind] = {"deviceCount", "deviceToleration", "deviceSelector", "deviceConstraint"}


#: Needs a feature gate, and has no command either; tests/unit/explain/test_prerequisites.py has it.
OF_GROUPS: set[Kind] = {"podGroup"}


def test_there_is_a_situation_for_every_kind_of_change() -> None:
    assert set(CASES) | OF_CLAIMS | OF_GROUPS == set(get_args(Kind))
    assert all(cases for kind, cases in CASES.items() if kind != "several")
    assert set(SEVERAL) == set(combining.PLUGINS)


@pytest.mark.parametrize(("kind", "case", "owner"), ALL)
@pytest.mark.usefixtures("clean_cluster")
def test_nothing_but_what_was_proposed_differs_afterwards(
    control_plane: ControlPlane,
    namespace: str,
    *,
    capsys: pytest.CaptureFixture[str],
    kind: Kind,
    case: Case,
    owner: str,
) -> None:
    cluster = _Situation(control_plane, namespace, case, owner)
    before = cluster.objects()
    said = _explained(control_plane, f"{namespace}/wanting", capsys)
    change = next(
        each
        for each in said["changes"]
        if each["kind"] == kind and each["title"].startswith(case.title)
    )

    for command in change.get("commands", []):
        _run(control_plane, command)

    after = cluster.objects()
    expected = cluster.expected(before, case)
    assert after == expected
    _check_patch(before["pods wanting"], change.get("patch", []), case)
    if case.expected or case.expected_of_nodes or case.gone:
        # The template of a Job never changes.
        made = owner != "Job" or case.in_place or bool(case.expected_of_nodes)
        assert bool(change.get("commands")) == made
        assert change.get("note") or not case.expected


def _check_patch(pod: JsonObject, patch: list[JsonObject], case: Case) -> None:
    """Whoever applies the patch to the pod, in a program, gets the same and nothing else."""
    expected = copy.deepcopy(pod)
    if case.expected:
        case.expected(expected["spec"])
    assert _tidy(jsonpatch.apply_patch(pod, patch)) == _tidy(expected)


def _explained(
    plane: ControlPlane, name: str, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    kubeconfig = f"--kubeconfig={plane.admin_kubeconfig}"
    assert main(["explain", "pod", name, "-o", "json", kubeconfig]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def _run(plane: ControlPlane, command: str) -> None:
    """Run a command as its reader would: in a shell, with kubectl on the path."""
    environ = {
        **os.environ,
        "PATH": f"{plane.assets}:{os.environ['PATH']}",
        "KUBECONFIG": str(plane.admin_kubeconfig),
        "HOME": str(plane.folder),
    }
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, env=environ, timeout=60
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"


class _Situation:
    """A case on the API server, in a namespace of its own."""

    def __init__(self, plane: ControlPlane, namespace: str, case: Case, owner: str) -> None:
        self._plane = plane
        self._namespace = namespace
        self._core = f"/api/v1/namespaces/{namespace}"
        self._apps = f"/apis/apps/v1/namespaces/{namespace}"
        self._batch = f"/apis/batch/v1/namespaces/{namespace}"
        #: which object is to change
        self.target = "pods wanting"
        self._path: tuple[str, ...] = ("spec",)
        for each in case.nodes:
            made = plane.request("POST", "/api/v1/nodes", each)
            plane.request(
                "PUT",
                f"/api/v1/nodes/{made['metadata']['name']}/status",
                made | {"status": each["status"]},
            )
        for each in case.others:
            plane.request("POST", f"{self._core}/pods", each)
        self._create(case, owner)

    def _create(self, case: Case, owner: str) -> None:
        labels = dict(case.labels)
        template = {"metadata": {"labels": labels}, "spec": copy.deepcopy(case.spec)}
        metadata: JsonObject = {"name": "wanting", "labels": labels}
        if owner != "nobody":
            if not case.in_place:
                self._path = ("spec", "template", "spec")
                self.target = f"{owner.lower()}s web"
            reference = self._owner(owner, template)
            metadata["ownerReferences"] = [{**reference, "controller": True}]
            if owner == "Deployment":
                metadata["labels"] = {**labels, "pod-template-hash": HASH}
        if owner == "Job" and not case.in_place:
            self.target = ""
        spec = copy.deepcopy(case.spec)
        self._plane.request("POST", f"{self._core}/pods", {"metadata": metadata, "spec": spec})

    def _owner(self, kind: str, template: JsonObject) -> JsonObject:
        labels = template["metadata"]["labels"]
        spec: JsonObject = {"selector": {"matchLabels": labels}, "template": template}
        if kind == "Job":
            template["spec"]["restartPolicy"] = "Never"
            made = self._plane.request(
                "POST",
                f"{self._batch}/jobs",
                {"metadata": {"name": "web"}, "spec": {"template": template}},
            )
            return _reference("batch/v1", kind, made)
        if kind == "StatefulSet":
            spec["serviceName"] = "web"
        plural = f"{self._apps}/{kind.lower()}s"
        made = self._plane.request("POST", plural, {"metadata": {"name": "web"}, "spec": spec})
        reference = _reference("apps/v1", kind, made)
        if kind != "Deployment":
            return reference
        # Its owner tells which Deployment it is of, and not its name.
        replica_set = copy.deepcopy({"metadata": {"name": f"front-{HASH}"}, "spec": spec})
        replica_set["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
        for each in (
            replica_set["spec"]["selector"]["matchLabels"],
            replica_set["spec"]["template"]["metadata"]["labels"],
        ):
            each["pod-template-hash"] = HASH
        made = self._plane.request("POST", f"{self._apps}/replicasets", replica_set)
        return _reference("apps/v1", "ReplicaSet", made)

    def objects(self) -> dict[str, JsonObject]:
        """All objects that a command could change, without what the server keeps account in."""
        found = {}
        for path in (
            "/api/v1/nodes",
            f"{self._core}/pods",
            f"{self._apps}/deployments",
            f"{self._apps}/replicasets",
            f"{self._apps}/statefulsets",
            f"{self._batch}/jobs",
        ):
            for each in self._plane.request("GET", path)["items"]:
                name = f"{path.rpartition('/')[2]} {each['metadata']['name']}"
                found[name] = _tidy(each)
        return found

    def expected(self, before: dict[str, JsonObject], case: Case) -> dict[str, JsonObject]:
        """What should be there when a change was made."""
        after = copy.deepcopy(before)
        for name in case.gone:
            del after[f"pods {name}"]
        if case.expected_of_nodes:
            case.expected_of_nodes(after["nodes n1"]["spec"])
        if case.expected and self.target:
            spec = after[self.target]
            for key in self._path:
                spec = spec[key]
            case.expected(spec)
        return {name: _tidy(each) for name, each in after.items()}


def _reference(api_version: str, kind: str, made: JsonObject) -> JsonObject:
    meta = made["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"]}


_BOOKKEEPING = ("resourceVersion", "managedFields", "generation", "uid", "creationTimestamp")


def _tidy(obj: JsonObject) -> JsonObject:
    """An object without bookkeeping, and without lists and maps that are empty."""
    kept = copy.deepcopy(obj)
    for each in _BOOKKEEPING:
        kept["metadata"].pop(each, None)
    kept.pop("status", None)
    tidied: JsonObject = _without_empty(kept)
    return tidied


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        inner = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in inner.items() if each not in ({}, [], None)}
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    return value
