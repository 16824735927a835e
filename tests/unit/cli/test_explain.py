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


OWNED = """\
apiVersion: v1
kind: Pod
metadata:
  name: api-1
  namespace: shop
  labels: {pod-template-hash: 5d4f}
  ownerReferences: [{kind: ReplicaSet, name: api-5d4f, uid: r, controller: true}]
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 6}}}]}
"""


def test_without_arguments_all_waiting_pods_are_told_by_cause(
    manifests: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "more.yaml").write_text(OWNED)
    both = [manifests, f"--manifests={tmp_path / 'more.yaml'}"]

    assert main(["explain", *both]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "2 of 3 pods wait for a node; there are 2 nodes",
        "",
        "pods  cause",
        "   2  Insufficient cpu, node(s) had untolerated taint(s)",
        "        Pod shop/web, Deployment shop/api (1 pod)",
        "        for example shop/web",
        "          node(s) had untolerated taint(s): taint gpu:NoSchedule: n2",
        "          Insufficient cpu: 6 requested, 3 of 4 free: n1",
        "",
        "kubesched explain pod shop/web says what would help",
    ]
    assert main(["explain", "-n", "other", *both]) == 0
    out = capsys.readouterr().out
    assert out == "No pod of namespace other waits for a node; 0 pods have one.\n"
    assert main(["explain", *both, "-o", "json"]) == 0
    assert [each["pods"] for each in json.loads(capsys.readouterr().out)["causes"]] == [2]


def test_a_workload_is_told_by_cause_and_node(
    manifests: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    placed = OWNED.replace("api-1", "api-2").replace("{containers", "{nodeName: n1, containers")
    (tmp_path / "more.yaml").write_text(f"{OWNED}---\n{placed}")
    both = [manifests, f"--manifests={tmp_path / 'more.yaml'}"]

    assert main(["explain", "deploy/api", "-n", "shop", *both]) == 0

    said = capsys.readouterr().out
    assert said.startswith("deployment shop/api: 1 of 2 pods waits for a node\n")
    assert "1 pod on nodes\npods  node\n   1  n1\n" in said
    assert main(["explain", "rs/shop/api-5d4f", *both, "-o", "json"]) == 0
    said_to_programs = json.loads(capsys.readouterr().out)
    assert (said_to_programs["kind"], said_to_programs["waiting"]) == ("ReplicaSet", 1)


def test_one_node_is_told_with_numbers_or_points(
    manifests: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "pod", "shop/web", "--node", "n1", manifests]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "shop/web on n1: Rejected (profile default-scheduler)",
        "n1 rejects it for 1 reason",
        "",
        "Why it is rejected",
        "NodeResourcesFit: Insufficient cpu",
        "  6 requested, 3 of 4 free",
    ]

    assert main(["explain", "pod", "shop/db", "--node", "n1", manifests, "-o", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["outcome"], said["text"]) == ("Best", "n1 is the only node that it fits on")


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        ([], ["pod/web"]),
        (["pod", "shop/web"], []),
        (["pod", "shop/db"], ["node/n1"]),
        (["pod", "shop/db", "--node=n1"], ["node/n1"]),
        (["pod", "shop/db", "--node=n2"], []),
    ],
)
def test_names_alone_are_what_waits_or_where_a_pod_fits(
    asked: list[str], want: list[str], manifests: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *asked, manifests, "-o", "name"]) == 0
    assert capsys.readouterr().out.splitlines() == want


def test_a_wide_table_has_each_pod_and_each_node_in_one_line(
    manifests: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", manifests, "-o", "wide"]) == 0
    said = capsys.readouterr().out
    assert "\nshop/web  Unschedulable  Insufficient cpu, node(s) had untolerated taint(s)\n" in said

    assert main(["explain", "pod", "shop/web", manifests, "-o", "wide", "--top=1"]) == 0
    said = capsys.readouterr().out
    assert "\nn1    Insufficient cpu (6 requested, 3 of 4 free)\n" in said
    assert "\nn2    node(s) had untolerated taint(s) (taint gpu:NoSchedule)\n" in said
    assert "\n1  Can be changed in the pod as it is.\n   kubectl -n shop patch pod web " in said


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
        (["drain", "n1"], "n1 drained: 1 pod to move, 0 placed elsewhere, 1 left without a node"),
        (["loss", "--each", "zone"], "1 of 2 can be lost without a pod left behind"),
        (["config", "--to", str(config), "--all"], "of 2 pods, 0 are placed otherwise"),
    ):
        assert main(["simulate", *arguments, manifests]) == 0
        assert expected in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
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
