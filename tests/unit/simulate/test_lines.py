"""Pods that are alike wait in line."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod, Volume
from kubesched.cluster.cluster import Cluster
from kubesched.simulate.lines import WaitingLines
from tests.support.objects import node, pod


class Queue:
    """Remembers what lines do to it."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.put_node(node("n1"))
        self.withdrawn: list[str] = []
        self.admitted: list[str] = []
        self.lines = WaitingLines(self.cluster, withdraw=self.withdrawn.append, admit=self._admit)

    def _admit(self, admitted: Pod) -> None:
        self.admitted.append(admitted.metadata.uid)


def test_the_first_of_a_kind_stays_and_the_others_follow_it_one_by_one() -> None:
    queue = Queue()
    for name in ("a", "b", "c"):
        queue.lines.refused(pod(name, cpu="1"))
    assert (queue.withdrawn, queue.admitted) == (["b", "c"], [])

    queue.lines.moved_on("a")
    assert queue.admitted == ["b"]

    queue.lines.refused(pod("b", cpu="1"))
    assert queue.withdrawn == ["b", "c"], "it is the first now, and stays"

    queue.lines.moved_on("b")
    queue.lines.moved_on("c")
    assert queue.admitted == ["b", "c"]
    queue.lines.refused(pod("d", cpu="1"))
    assert queue.withdrawn == ["b", "c"]


def test_pods_that_differ_in_what_matters_do_not_wait_for_each_other() -> None:
    queue = Queue()
    first = pod("first", cpu="1")
    annotated = pod("annotated", cpu="1")
    meta = replace(annotated.metadata, annotations={"some-plugin": "reads this"})
    never = pod("never", cpu="1")
    for each in (
        first,
        pod("larger", cpu="2"),
        pod("labelled", cpu="1", labels={"app": "x"}),
        pod("elsewhere", namespace="other", cpu="1"),
        pod("important", cpu="1", priority=5),
        replace(annotated, metadata=meta),
        replace(never, spec=replace(never.spec, preemption_policy="Never")),
        pod("selective", cpu="1", node_selector={"a": "b"}),
    ):
        queue.lines.refused(each)

    assert queue.withdrawn == []


def test_pods_with_volumes_have_something_of_their_own() -> None:
    queue = Queue()
    for name in ("a", "b"):
        one = pod(name, cpu="1")
        queue.lines.refused(replace(one, spec=replace(one.spec, volumes=(Volume(name="v"),))))

    assert queue.withdrawn == []


def test_a_pod_that_is_promised_a_node_is_nobodys_first() -> None:
    queue = Queue()
    promised = pod("promised", cpu="1")
    queue.cluster.nominator.nominate(queue.cluster.compiler.pending(promised), "n1")

    queue.lines.refused(promised)
    queue.lines.refused(pod("next", cpu="1"))

    assert queue.withdrawn == []


def test_a_pod_in_line_that_moves_on_is_not_admitted_later() -> None:
    queue = Queue()
    for name in ("a", "b", "c"):
        queue.lines.refused(pod(name, cpu="1"))

    queue.lines.moved_on("b")
    queue.lines.moved_on("a")

    assert queue.admitted == ["c"]
