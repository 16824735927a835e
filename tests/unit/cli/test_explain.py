"""``kubesched explain``, ``snapshot`` and ``simulate`` as one types them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import yaml

from kubesched.cli.kubesched import main

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}}
spec: {taints: [{key: gpu, effect: NoSchedule}]}
status: {capacity: {cpu: 16, memory: 64Gi, pods: 110}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 6}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: shop}
spec: {nodeName: n1, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}
"""


@pytest.fixture
def manifests(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)
    return f"--manifests={path}"


def test_a_table_says_what_why_and_what_would_help(
    manifests: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "pod", "shop/web", manifests, "--all"]) == 0

    said = capsys.readouterr().out
    headline, message = said.splitlines()[:2]
    assert headline.startswith("shop/web: Unschedulable; fits on 0 of 2 nodes")
    assert message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untol")
    assert "tolerate taint gpu:NoSchedule" in said
    assert "request 3 cpu instead of 6" in said


def test_a_scheduler_that_is_not_there_is_said_first(
    manifests: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(
        "{kind: Pod, metadata: {name: new}, spec: {schedulerName: other, containers: [{name: c}]}}"
    )

    assert main(["explain", "-f", str(path), manifests]) == 0

    headline, message = capsys.readouterr().out.splitlines()[:2]
    assert headline == (
        "default/new: Unclaimed; would fit on 1 of 2 nodes (profile default-scheduler)"
    )
    assert message.startswith("no profile is named other, as the pod's schedulerName says")


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_programs_get_the_same(
    manifests: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "shop/web", manifests, "-o", output]) == 0

    text = capsys.readouterr().out
    said = json.loads(text) if output == "json" else yaml.safe_load(text)
    assert [each["node"] for each in said["nodes"]] == ["n1", "n2"]
    assert said["reasons"][0]["nodes"] == 1


def test_a_pod_that_is_not_there_yet_is_explained(
    manifests: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("{kind: Pod, metadata: {name: new}, spec: {containers: [{name: c}]}}")

    assert main(["explain", "-f", str(path), "-n", "shop", manifests, "-o", "json"]) == 0

    said = json.loads(capsys.readouterr().out)
    assert (said["pod"], said["outcome"], said["bestNodes"]) == ("shop/new", "Schedulable", ["n1"])


def test_a_snapshot_of_manifests_says_the_same_as_they_do(
    manifests: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "cluster.gz")
    assert main(["snapshot", manifests, "-o", file]) == 0
    assert capsys.readouterr().out == f"{file}: 2 Node, 2 Pod\n"

    said = []
    for source in (manifests, f"--snapshot={file}"):
        assert main(["explain", "shop/web", source, "-o", "json"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_a_snapshot_leaves_a_link_a_link(manifests: str, tmp_path: Path) -> None:
    link, target = tmp_path / "latest.gz", tmp_path / "today.gz"
    link.symlink_to(target)

    assert main(["snapshot", manifests, "-o", str(link)]) == 0

    assert link.readlink() == target
    assert gzip.decompress(target.read_bytes()).startswith(b'{"apiVersion":"kubesched/v1"')


def test_a_snapshot_may_go_to_standard_output(
    manifests: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["snapshot", manifests, "-o", "-"]) == 0

    captured = capsysbinary.readouterr()
    assert gzip.decompress(captured.out).count(b"\n") == 5
    assert captured.err == b"snapshot: 2 Node, 2 Pod\n"


def test_simulations_answer_in_json(manifests: str, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> dict[str, object]:
        assert main(["simulate", *arguments, manifests, "-o", "json"]) == 0
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    assert said("headroom", "shop/db")["byNode"] == {"n1": 3}
    assert said("add", "1", "--like", "n2")["placedAfter"] == 0
    assert said("drain", "n1")["displaced"] == 1
    assert said("loss", "--zone", "a")["name"] == "a"
    assert len(said("loss", "--each", "node")["domains"]) == 2  # type: ignore[arg-type]  # a list


def test_simulations_answer_in_tables(
    manifests: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    )
    for arguments, expected in (
        (["headroom", "shop/db"], "shop/db: 3 more fit, on 1 nodes"),
        (["add", "1", "--like", "n2"], "1 more nodes like n2: of 1 pending pods, 0 find a node"),
        (["drain", "n1"], "n1 drained: 1 pods must move; 0 find another node, 1 are left"),
        (["loss", "--each", "zone"], "1 of 2 can be lost without a pod left behind"),
        (["config", "--to", str(config), "--all"], "of 2 pods, 0 are placed otherwise"),
    ):
        assert main(["simulate", *arguments, manifests]) == 0
        assert expected in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain"], "name one pod, as in 'kubesched explain pod NAMESPACE/NAME', or a --file"),
        (["explain", "a/b", "-f", "x"], "a name and --file exclude each other: name one pod"),
        (["explain", "shop/wab"], "pod shop/wab not found; there is shop/web"),
        (["explain", "shop/web", "--snapshot=x"], "--snapshot and --manifests exclude each other"),
        (["explain", "-f", "nothing"], "cannot read nothing: No such file or directory"),
        (["explain", "shop/web", "--config=nothing"], "open nothing: no such file or directory"),
        (["explain", "shop/web", "--feature-gates=No=true"], "No"),
        (
            ["explain", "shop/web", "--profile=x"],
            "the configuration has no profile x, only default",
        ),
        (["simulate", "headroom"], "name one pod, as in 'kubesched simulate headroom"),
        (["simulate", "loss", "--zone=z"], "there is no zone z, or more than one: a, b"),
        (["simulate", "drain", "n9"], "node n9 not found"),
        (["simulate", "add", "0", "--like=n1"], "0 is too small"),
    ],
)
def test_mistakes_are_one_clear_line(
    manifests: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, manifests]) == 1

    error = capsys.readouterr().err
    assert error.startswith("Error: ")
    assert message in error
    assert error.count("\n") == 1
