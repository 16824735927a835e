"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

from kubesched.framework.status import unresolvable
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

REJECTED = unresolvable("node(s) didn't match the requested node name")


def test_a_pod_that_names_no_node_may_go_anywhere() -> None:
    assert Lab(node("a"), node("b")).rejections("NodeName", pod()) == {}


def test_a_pod_that_names_a_node_may_go_only_there() -> None:
    lab = Lab(node("a"), node("b"), node("c"))
    assert lab.rejections("NodeName", pod(node="b")) == {"a": REJECTED, "c": REJECTED}


def test_the_named_node_may_not_exist_yet() -> None:
    lab = Lab(node("a"))
    waiting = pod(node="later")
    assert lab.rejections("NodeName", waiting) == {"a": REJECTED}
    assert lab.feasible(waiting) == []
    lab.cluster.put_node(node("later"))
    assert lab.feasible(waiting) == ["later"]
