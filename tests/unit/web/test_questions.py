"""Questions are read strictly, and answered as the command line answers them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.api.core import Pod
from kubesched.api.decoding import convert
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheduling import (
    GangPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PriorityClass,
)
from kubesched.config.features import FeatureGates
from kubesched.errors import KubeschedError, ObjectError, UsageError
from kubesched.explain.explaining import explain
from kubesched.simulate import displacing
from kubesched.simulate.applying import apply, conditions_of
from kubesched.simulate.comparing import add_nodes
from kubesched.simulate.headroom import headroom
from kubesched.simulate.wanted_pods import Replicas, wanted_pods
from kubesched.snapshot import manifests
from kubesched.snapshot.world import World
from kubesched.web import questions
from kubesched.web.questions import (
    AboutGates,
    AboutGroup,
    AboutPod,
    AboutWorkload,
    answered,
    read,
    shortened,
)
from tests.support.objects import node, pod
from tests.support.worlds import world_of


def small_world() -> World:
    return world_of(
        node("n1", cpu="4", zone="a"),
        node("n2", cpu="4", zone="b"),
        pod("placed", node="n1", cpu="3"),
        pod("waiting", cpu="5"),
    )


MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      priorityClassName: high
      containers: [{name: web, resources: {requests: {cpu: "2"}}}]
"""


CLASSES = [PriorityClass(metadata=ObjectMeta(name="high"), value=9)]


def ask(question: dict[str, object]) -> object:
    asked = read(msgspec.json.encode(question))
    return msgspec.json.decode(answered(small_world(), asked, CLASSES))


def plain(said: object) -> object:
    return msgspec.json.decode(msgspec.json.encode(said))


def test_what_if_is_answered_as_the_command_line_does() -> None:
    world = small_world()

    assert ask({"kind": "headroom", "namespace": "default", "name": "placed"}) == plain(
        headroom(world, world.placed["default", "placed"])
    )
    assert ask({"kind": "add", "count": 2, "like": "n2"}) == plain(add_nodes(world, 2, "n2"))
    assert ask({"kind": "drain", "nodes": ["n1"]}) == plain(displacing.drain(world, ["n1"]))
    assert ask({"kind": "loss", "node": "n1"}) == plain(displacing.lose(world, "n1", ["n1"]))
    assert ask({"kind": "loss", "zone": "a"}) == plain(displacing.lose(world, "a", ["n1"]))


def test_an_explanation_is_that_of_the_command_line() -> None:
    world = small_world()
    said = answered(world, AboutPod(namespace="default", name="waiting"), ())

    wanted = explain(world, world.pending["default", "waiting"])

    assert msgspec.json.decode(said) == plain(wanted)
    assert b'"changes"' in said


def test_a_workload_is_applied_as_by_the_command_line() -> None:
    said = ask({"kind": "apply", "manifest": MANIFEST, "replicas": 4})

    assert isinstance(said, dict)
    assert (said["fits"], said["pods"], said["placed"]) == (True, 4, 4)
    (victim,) = said["preempted"]
    assert (victim["pod"], victim["node"]) == ("default/placed", "n1")
    world = small_world()
    conditions = conditions_of(world, CLASSES)
    objects = manifests.objects_of(MANIFEST)
    wanted = wanted_pods(conditions.snapshot, objects, namespace="default", replicas=Replicas(4))
    assert said == plain(apply(conditions, wanted))


def test_a_pod_that_does_not_fit_is_explained() -> None:
    said = ask({"kind": "apply", "manifest": MANIFEST.replace('"2"', '"100"'), "replicas": 2})

    assert isinstance(said, dict)
    assert (said["fits"], said.get("placed", 0), len(said["left"])) == (False, 0, 2)
    assert said["explanation"]["pod"] == said["left"][0]["pod"]
    assert said["explanation"]["outcome"] == "Unschedulable"


def test_a_pod_is_explained_beside_those_that_have_found_a_node() -> None:
    said = ask({"kind": "apply", "manifest": MANIFEST, "replicas": 10})

    assert isinstance(said, dict)
    assert (said["placed"], len(said["left"])) == (4, 6)
    assert said["explanation"]["feasibleNodes"] == 0


def test_a_workload_has_as_many_pods_as_its_manifest_says() -> None:
    said = ask({"kind": "apply", "manifest": MANIFEST.replace("spec:", "spec:\n  replicas: 2", 1)})

    assert isinstance(said, dict)
    assert (said["pods"], said["placed"]) == (2, 2)


def test_a_daemon_set_has_a_pod_on_each_node() -> None:
    manifest = MANIFEST.replace("Deployment", "DaemonSet").replace('"2"', '"0.1"')
    said = ask({"kind": "apply", "manifest": manifest})

    assert isinstance(said, dict)
    nodes = len(small_world().table)
    assert (said["fits"], said["pods"], said["placed"]) == (True, nodes, nodes)


GANG = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: pair, namespace: shop}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: pair, namespace: shop}
spec:
  parallelism: 3
  completions: 3
  template:
    spec:
      schedulingGroup: {podGroupName: pair}
      restartPolicy: Never
      containers: [{name: main, image: train, resources: {requests: {cpu: CPU}}}]
"""


@pytest.mark.parametrize(("cpu", "fit"), [("1", 3), ("3", 0)])
def test_a_gang_fits_as_a_whole_or_not_at_all(cpu: str, fit: int) -> None:
    gates = FeatureGates.of({"GenericWorkload": True})
    world = world_of(node("n1", cpu="4"), node("n2", cpu="4"), gates=gates)
    question = AboutWorkload(manifest=GANG.replace("CPU", cpu))
    said = msgspec.json.decode(answered(world, question, ()))

    assert (said["pods"], said["placed"], said["fits"]) == (3, fit, fit == 3)
    if not fit:
        assert said["explanation"]["group"]["group"] == "shop/pair"


def gated_world() -> World:
    return world_of(node("n1", cpu="4"), pod("held", cpu="1", gates=["quota", "review"]))


def without_gates(*gates: str) -> dict[str, Any]:
    question = AboutGates(namespace="default", name="held", gates=gates)
    said: dict[str, Any] = msgspec.json.decode(answered(gated_world(), question, ()))
    return said


def test_a_gated_pod_is_tried_without_its_gates() -> None:
    every, one = without_gates(), without_gates("quota")

    assert (every["outcome"], every["bestNodes"]) == ("Schedulable", ["n1"])
    assert (one["outcome"], one["message"]) == ("Gated", "waiting for scheduling gates: [review]")


def test_gates_that_a_pod_does_not_have_cannot_be_removed() -> None:
    with pytest.raises(ObjectError, match="default/held has no gate other, but quota, review"):
        without_gates("quota", "other")
    question = AboutGates(namespace="default", name="waiting")
    with pytest.raises(ObjectError, match="default/waiting has no scheduling gates"):
        answered(small_world(), question, ())


@pytest.mark.parametrize(
    ("question", "wrong"),
    [
        (b"", "the question cannot be understood"),
        (b"[]", "Expected `object`"),
        (b'{"kind":"explanation","namespace":"a","name":"b"}', "Invalid value 'explanation'"),
        (b'{"kind":"add","count":0,"like":"n"}', "Expected `int` >= 1"),
        (b'{"kind":"add","count":1001,"like":"n"}', "Expected `int` <= 1000"),
        (b'{"kind":"add","count":1}', "missing required field `like`"),
        (b'{"kind":"apply","manifest":""}', "length >= 1"),
        (b'{"kind":"apply","manifest":"{}","replicas":10001}', "<= 10000"),
        (b'{"kind":"drain","nodes":[]}', "length >= 1"),
        (b'{"kind":"drain","nodes":["n"],"at":"x"}', "Expected `int | null`"),
        (b'{"kind":"drain","nodes":["n"],"force":true}', "unknown field `force`"),
        (b'{"kind":"loss"}', "either a zone or a node"),
        (b'{"kind":"loss","zone":"a","node":"n"}', "either a zone or a node"),
        (b'{"kind":"headroom","namespace":"","name":"x"}', "length >= 1"),
        (b"[" * 100_000, "the question cannot be understood"),
        (b'{"kind":"loss","zone":"\xff"}', "the question cannot be understood"),
    ],
)
def test_what_cannot_be_understood_is_said_so_in_one_line(question: bytes, wrong: str) -> None:
    with pytest.raises(UsageError) as told:
        read(question)

    assert wrong in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("question", "wrong"),
    [
        ({"kind": "headroom", "namespace": "default", "name": "plaecd"}, "there is default/placed"),
        ({"kind": "add", "count": 1, "like": "n9"}, "node n9 not found"),
        ({"kind": "drain", "nodes": ["n1", "n9"]}, "node n9 not found"),
        ({"kind": "loss", "zone": "c"}, "there is no zone c"),
        ({"kind": "apply", "manifest": "{"}, "the manifest: not YAML"),
        ({"kind": "apply", "manifest": "kind: Service"}, "no pod in it"),
        (
            {
                "kind": "apply",
                "manifest": MANIFEST.replace("Deployment", "DaemonSet"),
                "replicas": 2,
            },
            "daemonset shop/web has a pod on each node that takes one, and no number of replicas",
        ),
        (
            {
                "kind": "apply",
                "manifest": MANIFEST.replace("spec:", "spec:\n  replicas: 20000", 1),
            },
            "deployment shop/web asks for 20000 pods: 10000 can be tried",
        ),
        (
            {"kind": "apply", "manifest": "{kind: Pod, metadata: {name: x}, spec: {a: [}"},
            "not YAML",
        ),
        (
            {
                "kind": "apply",
                "manifest": "{kind: Pod, metadata: {name: x}, spec: {priorityClassName: low}}",
            },
            "there is no priority class low",
        ),
    ],
)
def test_what_cannot_be_answered_is_said_so(question: dict[str, object], wrong: str) -> None:
    with pytest.raises(KubeschedError, match=wrong):
        ask(question)


def test_of_many_nodes_those_that_come_closest_are_shown() -> None:
    world = world_of(
        *(node(f"far{number}", taints=["x:NoSchedule"], cpu="1") for number in range(4)),
        node("near", cpu="1"),
        pod("p", cpu="2"),
    )
    whole = explain(world, world.pending["default", "p"])

    short = shortened(whole, most=2)

    assert [each.node for each in short.nodes] == ["near", "far0"]
    assert short.nodes_left_off == 3
    assert short.message == whole.message
    assert shortened(whole).nodes_left_off == 0


def test_of_many_scores_the_best_are_shown() -> None:
    world = world_of(*(node(f"n{number}", cpu=str(number + 1)) for number in range(5)), pod("p"))
    whole = explain(world, world.pending["default", "p"])

    short = shortened(whole, most=2)

    assert short.scores == whole.scores[:2]
    assert short.scores_left_off == 3
    assert questions.MOST_NODES == 500


def test_a_group_is_explained_with_its_placements() -> None:
    gates = FeatureGates.of({"GenericWorkload": True})
    policy = PodGroupSchedulingPolicy(gang=GangPolicy(min_count=3))
    meta = ObjectMeta(name="g", namespace="default")
    group = PodGroup(metadata=meta, spec=PodGroupSpec(scheduling_policy=policy))
    members = [
        convert(
            {
                "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {
                    "schedulerName": "default-scheduler",
                    "schedulingGroup": {"podGroupName": "g"},
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
                },
            },
            Pod,
        )
        for name in ("a", "b", "c")
    ]
    world = world_of(node("n1", cpu="4"), group, *members, gates=gates)

    said = msgspec.json.decode(answered(world, AboutGroup(namespace="default", name="g"), ()))

    assert (said["outcome"], said["members"]) == ("Unschedulable", 3)
    assert said["placements"][0]["fits"] == 2
    with pytest.raises(ObjectError, match="there is no pod group default/h"):
        answered(world, AboutGroup(namespace="default", name="h"), ())


def test_a_page_gets_the_numbers_behind_reasons_those_of_the_closest_nodes() -> None:
    nodes = [node(f"n{number:02}", cpu=str(number + 1)) for number in range(30)]
    world = world_of(*nodes, pod("p", cpu="64"))
    whole = explain(world, world.pending["default", "p"])

    (reason,) = shortened(whole).reasons

    assert len(reason.details) == questions.MOST_DETAILS < 30
    assert reason.details[0].text == "64 requested, 30 of 30 free"
    assert reason.details[0].values["free"] == "30"
