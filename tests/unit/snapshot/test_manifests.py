"""Manifests become what the API server would make of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kubesched.api.scheduling import PriorityClass
from kubesched.errors import ObjectError
from kubesched.snapshot import manifests
from kubesched.snapshot.contents import Snapshot

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1, creationTimestamp: 2026-01-01T00:00:00Z, labels: null}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  tolerations: null
  containers:
  - {name: c, image: i, resources: {limits: {memory: 1Gi}}}
"""


def _read(tmp_path: Path, *texts: str) -> Snapshot:
    path = tmp_path / "objects.yaml"
    path.write_text("---\n".join(texts))
    return manifests.read([path])


def test_objects_get_the_defaults_of_the_api_server(tmp_path: Path) -> None:
    found = _read(tmp_path, NODE, POD)

    [node], [pod] = found.nodes, found.pods
    assert node.status.allocatable == {"cpu": 4, "memory": "8Gi", "pods": 110}
    assert node.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    assert (pod.metadata.namespace, pod.metadata.uid) == ("default", "default/p")
    assert pod.spec.scheduler_name == "default-scheduler"
    resources = pod.spec.containers[0].resources
    assert resources is not None
    assert resources.requests == {"memory": "1Gi"}


def test_pods_get_claims_of_templates_as_no_controller_makes_them(tmp_path: Path) -> None:
    template = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: gpus}\n"
        "spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}\n"
    )
    claims = "  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]\n"

    found = _read(tmp_path, template, POD + claims)

    [claim] = found.objects["ResourceClaim"]
    assert claim.metadata.name == "p-gpu"
    assert found.pods[0].status.resource_claim_statuses[0].resource_claim_name == "p-gpu"
    assert not found.notes


def test_folders_are_read_and_lists_unpacked(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "nodes.json").write_text(
        '{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n2"}}]}'
    )
    (tmp_path / "list.yml").write_text(
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n3}}\n"
    )
    (tmp_path / "README.md").write_text("not: [a manifest")

    found = manifests.read([tmp_path])

    assert sorted(each.metadata.name for each in found.nodes) == ["n2", "n3"]


def test_json_is_read_as_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"kind": "List", "items": [yaml.safe_load(NODE)]}, default=str))
    [node] = manifests.read([path]).nodes
    assert node.metadata.name == "n1"


def test_what_decides_nothing_is_left_out_with_a_note(tmp_path: Path) -> None:
    found = _read(tmp_path, NODE, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n")

    assert found.notes == ["objects that do not decide where pods go, left out: 1 Deployment"]


def test_pods_get_the_priority_of_their_class_wherever_it_stands(tmp_path: Path) -> None:
    important = POD.replace("spec:", "spec:\n  priorityClassName: high")
    high = (
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 9\n"
    )
    critical = POD.replace("spec:", "spec:\n  priorityClassName: system-node-critical")

    found = _read(tmp_path, important, critical, high)

    assert [each.spec.priority for each in found.pods] == [9, 2_000_001_000]
    with pytest.raises(ObjectError, match="Pod p: there is no priority class high"):
        _read(tmp_path, important)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not YAML: "),
        ("kind: Pod\nspec: " + "[" * 100_000, "not YAML: line 2: nested more than 100 levels deep"),
        ('{"kind":' * 100_000, "not YAML: line 1: nested more than 100 levels deep"),
        ('{"kind":"Pod","a":' + "[" * 200 + "]" * 200 + "}", "nested more than 100 levels deep"),
        ("kind: Pod\nspec: &a {b: *a}", "not YAML: nested more than 100 levels deep"),
        ("kind: !!int Pod", "not YAML: a value that is not what its tag says: "),
        ("just text", "not a Kubernetes object: it has no kind"),
        ("apiVersion: v1\nkind: Node\n", "Node : it has no name"),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: n, labels: 5}\n",
            "Node n: metadata.labels: must be a map, not a value",
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: 5\n", "Pod p: "),
    ],
)
def test_mistakes_are_one_line_that_names_the_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ObjectError, match=message) as refused:
        _read(tmp_path, text)
    assert str(refused.value).startswith(str(tmp_path / "objects.yaml"))
    assert "\n" not in str(refused.value)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ObjectError, match="no manifests"):
        manifests.read([tmp_path])


# --- a pod that is not there yet --------------------------------------------------------------


def test_the_pod_of_a_deployment_or_cron_job_is_its_template(tmp_path: Path) -> None:
    template = "{metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}"
    job = f"{{spec: {{template: {template}}}}}"
    path = tmp_path / "d.yaml"
    head = "metadata: {name: web, namespace: shop}\n"
    for text in (
        f"apiVersion: apps/v1\nkind: Deployment\n{head}spec: {{template: {template}}}\n",
        f"apiVersion: batch/v1\nkind: CronJob\n{head}spec: {{jobTemplate: {job}}}\n",
    ):
        path.write_text(text)
        pod = manifests.read_pod(path, [], namespace="default")
        assert (pod.metadata.namespace, pod.metadata.name) == ("shop", "web")
        assert pod.metadata.labels == {"app": "x"}


def test_a_pod_without_a_namespace_gets_the_given_one_and_the_default_class(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(POD)

    pod = manifests.read_pod(path, [PriorityClass(value=3, global_default=True)], namespace="shop")

    assert (pod.metadata.namespace, pod.spec.priority) == ("shop", 3)


def test_a_file_without_a_pod_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "n.yaml"
    path.write_text(NODE)

    with pytest.raises(ObjectError, match="no pod in it, and nothing with a pod template"):
        manifests.read_pod(path, [], namespace="default")


# --- pods that are not there yet --------------------------------------------------------------

A_POD = "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {spec}}}"
DEPLOYMENT = (
    "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: p}}, "
    "spec: {{template: {{spec: {spec}}}}}}}"
)
ROLLOUT = DEPLOYMENT.replace("apps/v1", "example.com/v1").replace("Deployment", "Rollout")
REQUESTING = "{{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}"


@pytest.mark.parametrize(
    ("manifest", "spec", "message"),
    [
        (A_POD, "{contaners: []}", "Pod p: unknown field spec.contaners, did you mean containers?"),
        (A_POD, "{containers: [{zzz: 1}]}", "Pod p: unknown field spec.containers[0].zzz"),
        (A_POD, "{a: 1, b: 2}", "Pod p: unknown field spec.a (and 1 more like this)"),
        (
            DEPLOYMENT,
            "{containers: [{imgae: x}]}",
            (
                "Deployment p: unknown field spec.template.spec.containers[0].imgae, "
                "did you mean image?"
            ),
        ),
        (ROLLOUT, "{node: x}", "Rollout p: unknown field spec.template.spec.node"),
        (
            A_POD,
            REQUESTING.format(cpu="-1"),
            (
                'Pod p: spec.containers[0].resources.requests[cpu]: Invalid value: "-1": '
                "must be greater than or equal to 0"
            ),
        ),
        (
            A_POD,
            REQUESTING.format(cpu="lots"),
            "Pod p: spec.containers[0].resources.requests[cpu]: 'lots' is not a quantity",
        ),
        (A_POD, REQUESTING.format(cpu="[1]"), "requests[cpu]: must be a quantity such as 500m"),
        (A_POD, "{containers: {name: c}}", "Pod p: spec.containers: must be a list, not a map"),
    ],
)
def test_what_the_api_server_would_refuse_is_refused_with_its_place(
    tmp_path: Path, manifest: str, spec: str, message: str
) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("kind: ConfigMap\n---\n" + manifest.format(spec=spec))

    with pytest.raises(ObjectError) as refused:
        manifests.read_pod(path, [], namespace="default")

    assert str(refused.value).startswith(f"{path}, document 2: ")
    assert message in str(refused.value)


def test_fields_that_scheduling_does_not_read_are_no_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p, labels: {any/key: x}, annotations: {other.key: y}, finalizers: [z/z]}
        spec:
          nodeSelector: {any.key: x}
          dnsConfig: {options: [{name: ndots, value: "2"}]}
          securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
          volumes: [{name: v, projected: {sources: [{configMap: {name: c, optional: true}}]}}]
          containers:
          - name: c
            env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}]
            lifecycle: {preStop: {exec: {command: [sleep, "1"]}}}
            startupProbe: {httpGet: {path: /, port: http}, periodSeconds: 3}
        status: {phase: Pending}
        """
    )

    assert manifests.read_pod(path, [], namespace="default").metadata.name == "p"


def test_unknown_fields_of_a_cluster_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "node.yaml"
    path.write_text("{apiVersion: v1, kind: Node, metadata: {name: n}, spec: {taint: []}}")

    assert manifests.read([path]).notes == [
        f"{path}: Node n: unknown field spec.taint, did you mean taints?"
    ]


def test_what_an_api_server_has_taken_is_not_checked_again(tmp_path: Path) -> None:
    path = tmp_path / "node.yaml"
    path.write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: n, resourceVersion: '7'}, spec: {newer: 1}}"
    )

    assert manifests.read([path]).notes == []
