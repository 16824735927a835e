"""Random small clusters, and a pod that is hard to place in them."""

from __future__ import annotations

from hypothesis import strategies as st

from kubesched.api.core import Node, Pod, Toleration
from tests.support.objects import (
    must,
    node,
    pod,
    pod_term,
    requirement,
    requires,
    spread_over,
    taint,
    term,
)

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
TAINTS = ("gpu=yes:NoSchedule", "team:NoExecute", "node.kubernetes.io/not-ready:NoSchedule")


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """A node with a few labels, perhaps tainted or cordoned."""
    return node(
        name,
        cpu=str(draw(st.integers(1, 6))),
        memory=f"{draw(st.integers(1, 8))}Gi",
        pods=draw(st.sampled_from([2, 110])),
        labels={
            HOST: name,
            ZONE: draw(st.sampled_from("ab")),
            "disk": draw(st.sampled_from(["ssd", "hdd"])),
        },
        taints=[
            taint(each) for each in draw(st.lists(st.sampled_from(TAINTS), unique=True, max_size=2))
        ]
        if draw(st.booleans())
        else (),
        unschedulable=draw(st.integers(0, 5)) == 0,
    )


@st.composite
def wanting_pods(draw: st.DrawFn) -> Pod:
    """A pod with many wishes."""
    maybe = st.integers(0, 2).map(lambda number: number == 0)
    return pod(
        "wanting",
        cpu=str(draw(st.integers(1, 8))),
        memory=f"{draw(st.integers(1, 9))}Gi",
        labels={"app": draw(st.sampled_from("xy"))},
        priority=draw(st.integers(0, 3)),
        node_selector={"disk": draw(st.sampled_from(["ssd", "nvme"]))} if draw(maybe) else None,
        node_affinity=requires(term(requirement(ZONE, "In", draw(st.sampled_from("abc")))))
        if draw(maybe)
        else None,
        away_from=must(pod_term(draw(st.sampled_from([ZONE, HOST])), app="x"))
        if draw(maybe)
        else None,
        near=must(pod_term(ZONE, app="y")) if draw(maybe) else None,
        spread=[spread_over(ZONE, app="x")] if draw(maybe) else (),
        ports=[80] if draw(maybe) else (),
        tolerations=[Toleration(key="gpu", operator="Exists")] if draw(maybe) else (),
    )


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node | Pod], Pod]:
    """Nodes, pods on them, and a pod that wants a node."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 5)))]
    found: list[Node | Pod] = [draw(nodes(name)) for name in names]
    count = draw(st.integers(0, 8))
    found.extend(
        pod(
            f"p{number}",
            node=draw(st.sampled_from(names)),
            cpu=str(draw(st.integers(1, 3))),
            memory=f"{draw(st.integers(1, 3))}Gi",
            labels={"app": draw(st.sampled_from("xy"))},
            priority=draw(st.integers(0, 3)),
            ports=[80] if draw(st.integers(0, 3)) == 0 else (),
            away_from=must(pod_term(HOST, app=draw(st.sampled_from("xyz"))))
            if draw(st.integers(0, 3)) == 0
            else None,
        )
        for number in range(count)
    )
    return found, draw(wanting_pods())
