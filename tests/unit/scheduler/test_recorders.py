"""Events about pods come from the scheduler that the pod asked for."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.scheduler.recorders import Recorders, reference
from tests.support.objects import pod


class Recorder:
    """A recorder that keeps everything to itself."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str, str]] = []

    def record(self, regarding: Any, reason: str, *, action: str, note: str, **others: Any) -> None:
        self.events.append((regarding.name, others["type"], reason, action, note))


def of_scheduler(name: str, scheduler: str) -> Pod:
    made = pod(name)
    return replace(made, spec=replace(made.spec, scheduler_name=scheduler))


def both() -> tuple[Recorders, Recorder, Recorder]:
    one, two = Recorder(), Recorder()
    given: Any = {"one": one, "two": two}
    return Recorders(given), one, two


def test_each_pod_has_its_scheduler_s_recorder() -> None:
    recorders, one, two = both()
    recorders.normal(of_scheduler("a", "one"), reason="Scheduled", action="Binding", note="x")
    recorders.warning(of_scheduler("b", "two"), reason="Failed", action="Scheduling", note="y")
    assert one.events == [("a", "Normal", "Scheduled", "Binding", "x")]
    assert two.events == [("b", "Warning", "Failed", "Scheduling", "y")]


def test_a_victim_hears_from_its_preemptor_s_scheduler() -> None:
    recorders, one, two = both()
    preemptor = reference(of_scheduler("p", "one"))
    recorders.preempted(of_scheduler("victim", "two"), by=preemptor, scheduler_name="one", note="z")
    assert one.events == [("victim", "Normal", "Preempted", "Preempting", "z")]
    assert two.events == []


def test_pods_of_other_schedulers_are_not_our_business() -> None:
    recorders, one, two = both()
    stranger = of_scheduler("a", "three")
    recorders.normal(stranger, reason="r", action="a", note="n")
    recorders.warning(stranger, reason="r", action="a", note="n")
    recorders.preempted(
        of_scheduler("victim", "one"), by=reference(stranger), scheduler_name="nobody", note="n"
    )
    assert one.events == two.events == []


def test_a_reference_says_which_version_of_the_pod_is_meant() -> None:
    made = pod("p", uid="u")
    meta = replace(made.metadata, resource_version="7")
    found = reference(replace(made, metadata=meta))
    assert (found.kind, found.api_version, found.namespace, found.name) == (
        "Pod",
        "v1",
        "default",
        "p",
    )
    assert (found.uid, found.resource_version) == ("u", "7")
