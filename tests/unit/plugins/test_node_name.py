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


def test_other_nodes_are_not_looked_at_and_the_message_says_by_whom() -> None:
    lab = Lab(node("a", cpu="9"), node("b", cpu="1"), node("c", cpu="9"))
    assert lab.feasible(pod(node="b", cpu="1")) == ["b"]
    assert lab.message(pod(node="b", cpu="2")) == (
        "0/3 nodes are available: 1 Insufficient cpu, "
        "2 node(s) didn't satisfy plugin(s) [NodeName]."
    )
    assert lab.message(pod(node="gone")) == (
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeName]."
    )


def test_the_named_node_may_not_exist_yet() -> None:
    lab = Lab(node("a"))
    waiting = pod(node="later")
    assert lab.rejections("NodeName", waiting) == {"a": REJECTED}
    assert lab.feasible(waiting) == []
    lab.cluster.put_node(node("later"))
    assert lab.feasible(waiting) == ["later"]
