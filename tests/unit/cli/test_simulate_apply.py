"""``kubesched simulate apply``: the answer as text, for programs, and as an exit code."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from kubesched.cli.kubesched import main

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a, pool: blue}}
status: {capacity: {cpu: "2", memory: 16Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {topology.kubernetes.io/zone: b, pool: blue}}
status: {capacity: {cpu: "2", memory: 16Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: low, namespace: shop, labels: {app: low}}
spec: {nodeName: n2, priority: -1, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
"""
THERE = """\
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: shop
  labels: {app: web, pod-template-hash: x}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-x, uid: u, controller: true}]
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "web.yaml").write_text(WEB)
    return tmp_path


def run(folder: Path, *words: str, file: str = "web.yaml") -> int:
    source = file if file == "-" else str(folder / file)
    cluster = f"--manifests={folder / 'cluster.yaml'}"
    return main(["simulate", "apply", "-f", source, cluster, *words])


def test_yes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder) == 0

    assert (
        capsys.readouterr().out
        == """\
yes: all 3 pods fit
  deployment shop/web: 3 asked for

Where they go
pool  zone  pods  nodes  each  on
blue  a        2      1  2     n1
blue  b        1      1  1     n2
"""
    )


def test_no_and_the_price_and_the_reason(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--replicas=5") == 1

    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(
        "no: 4 of 5 pods fit, 1 pod preempted for that, 1 of which find no other node "
        "deployment shop/web: 5 asked for "
    )
    assert (
        "Preempted pods of priority from violates budget afterwards 1 shop/low -1 n2 - waiting"
        in said
    )
    assert "1 shop/web 0 0/2 nodes are available: 2 Insufficient cpu." in said


def test_every_pod_in_full(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, "--replicas=5", "-o", "wide")

    said = capsys.readouterr().out
    assert len([line for line in said.splitlines() if line.startswith("shop/web-new-")]) == 5
    [left] = [line for line in said.splitlines() if "Insufficient" in line]
    assert left.endswith("."), "no line is broken"
    assert all(line == line.rstrip() for line in said.splitlines())


def test_names_are_those_of_the_nodes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, "-o", "name")

    assert sorted(capsys.readouterr().out.split()) == ["node/n1", "node/n2"]


def test_standard_input_and_json(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(WEB))

    assert run(folder, "--replicas=+2", "-o", "json", file="-") == 0

    said = json.loads(capsys.readouterr().out)
    assert said["fits"] is True
    assert said["placements"].keys() == {"shop/web-new-1", "shop/web-new-2"}
    assert said["workloads"][0]["kind"] == "Deployment"


def test_what_there_is_already_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cluster.yaml").write_text(f"{CLUSTER}---\n{THERE}")

    assert run(folder) == 0
    said = capsys.readouterr().out
    assert said.startswith("yes: all 2 pods fit\n")
    assert "deployment shop/web: 2 more: 3 asked for, 1 are there" in said

    assert run(folder, "--replicas=1") == 0
    assert capsys.readouterr().out.startswith("yes: no more pods are asked for than there are\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}",
            "no pod in it, and nothing with",
        ),
        ("[1]", "not a Kubernetes object"),
        (WEB.replace("replicas: 3", "replicas: x"), "spec.replicas is 'x'"),
    ],
)
def test_no_answer(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    (folder / "bad.yaml").write_text(text)

    assert run(folder, file="bad.yaml") == 2

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("Error: ")
    assert said.err.count("\n") == 1
    assert complaint in said.err


def test_bad_words_have_the_same_code_and_the_right_help(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "--replicas=many") == 2
    assert "see 'kubesched simulate apply --help'" in capsys.readouterr().err
