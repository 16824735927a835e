"""How many pods manifests ask for, and what these are like."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.meta import OwnerReference
from kubesched.errors import ObjectError, UsageError
from kubesched.simulate.wanted_pods import Replicas
from tests.support.objects import node, pod
from tests.support.worlds import snapshot_of

from .applied import wanted_of, workload


def owned(name: str, kind: str, owner: str, *, revision: str = "", **options: object) -> Pod:
    labels = {"app": "web", **({"pod-template-hash": revision} if revision else {})}
    made = pod(name, labels=labels, cpu="1", **options)  # type: ignore[arg-type]
    reference = OwnerReference(kind=kind, name=owner)
    return replace(made, metadata=replace(made.metadata, owner_references=(reference,)))


@pytest.mark.parametrize(
    ("kind", "spec", "pods"),
    [
        ("Deployment", "replicas: 3,", 3),
        ("Deployment", "", 1),
        ("Deployment", "replicas: 0,", 0),
        ("ReplicaSet", "replicas: 2,", 2),
        ("StatefulSet", "replicas: 4,", 4),
        ("Job", "", 1),
        ("Job", "parallelism: 5,", 5),
        ("Job", "parallelism: 5, completions: 3,", 3),
        ("Rollout", "replicas: 6,", 6),
    ],
)
def test_the_number_of_pods(kind: str, spec: str, pods: int) -> None:
    [found] = wanted_of(workload(kind, spec=spec))

    assert (found.asked, found.existing, len(found.pods)) == (pods, 0, pods)
    assert len({each.metadata.uid for each in found.pods}) == pods


def test_a_job_that_runs_some_at_a_time_says_so() -> None:
    [found] = wanted_of(workload("Job", spec="parallelism: 2, completions: 9,"))

    assert len(found.pods) == 2
    assert found.notes == ("job default/web runs 2 of its 9 pods at a time",)


def test_a_cron_job_asks_for_one_run() -> None:
    [found] = wanted_of("""\
{apiVersion: batch/v1, kind: CronJob, metadata: {name: n}, spec: {jobTemplate: {spec: {
  parallelism: 3, template: {spec: {containers: [{name: c}]}}}}}}
""")

    assert len(found.pods) == 3


def test_a_new_deployment_has_a_replica_set_of_its_own() -> None:
    snapshot = snapshot_of([node("n")])
    [found] = wanted_of(workload(), snapshot)

    [replica_set] = snapshot.objects["ReplicaSet"]
    [owner] = found.pods[0].metadata.owner_references
    [above] = replica_set.metadata.owner_references
    assert (owner.kind, owner.name) == ("ReplicaSet", replica_set.metadata.name)
    assert (above.kind, above.name, above.controller) == ("Deployment", "web", True)


def test_pods_pod_templates_and_documents_without_pods() -> None:
    found = wanted_of("""\
{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}}
---
{apiVersion: v1, kind: PodTemplate, metadata: {name: b},
 template: {spec: {containers: [{name: c}]}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
""")

    assert [(each.kind, [pod.metadata.name for pod in each.pods]) for each in found] == [
        ("Pod", ["a"]),
        ("PodTemplate", ["b-new-1"]),
    ]


# --- workloads that are there ---------------------------------------------------------------------


def test_a_deployment_asks_for_the_pods_that_it_lacks_in_its_newest_revision() -> None:
    there = [owned(f"web-{n}", "ReplicaSet", "web-7d9", revision="7d9", node="n") for n in "ab"]
    others = [
        owned("other", "ReplicaSet", "other-7d9", revision="7d9"),
        owned("web-x", "ReplicaSet", "web-7d9", revision="7d9", namespace="elsewhere"),
    ]

    [found] = wanted_of(workload(spec="replicas: 5,"), [node("n"), *there, *others])

    assert (found.asked, found.existing, len(found.pods)) == (5, 2, 3)
    assert {
        each.metadata.labels["pod-template-hash"] for each in found.pods if each.metadata.labels
    } == {"7d9"}
    assert {each.metadata.owner_references[0].name for each in found.pods} == {"web-7d9"}
    assert found.notes == ()


def test_pods_that_ended_are_not_there() -> None:
    ended = owned("web-a", "Job", "web")
    ended = replace(ended, status=replace(ended.status, phase="Succeeded"))

    [found] = wanted_of(workload("Job", spec="parallelism: 2,"), [ended])

    assert (found.existing, len(found.pods)) == (0, 2)


def test_no_pod_is_wanted_if_more_are_there() -> None:
    there = [owned(f"web-{n}", "ReplicaSet", "web") for n in range(3)]

    [found] = wanted_of(workload("ReplicaSet", spec="replicas: 2,"), there)

    assert (found.asked, found.existing, found.pods) == (2, 3, ())


def test_other_requests_mean_a_rollout_which_is_said() -> None:
    there = [owned("web-1", "ReplicaSet", "web-7d9", revision="7d9")]

    [found] = wanted_of(workload(spec="replicas: 2,", cpu="3"), there)

    assert "would replace them: not simulated" in found.notes[0]


def test_names_that_are_taken_are_left_out() -> None:
    [found] = wanted_of(workload(spec="replicas: 2,"), [pod("web-new-1")])

    assert [each.metadata.name for each in found.pods] == ["web-new-2", "web-new-3"]


# --- --replicas -----------------------------------------------------------------------------------


def test_replicas_in_total_or_beside_those_there() -> None:
    there = [owned(f"web-{n}", "ReplicaSet", "web-7d9", revision="7d9") for n in range(3)]
    text = workload(spec="replicas: 99,")

    [total] = wanted_of(text, there, replicas=Replicas(10))
    [more] = wanted_of(text, there, replicas=Replicas(10, more=True))

    assert (total.asked, len(total.pods)) == (10, 7)
    assert (more.asked, len(more.pods)) == (13, 10)


def test_replicas_of_a_pod_are_copies() -> None:
    text = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}}"

    [found] = wanted_of(text, [pod("a", node="n")], replicas=Replicas(3))

    assert (found.existing, [each.metadata.name for each in found.pods]) == (1, ["a-1", "a-2"])


def test_replicas_are_for_one_workload_and_for_no_daemons() -> None:
    with pytest.raises(UsageError, match="not for 2: deployment default/a, job default/b"):
        wanted_of(workload(name="a") + "---\n" + workload("Job", "b"), replicas=Replicas(1))
    with pytest.raises(UsageError, match="daemonset default/web has a pod on each node"):
        wanted_of(workload("DaemonSet"), replicas=Replicas(1))


# --- by node, by ordinal --------------------------------------------------------------------------


def test_a_daemon_set_asks_for_one_pod_on_each_node_that_takes_it() -> None:
    nodes = [
        node("plain", labels={"disk": "ssd"}),
        node("has-one", labels={"disk": "ssd"}),
        node("tainted", labels={"disk": "ssd"}, taints=["gpu=yes:NoSchedule"]),
        node("cordoned", labels={"disk": "ssd"}, unschedulable=True),
        node("other", labels={"disk": "hdd"}),
    ]
    there = owned("web-x", "DaemonSet", "web", node="has-one")

    [found] = wanted_of(workload("DaemonSet", pod="nodeSelector: {disk: ssd},"), [*nodes, there])

    assert (found.asked, found.existing) == (3, 1)
    assert [each.metadata.name for each in found.pods] == ["web-plain", "web-cordoned"]
    affinity = found.pods[0].spec.affinity
    assert affinity is not None
    assert "plain" in str(affinity.node_affinity)
    assert "node.kubernetes.io/unschedulable" in {
        each.key for each in found.pods[1].spec.tolerations
    }


def test_a_stateful_set_makes_claims_and_uses_those_that_are_there() -> None:
    templates = (
        "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}],"
    )
    text = workload("StatefulSet", spec=f"replicas: 3, {templates}")
    snapshot = snapshot_of([owned("web-0", "StatefulSet", "web")])
    [first] = wanted_of(text, snapshot)
    claims = [each.metadata.name for each in snapshot.objects["PersistentVolumeClaim"]]

    assert [each.metadata.name for each in first.pods] == ["web-1", "web-2"]
    assert claims == ["data-web-1", "data-web-2"]
    [volume] = first.pods[1].spec.volumes
    assert volume.persistent_volume_claim is not None
    assert volume.persistent_volume_claim.claim_name == "data-web-2"

    wanted_of(text, snapshot)
    assert len(snapshot.objects["PersistentVolumeClaim"]) == 2, "they are there now"


def test_ordinals_may_start_later_and_pods_may_come_at_once() -> None:
    in_turn, at_once = (
        wanted_of(workload("StatefulSet", spec=f"replicas: 2, {more}"))[0]
        for more in ("ordinals: {start: 5},", "podManagementPolicy: Parallel,")
    )

    assert [each.metadata.name for each in in_turn.pods] == ["web-5", "web-6"]
    assert (in_turn.in_turn, at_once.in_turn) == (True, False)


# --- what cannot be used --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (workload(spec="replicas: many,"), "file: Deployment web: spec.replicas is 'many', not a"),
        (workload(spec="replicas: -1,"), "file: Deployment web: spec.replicas is -1, not a"),
        (workload(pod="nodeSelektor: {},"), "nodeSelektor"),
        (workload(pod="priorityClassName: x,"), "there is no priority class x"),
    ],
)
def test_what_is_wrong_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ObjectError) as refused:
        wanted_of(text)

    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_class_of_the_same_file_gives_the_priority() -> None:
    text = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: x}, value: 7}"

    [found] = wanted_of(f"{text}\n---\n" + workload(pod="priorityClassName: x,"))

    assert found.pods[0].spec.priority == 7
