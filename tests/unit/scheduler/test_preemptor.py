"""Preemptors: what evictions read of a pod, and of a group."""

from __future__ import annotations

from kubesched.scheduler.preemptor import Preemptor
from tests.support.group_objects import GroupLab, key, member, pod_group
from tests.support.queueing import info


def test_a_pod_preempts_on_a_node() -> None:
    pod = info("a", priority=7)
    preemptor = Preemptor.of_pod(pod, "n1")

    assert (preemptor.kind, preemptor.full_name) == ("pod", "default/a")
    assert (preemptor.priority, preemptor.target) == (7, "n1")
    assert preemptor.pods == (pod.uid,)
    assert preemptor.reference.kind == "Pod"


def test_a_group_preempts_anywhere_for_all_its_pods() -> None:
    lab = GroupLab(pod_group("g", priority=9))
    pods = lab.pending(member("a"), member("b"))
    preemptor = Preemptor.of_group(lab.info(key("g"), pods))

    assert (preemptor.kind, preemptor.full_name) == ("podgroup", "default/g")
    assert (preemptor.priority, preemptor.target) == (9, "cluster")
    assert preemptor.pods == tuple(each.uid for each in pods)
    assert (preemptor.reference.kind, preemptor.reference.uid) == ("PodGroup", "uid-g")
