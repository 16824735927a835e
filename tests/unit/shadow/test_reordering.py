"""A difference that another order of a burst's bindings explains is marked as such."""

from __future__ import annotations

from kubesched.shadow.report import Agreement
from tests.support.objects import node, pod

from .lab import ShadowLab

BIG, SMALL = node("big", cpu="10"), node("small", cpu="8")


def burst() -> ShadowLab:
    """Two nodes, of which the big one is better until it has a pod of three CPUs."""
    lab = ShadowLab(BIG, SMALL)
    lab.there(pod("first", cpu="3", memory="1Mi"), pod("second", cpu="3", memory="1Mi"))
    return lab


def requested(lab: ShadowLab) -> dict[str, int]:
    """What is taken of each node, in thousandths of a CPU."""
    table = lab.watched.cluster.table
    return {
        table.name_at(row): sum(each.requests.amounts["cpu"] for each in table.pods[row].values())
        for row in range(table.size)
    }


def test_the_second_was_decided_before_the_first() -> None:
    """Seen: first to big, second to big. Decided: second to big before first was there."""
    lab = burst()
    lab.bind(pod("first", cpu="3", memory="1Mi"), "big")
    before = requested(lab)
    lab.bind(pod("second", cpu="3", memory="1Mi"), "big")

    assert [each.verdict for each in lab.findings] == [Agreement.SAME, Agreement.LOWER_SCORE]
    assert [each.by_order for each in lab.findings] == [False, True]
    assert before == {"big": 3000, "small": 0}
    assert requested(lab) == {"big": 6000, "small": 0}
    lab.watched.cluster.validate()


def test_the_first_was_decided_after_the_second() -> None:
    """Seen: first to small, second to big. Decided: second to big, then first to small."""
    lab = burst()
    lab.bind(pod("first", cpu="3", memory="1Mi"), "small")
    assert lab.findings == [], "what comes next may explain it"

    lab.bind(pod("second", cpu="3", memory="1Mi"), "big")

    by_pod = {each.pod: each for each in lab.findings}
    assert by_pod["default/first"].verdict is Agreement.LOWER_SCORE
    assert by_pod["default/first"].by_order
    assert by_pod["default/second"].verdict is Agreement.SAME
    assert requested(lab) == {"big": 3000, "small": 3000}
    lab.watched.cluster.validate()


def test_far_apart_there_is_but_one_order() -> None:
    lab = burst()
    lab.bind(pod("first", cpu="3", memory="1Mi"), "small")
    lab.wait(0.6)
    assert [each.by_order for each in lab.findings] == [False]

    lab.bind(pod("second", cpu="3", memory="1Mi"), "big")

    assert [each.by_order for each in lab.findings] == [False, False]


def test_no_order_explains_a_refusal_by_the_node_itself() -> None:
    lab = ShadowLab(BIG, node("closed", unschedulable=True))
    pods = [pod(f"p{number}", cpu="1") for number in range(4)]
    lab.there(*pods)

    for each in pods:
        lab.bind(each, "closed")
    lab.wait()

    assert {each.verdict for each in lab.findings} == {Agreement.REFUSED}
    assert not any(each.by_order for each in lab.findings)
    assert [each.burst for each in lab.findings] == [0, 1, 2, 3]


def test_what_is_held_back_is_reported_in_the_end() -> None:
    lab = burst()
    lab.bind(pod("first", cpu="3", memory="1Mi"), "small")

    lab.handler.order.flush()

    assert lab.found.verdict is Agreement.LOWER_SCORE
