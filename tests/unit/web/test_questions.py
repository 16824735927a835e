"""Questions are read strictly, and answered as the command line answers them."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.api.meta import ObjectMeta
from kubesched.api.scheduling import PriorityClass
from kubesched.errors import KubeschedError, UsageError
from kubesched.explain.explaining import explain
from kubesched.simulate import displacing
from kubesched.simulate.comparing import add_nodes
from kubesched.simulate.headroom import headroom
from kubesched.snapshot.world import World
from kubesched.web import questions
from kubesched.web.questions import AboutPod, answered, read, shortened
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


def ask(question: dict[str, object]) -> object:
    classes = [PriorityClass(metadata=ObjectMeta(name="high"), value=9)]
    asked = read(msgspec.json.encode(question))
    return msgspec.json.decode(answered(small_world(), asked, classes))


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


def test_a_manifest_is_explained_as_the_pod_that_it_would_make() -> None:
    said = ask({"kind": "manifest", "manifest": MANIFEST})

    assert isinstance(said, dict)
    assert said["pod"] == "shop/web"
    assert said["bestNodes"] == ["n2"]


@pytest.mark.parametrize(
    ("question", "wrong"),
    [
        (b"", "the question cannot be understood"),
        (b"[]", "Expected `object`"),
        (b'{"kind":"explanation","namespace":"a","name":"b"}', "Invalid value 'explanation'"),
        (b'{"kind":"add","count":0,"like":"n"}', "Expected `int` >= 1"),
        (b'{"kind":"add","count":1001,"like":"n"}', "Expected `int` <= 1000"),
        (b'{"kind":"add","count":1}', "missing required field `like`"),
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
        ({"kind": "manifest", "manifest": "{"}, "the manifest: not YAML"),
        ({"kind": "manifest", "manifest": "kind: Service"}, "no pod in it"),
        (
            {"kind": "manifest", "manifest": "{kind: Pod, metadata: {name: x}, spec: {a: [}"},
            "not YAML",
        ),
        (
            {
                "kind": "manifest",
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
